# Two targets do everything on a fresh machine with Go and make:
#   make run    builds and serves on embedded defaults
#   make test   runs every test but those in a browser (make browser)
GO         ?= go
BIN        := bin/posttrade
COMMIT     := $(shell git describe --always --dirty 2>/dev/null || echo unknown)
LDFLAGS    := -X posttrade/app/settings.BuildCommit=$(COMMIT)
STATICCHECK := $(GO) run honnef.co/go/tools/cmd/staticcheck@v0.8.2
CONCURRENT := ./ring ./matcher/... ./journal/... ./blotter ./sidecars/... ./httpapi/... \
	./app/backups ./app/engine ./app/flight ./app/settings ./app/stats ./app/top ./perf/replay
# Among them, those without a goroutine and a lock. app/installation, which starts the goroutines of
# the others, is left out for its time: its tests start some hundred servers.
SEQUENTIAL := matcher|flow|int128|strictjson|timetext|audit/lines|evidence/(verify|page|export|bundle)|transfer|sidecars/export
FUZZTIME   ?= 30s
RUNARGS    ?=
BROWSERARGS ?=

# What checks the code builds without the profile (see pgo): with it, every package would be
# compiled twice, alone and for the program.
test check race checks portable fuzz fuzz-package bench: export GOFLAGS := $(GOFLAGS) -pgo=off

.PHONY: run build test browser console-types check race checks portable fuzz fuzz-package bench perf perf-smoke perf-gate perf-report profile pgo crash

run: build
	./$(BIN) serve $(RUNARGS)

build:
	$(GO) build -trimpath -ldflags '$(LDFLAGS)' -o $(BIN) ./cmd/posttrade

test:
	$(GO) test -timeout 40m ./...

# The console in a real browser: Debian's chromium, or the program that CHROMIUM names. The tests
# are a module of their own, so that the product does not depend on what drives the browser.
# Pictures of every page are left in bin/console.
browser: build
	cd httpapi/console/browser && CONSOLE_BINARY='$(CURDIR)'/$(BIN) $(GO) test -count 1 -timeout 30m $(BROWSERARGS) .

# The types in the comments of the console's modules; those of others are left alone.
TYPESCRIPT ?= npx --yes --package typescript@5.9.3 tsc
console-types:
	@$(TYPESCRIPT) --version || exit 1; \
	found=$$($(TYPESCRIPT) -p httpapi/console/jsconfig.json | grep 'error TS' | grep -v '/vendor/'); \
	if [ -n "$$found" ]; then echo "$$found"; exit 1; fi

# What a reviewer would otherwise have to look for.
check:
	@unformatted=$$(gofmt -l .); \
	if [ -n "$$unformatted" ]; then echo "gofmt would change: $$unformatted"; exit 1; fi
	$(GO) vet ./...
	$(STATICCHECK) ./...
	$(GO) mod tidy -diff
	cd httpapi/console/browser && $(GO) vet . && $(STATICCHECK) . && $(GO) mod tidy -diff

# The packages where more than one goroutine touches a word. With -short everything still
# happens at the same time, of less; tests of what is above the database take one of the two.
# The engine has no goroutine but that of its stage: its other tests run with the invariants alone.
race:
	$(GO) test -race -short -timeout 40m $$($(GO) list $(CONCURRENT) | grep -Ev '/($(SEQUENTIAL))$$')
	$(GO) test -race -short -run '^Test(Stage|Drive)' ./matcher
	$(GO) test -tags checks -short ./matcher

# With the invariants compiled in (ring.Checks; the race detector's build has them too): positions of
# rings, indexes of the engine's tables, the lists in the doc.go of matcher and blotter, and the
# order of the journal's numbers.
checks:
	$(GO) test -tags checks -short ./ring ./matcher/... ./blotter ./journal

# What runs without Linux: the product builds for arm64 and for other systems, without sessions,
# pinning and the mapped tail there; the tests of rings and decision run as WebAssembly under Node.
# What is compiled only to see that it compiles is not optimized, which takes two thirds of the time.
UNOPTIMIZED := -gcflags='all=-N -l'
WASM := $(shell $(GO) env GOROOT)/lib/wasm/go_js_wasm_exec
portable:
	GOARCH=arm64 $(GO) build $(UNOPTIMIZED) ./...
	for os in darwin windows; do GOOS=$$os GOARCH=arm64 $(GO) build $(UNOPTIMIZED) ./... || exit 1; done
	for os in darwin windows; do GOOS=$$os GOARCH=arm64 $(GO) vet ./ring ./matcher || exit 1; done
	GOOS=js GOARCH=wasm $(GO) vet ./ring ./matcher
	GOOS=js GOARCH=wasm $(GO) test -short -timeout 15m -exec $(WASM) ./ring ./matcher

# Every fuzz target for FUZZTIME, two packages at a time. A package is compiled once for all
# its targets; an input that fails stays where go test would put it, in testdata/fuzz.
fuzz:
	@files=$$($(GO) list -f '{{range .TestGoFiles}}{{$$.Dir}}/{{.}} {{end}}{{range .XTestGoFiles}}{{$$.Dir}}/{{.}} {{end}}' ./...) && \
	files=$$(grep -l '^func Fuzz' $$files) && \
	dirname $$files | sort -u | xargs -P 2 -I '{}' $(MAKE) --no-print-directory fuzz-package DIR='{}'

# The targets of the package in DIR; what they say is shown when all of them are through.
# go test sometimes calls the end of FUZZTIME itself a failure, "context deadline exceeded";
# what a target finds is written down as a failing input, which is a failure always.
fuzz-package:
	@mkdir -p bin/fuzz && cd '$(DIR)' && pkg=$$($(GO) list .) && out='$(CURDIR)'/bin/fuzz/$$(echo $$pkg | tr / -) && \
	( $(GO) test -c -fuzz . -o $$out.test . && targets=$$($$out.test -test.list '^Fuzz') && \
	  for target in $$targets; do \
	    echo "== $$pkg $$target"; \
	    $$out.test -test.run '^$$' -test.fuzz "^$$target$$" -test.fuzztime $(FUZZTIME) -test.fuzzminimizetime 5x \
	      -test.fuzzcachedir "$$($(GO) env GOCACHE)/fuzz/$$pkg" >$$out.one 2>&1; failed=$$?; cat $$out.one; \
	    [ $$failed = 0 ] || { grep -qx '    context deadline exceeded' $$out.one && ! grep -q 'Failing input' $$out.one; } || exit 1; \
	  done ) >$$out.log 2>&1; status=$$?; cat $$out.log; exit $$status

bench:
	$(GO) test -run '^$$' -bench . -benchmem -count 1 ./...

# Every row of the performance table, with machine, commit and load beside it.
# A day of a real book is one of them when there are LOBSTER files.
LOBSTER ?= $(wildcard ../shared/data/lobster)
perf: build
	./$(BIN) perf $(if $(LOBSTER),--lobster=$(LOBSTER))

perf-smoke: build
	./$(BIN) perf --smoke --out bin/smoke.txt $(if $(LOBSTER),--lobster=$(LOBSTER))

# Is this tree slower than BASE, or does it allocate more? Both are built with the same
# flags and measured in turns. Exit 1 names the row; what was measured is in GATEOUT.
BASE    ?= HEAD
GATEOUT ?= bin/gate.txt
perf-gate:
	@set -e; dir=$$(mktemp -d); \
	trap 'git worktree remove --force '$$dir'/base 2>/dev/null || true; rm -rf '$$dir'; git worktree prune' EXIT; \
	git worktree add --quiet --detach $$dir/base $(BASE); \
	(cd $$dir/base && main=.; [ ! -d cmd/posttrade ] || main=./cmd/posttrade; \
	  $(GO) build -trimpath -ldflags '-X posttrade/app/settings.BuildCommit=base -X main.buildCommit=base' -o $$dir/posttrade-base $$main); \
	$(GO) build -trimpath -ldflags '-X posttrade/app/settings.BuildCommit=$(COMMIT)' -o $$dir/posttrade-head ./cmd/posttrade; \
	$$dir/posttrade-head perf gate --base $$dir/posttrade-base --out $(GATEOUT) $(GATEARGS)

# One page of plots over results files: RESULTS is a file or a folder of them.
RESULTS ?= perf/results
perf-report: build
	./$(BIN) perf report --out bin/report.html $(RESULTS)

# A CPU profile of the decision path, by stage and by function.
profile: build
	./$(BIN) perf --only end-to-end --cpuprofile bin/cpu.prof --out bin/profile.txt
	$(GO) tool pprof -tags $(BIN) bin/cpu.prof
	$(GO) tool pprof -top -nodecount 40 $(BIN) bin/cpu.prof

# The profile that the compiler reads when it builds the program (cmd/posttrade/default.pgo): the
# decision, the path end to end, and servers under HTTP load, from a build without a profile.
pgo:
	@mkdir -p bin/pgo && rm -f bin/pgo/*.prof
	$(GO) build -trimpath -pgo=off -o bin/pgo/posttrade ./cmd/posttrade
	bin/pgo/posttrade perf --only decision,end-to-end --cpuprofile bin/pgo/path.prof --out bin/pgo/path.txt
	bin/pgo/posttrade perf --only http --server-profiles bin/pgo --out bin/pgo/http.txt
	$(GO) tool pprof -proto -symbolize=none bin/pgo/posttrade bin/pgo/*.prof >bin/pgo/merged
	mv bin/pgo/merged cmd/posttrade/default.pgo

# kill -9 under load, CYCLES times.
CYCLES ?= 100
crash:
	.ci/named TestKillUnderLoad ./app/installation -cycles=$(CYCLES)
