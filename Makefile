# Targets for people and CI. Tools are pinned and run through `go run`, so
# nothing has to be installed but Go.
GO ?= go
STATICCHECK = honnef.co/go/tools/cmd/staticcheck@v0.8.2
FUZZTIME ?= 60s

export GOFLAGS ?=

.PHONY: help build demo check test race vet staticcheck format reference bench fuzz postgres

help: ## list the targets
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/'

build: ## build the static binary ./nocturne
	CGO_ENABLED=0 $(GO) build -trimpath -o nocturne ./cmd/nocturne

demo: build ## build, then run a whole simulated night
	./nocturne demo

check: postgres format vet staticcheck build race ## everything that CI runs; brings what the tests need

postgres: ## PostgreSQL's programs for the tests' private cluster
	@./scripts/postgres.sh

format: ## fail on files that gofmt would change
	@files=$$(gofmt -l $$(git ls-files '*.go' 2>/dev/null || find . -name '*.go')); \
	if [ -n "$$files" ]; then echo "gofmt would change:"; echo "$$files"; exit 1; fi

vet:
	$(GO) vet ./...

staticcheck:
	$(GO) run $(STATICCHECK) ./...

test: ## all tests, without the race detector
	$(GO) test ./...

race: ## all tests with the race detector
	$(GO) test -race ./...

reference: ## write the generated reference and schemas
	$(GO) run ./cmd/nocturne reference docs/reference

bench: ## the benchmarks whose figures stand in docs/performance.md
	$(GO) test -run '^$$' -bench . -benchtime 2s ./runners/... ./store/... ./search/ ./tuner/...

fuzz: ## each fuzz target for FUZZTIME
	@set -e; for target in $$(grep -rhoE --include='*_test.go' 'func Fuzz[A-Za-z0-9_]+' . | awk '{print $$2}' | sort -u); do \
	  package=$$(dirname $$(grep -rlE --include='*_test.go' "func $$target\(" .)); \
	  echo "== $$target ($$package)"; $(GO) test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) $$package; done
