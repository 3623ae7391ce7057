package perf

import (
	"fmt"
	"io"
	"slices"
	"strings"
)

// target is a figure and the value that it must reach.
type target struct {
	row, text  string
	got, limit float64
	atMost     bool
	floor      string // the comparator of the figure: the peer or the floor of this run
	unknown    bool   // nothing was measured: floor has the reason
}

func (t *target) met() bool {
	if t.atMost {
		return t.got <= t.limit
	}
	return t.got >= t.limit
}

// beside sets the text of the comparator beside the figure.
func (t *target) beside(format string, args ...any) { t.floor = fmt.Sprintf(format, args...) }

// atMost judges a figure that may not be above its limit. The target that it returns may be used
// until the next call.
func (r *Run) atMost(row, text string, got, limit float64) *target {
	return r.judge(target{row: row, text: text, got: got, limit: limit, atMost: true})
}

// atLeast judges a figure that may not be below its limit.
func (r *Run) atLeast(row, text string, got, limit float64) *target {
	return r.judge(target{row: row, text: text, got: got, limit: limit})
}

func (r *Run) judge(t target) *target {
	r.targets = append(r.targets, t)
	return &r.targets[len(r.targets)-1]
}

// summary prints the targets as a table, in the form that the README has.
func (r *Run) summary(w io.Writer) {
	fmt.Fprintf(w, "\n| row | figure | measured | target | | beside |\n|---|---|---:|---:|---|---|\n")
	for _, t := range r.targets {
		fmt.Fprintln(w, t)
	}
}

// String is one row of the table.
func (t target) String() string {
	sign, verdict, got := ">=", "met", fmt.Sprintf("%.4g", t.got)
	if t.atMost {
		sign = "<="
	}
	switch {
	case t.unknown:
		verdict, got = "no verdict", "-"
	case !t.met():
		verdict = "missed"
	}
	return fmt.Sprintf("| %s | %s | %s | %s %.4g | %s | %s |", t.row, t.text, got, sign, t.limit,
		verdict, t.floor)
}

// asked is one figure that the performance table asks for. match is a part of its target's text,
// figure its name when no row of the run has judged it.
type asked struct {
	row, match, figure string
	sign               string
	limit              float64
	why                string // why it may be missing, apart from the row not being run
}

// table is everything that the performance table asks for.
var table = []asked{
	{"P1", "against a Go channel", "ring single against a Go channel", ">=", 6, ""},
	{"P1", "ring single, shared memory, M messages/s", "ring single, M messages/s", ">=", 140, ""},
	{"P1", "shared memory against private", "ring single, shared memory against private", ">=",
		sameMemory, ""},
	{"P1", "batch 64", "ring batch 64 against a channel of slices", ">=", 2.5, ""},
	{"P1", "ping-pong", "ring ping-pong p50 against the line round trip", "<=", 1.35, ""},
	{"P2", "bare ladder, 1 symbol", "book against the bare ladder, 1 symbol", "<=", 1.2, ""},
	{"P2", "bare ladder, 32 symbols", "book against the bare ladder, 32 symbols", "<=", 1.2, ""},
	{"P2", "p99, 1 symbol", "book per command p99, 1 symbol, ns", "<=", 300, ""},
	{"P2", "p99, 32 symbols", "book per command p99, 32 symbols, ns", "<=", 300, ""},
	{"P2", "32 symbols against 1", "book with 32 symbols against 1", "<=", 1.6, ""},
	{"P3", "worst of five", "realistic flow, worst of five regimes, M messages/s", ">=", 10, ""},
	{"P3", "best regime against the worst", "realistic flow, the best regime against the worst", "<=",
		2, ""},
	{"P4", "bare ladder, 1 symbol", "decision step against the bare ladder, 1 symbol", "<=", 3.2, ""},
	{"P4", "bare ladder, 32 symbols", "decision step against the bare ladder, 32 symbols", "<=", 3.2,
		""},
	{"P4", "allocations", "decision step, allocations a command", "<=", 0, ""},
	{"P5", "Pebble key per record", "journal against one Pebble key per record", ">=", 3, ""},
	{"P5", "M commands/s", "journal, durable M commands/s", ">=", 8, ""},
	{"P5", "bytes a command", "bytes a command on disk", "<=", 15, ""},
	{"P5", "nothing became durable", "longest time in a minute in which nothing became durable, ms",
		"<=", 5, ""},
	{"P5", "commit p50", "commit p50 against a raw 64 KiB write and fdatasync", "<=", 2, ""},
	{"P6", "commands/s to a durable answer", "commands/s to a durable answer, mode fsync", ">=", 2e6,
		""},
	{"P6", "mode fsync, against fdatasync", "p50 at 10 % of saturation, mode fsync, against fdatasync",
		"<=", 1.6, ""},
	{"P6", "mode os, us", "p50 at 10 % of saturation, mode os, us", "<=", 5, ""},
	{"P6", "durability=fsync: highest against lowest",
		"in-process, fsync: highest against lowest p99.9 up to 70 %", "<=", flatLimit, tooSlow},
	{"P6", "durability=os: highest against lowest",
		"in-process, os: highest against lowest p99.9 up to 70 %", "<=", flatLimit, tooSlow},
	{"P7", "adaptive", "round trip over shared memory, adaptive, mode os, p50 us", "<=", 3, ""},
	{"P7", "spinning", "round trip over shared memory, spinning, mode os, p50 us", "<=", 1,
		"a core for each spinning thread is needed"},
	{"P7", "in a window", "commands/s over shared memory in a window, mode os", ">=", 1e6, ""},
	{"P7", "durability=fsync: highest against lowest",
		"session, fsync: highest against lowest p99.9 up to 70 %", "<=", flatLimit, tooSlow},
	{"P7", "durability=os: highest against lowest",
		"session, os: highest against lowest p99.9 up to 70 %", "<=", flatLimit, tooSlow},
	{"P8", "mode os, against fasthttp", "HTTP orders, mode os, against fasthttp hello", ">=", 0.8, ""},
	{"P8", "mode fsync, against fasthttp", "HTTP orders, mode fsync, against fasthttp hello", ">=",
		0.6, ""},
	{"P8", "batches of 100", "orders/s in batches of 100", ">=", 5e5, ""},
	{"P8", "server CPU per order", "server CPU per order against hello", "<=", 1.6, ""},
	{"P8", "durability=fsync: highest against lowest",
		"HTTP, fsync: highest against lowest p99.9 up to 70 %", "<=", flatLimit, tooSlow},
	{"P8", "durability=os: highest against lowest",
		"HTTP, os: highest against lowest p99.9 up to 70 %", "<=", flatLimit, tooSlow},
	{"P9", "from the journal", "M commands/s from the journal to a verified state", ">=", 5, ""},
	{"P9", "restart with", "restart with 100,000,000 commands and a snapshot, s", "<=", 5, ""},
	{"P10", "bare insert of the same rows, sqlite", "projection against a bare insert, sqlite", ">=",
		0.8, ""},
	{"P10", "bare insert of the same rows, postgres", "projection against a bare COPY, postgres", ">=",
		0.8, "--postgres names no server"},
	{"P10", "recon", "recon of 500,000 entries, s", "<=", 1, ""},
	{"P10", "report, records/s", "report, records/s", ">=", 1e6, ""},
	{"P10", "reindex", "reindex, fills/s", ">=", 3e6, ""},
	{"P10", "TCA", "one TCA report, p50, ms", "<=", 1, ""},
	{"P11", "with the wake-up", "outbox commit to gate, p50, ms, with the wake-up", "<=", 5, ""},
	{"P11", "with the poll", "outbox commit to gate, p50, ms, with the poll of 250 ms", "<=", 300, ""},
	{"P11", "deltas/s", "deltas/s, read, sequenced and durable", ">=", 1e5, ""},
	{"P11", "bootstrap of", "bootstrap of 100,000 securities, s", "<=", 2, ""},
	{"P12", "64 an entry", "commands/s in batches of 64, against the library with 64 an entry", ">=",
		0.8, ""},
	{"P12", "one command at a time", "one command at a time, p50, against the library alone", "<=",
		1.3, ""},
	{"P12", "orders/s through", "orders/s through three members", ">=", 5e5, ""},
	{"P12", "failover", "failover, median, ms", "<=", 300, ""},
	{"P13", "p99 with everything", "p99 with everything running against the engine alone", "<=", 1.2,
		""},
	{"P14", "idle with defaults", "resident set, idle with defaults, MiB", "<=", 256, ""},
	{"P14", "resident set at the end", "resident set at the end against a quarter of the way", "<=",
		1.1, "a smoke run is too short"},
	{"P14", "heap growth", "heap growth, bytes a command", "<=", 0, "a smoke run is too short"},
	{"P15", "durable to a client's socket", "live feed, from durable to a client's socket, p50, ms",
		"<=", 2, ""},
	{"P15", "fan-out", "live feed, fan-out, events/s in all", ">=", 1e6, ""},
	{"P15", "clients of the live feed", "p99 of orders with 100 clients of the live feed", "<=",
		besideLimit, ""},
	{"P16", "transparency log", "transparency log catching up, commands/s of one core", ">=", 2e6, ""},
	{"P17", "any moment of", "as of any sequence of a long journal, p50, ms", "<=", 1000, ""},
	{"P17", "the next moment", "the sequence behind it, p50, ms", "<=", 1, ""},
	{"P17", "what if", "what if, M commands/s", ">=", 5, ""},
}

// tooSlow is the reason why a curve may have no flatness.
const tooSlow = "too few requests were answered at two points"

// unjudged adds a line without a verdict for every figure of the table that the run has not judged.
func (r *Run) unjudged() {
	for _, a := range r.missing() {
		t := target{row: a.row, text: a.figure, limit: a.limit, atMost: a.sign == "<=", unknown: true}
		t.beside("%s", "not measured")
		if a.why != "" {
			t.beside("not measured: %s", a.why)
		}
		r.targets = append(r.targets, t)
	}
	slices.SortStableFunc(r.targets,
		func(a, b target) int { return tableOrder(a.row) - tableOrder(b.row) })
}

// missing are the figures of the table for which this run has no target.
func (r *Run) missing() (list []asked) {
	for _, a := range table {
		if !slices.ContainsFunc(r.targets, func(t target) bool {
			return t.row == a.row && strings.Contains(t.text, a.match)
		}) {
			list = append(list, a)
		}
	}
	return list
}

// tableOrder is the position of a row in the table; rows that are not in it come last.
func tableOrder(row string) (n int) {
	if _, err := fmt.Sscanf(row, "P%d", &n); err != nil {
		return len(table)
	}
	return n
}
