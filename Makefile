# Two targets do everything on a fresh machine with Go and make:
#   make run    builds and serves on embedded defaults
#   make test   runs every test
GO         ?= go
BIN        := bin/posttrade
COMMIT     := $(shell git describe --always --dirty 2>/dev/null || echo unknown)
LDFLAGS    := -X main.buildCommit=$(COMMIT)
STATICCHECK := $(GO) run honnef.co/go/tools/cmd/staticcheck@v0.8.2
CONCURRENT := ./ring ./matcher/... ./journal/... ./blotter ./sidecars/... ./httpapi/...
FUZZTIME   ?= 30s
RUNARGS    ?=

.PHONY: run build test check race checks fuzz bench perf perf-smoke profile crash

run: build
	./$(BIN) serve $(RUNARGS)

build:
	$(GO) build -trimpath -ldflags '$(LDFLAGS)' -o $(BIN) .

test:
	$(GO) test ./...

# What a reviewer would otherwise have to look for.
check:
	@unformatted=$$(gofmt -l .); \
	if [ -n "$$unformatted" ]; then echo "gofmt would change: $$unformatted"; exit 1; fi
	$(GO) vet ./...
	$(STATICCHECK) ./...
	$(GO) mod tidy -diff

# The packages where more than one goroutine touches a word.
race:
	$(GO) test -race -short $(CONCURRENT)

# The same suites with the invariants compiled in (see checks.go of each package).
checks:
	$(GO) test -tags checks -short ./ring ./matcher/...

fuzz:
	@for pkg in $$($(GO) list ./...); do \
	  for target in $$($(GO) test -list '^Fuzz' $$pkg | grep '^Fuzz'); do \
	    echo "== $$pkg $$target"; \
	    $(GO) test -run '^$$' -fuzz "^$$target$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 5x $$pkg || exit 1; \
	  done; \
	done

bench:
	$(GO) test -run '^$$' -bench . -benchmem -count 1 ./...

# Every row of the performance table, with machine, commit and load beside it.
perf: build
	./$(BIN) perf

perf-smoke: build
	./$(BIN) perf --smoke --out bin/smoke.txt

# A CPU profile of the decision path with the stages labelled.
profile: build
	./$(BIN) perf --only end-to-end --cpuprofile bin/cpu.prof --out bin/profile.txt
	$(GO) tool pprof -top -nodecount 40 $(BIN) bin/cpu.prof

# kill -9 under load, CYCLES times.
CYCLES ?= 100
crash:
	$(GO) test -count 1 -run TestKillUnderLoad -timeout 30m . -args -cycles=$(CYCLES)
