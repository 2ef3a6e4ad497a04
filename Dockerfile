# The static binary, on a small image with certificates.
FROM golang:1.26-bookworm AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
RUN CGO_ENABLED=0 go build -trimpath -ldflags="-s -w" -o /nocturne ./cmd/nocturne

FROM debian:bookworm-slim
RUN apt-get update \
    && apt-get install --yes --no-install-recommends ca-certificates \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --uid 10001 --create-home nocturne
COPY --from=build /nocturne /usr/local/bin/nocturne
USER nocturne
WORKDIR /home/nocturne
ENTRYPOINT ["nocturne"]
CMD ["--help"]
