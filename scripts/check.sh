#!/usr/bin/env bash
# Everything that must hold for a change: gofmt, vet, staticcheck, a static build
# and all tests under the race detector. CI runs this and nothing else.
#
#   scripts/check.sh              all steps
#   scripts/check.sh vet build    some of them
#
# It needs Go, and for the tests a C compiler (the race detector's) and
# PostgreSQL's programs (each test binary starts a server of its own on a socket
# in a temporary folder). What is missing is installed from Debian where that is
# possible.
set -euo pipefail
cd "$(dirname "$0")/.."

staticcheck=honnef.co/go/tools/cmd/staticcheck@v0.8.2

needs() {
	local missing=()
	command -v "${CC:-cc}" >/dev/null || missing+=(gcc libc6-dev)
	compgen -G '/usr/lib/postgresql/*/bin/initdb' >/dev/null || command -v initdb >/dev/null || missing+=(postgresql)
	if [ ${#missing[@]} = 0 ]; then return; fi
	if ! command -v apt-get >/dev/null; then
		echo "missing for the tests: ${missing[*]} (by their names in Debian)" >&2
		exit 1
	fi
	local as_root=()
	if [ "$(id -u)" != 0 ]; then
		if ! command -v sudo >/dev/null; then
			echo "missing for the tests; run as root: apt-get update && apt-get install ${missing[*]}" >&2
			exit 1
		fi
		as_root=(sudo)
	fi
	"${as_root[@]}" apt-get update -q
	"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends "${missing[@]}"
}

format() {
	local files
	files=$(gofmt -l cmd examples internal migrations nccl runners search store tuner)
	if [ -n "$files" ]; then
		echo "gofmt would change:" "$files" >&2
		exit 1
	fi
}

vet() { go vet ./... && go vet -tags llamaserver ./runners/local; }

staticcheck() { go run "$staticcheck" ./...; }

build() { CGO_ENABLED=0 go build -trimpath -o nocturne ./cmd/nocturne; }

tests() { CGO_ENABLED=1 go test -race ./...; }

if [ $# = 0 ]; then set -- needs format vet staticcheck build tests; fi
for step; do
	case $step in
	needs | format | vet | staticcheck | build | tests) ;;
	*)
		echo "no step $step: needs, format, vet, staticcheck, build or tests" >&2
		exit 2
		;;
	esac
	echo "== $step"
	"$step"
done
