# Shortcuts for contributors who have make; nothing depends on it.
FUZZTIME ?= 60s

.PHONY: help build demo check test reference bench fuzz

help: ## list the targets
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/'

build: ## build the static binary ./nocturne
	scripts/check.sh build

demo: build ## build, then run a whole simulated night
	./nocturne demo

check: ## everything that CI runs; brings what the tests need
	scripts/check.sh

test: ## all tests, without the race detector
	go test ./...

reference: ## write the generated reference and schemas
	go run ./cmd/nocturne reference docs/reference

bench: ## all benchmarks, one package at a time; docs/performance.md explains them
	go test -p 1 -run '^$$' -bench . ./...

fuzz: ## each fuzz target for FUZZTIME
	@set -e; for target in $$(grep -rhoE --include='*_test.go' 'func Fuzz[A-Za-z0-9_]+' . | awk '{print $$2}' | sort -u); do \
	  package=$$(dirname $$(grep -rlE --include='*_test.go' "func $$target\(" .)); \
	  echo "== $$target ($$package)"; go test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) $$package; done
