package perf

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"posttrade/matcher"
	"posttrade/matcher/flow"
	"posttrade/ring"
	"posttrade/ring/must"
)

func TestEveryReportReachesTheOtherCore(t *testing.T) {
	for _, regime := range flow.Regimes() {
		f := flow.Realistic(flow.RealisticOptions{Seed: 5, Regime: regime, Prefill: 500, N: 5_000})
		_, reports, err := runRealistic(f)
		if err != nil || reports != len(f.Timed())+int(f.Result.Trades) {
			t.Errorf("%v: %d reports, %v", regime, reports, err)
		}
		if _, err := runAlone(f); err != nil {
			t.Errorf("%v: %v", regime, err)
		}
		f.Result.Qty++
		if _, _, err := runRealistic(f); err == nil {
			t.Errorf("%v: a wrong trade sum is no error", regime)
		}
		if _, err := runAlone(f); err == nil {
			t.Errorf("%v: a wrong trade sum is no error, alone", regime)
		}
	}
}

func TestReportsAndTheirReadingDoNotAllocate(t *testing.T) {
	f := flow.Realistic(flow.RealisticOptions{Seed: 5, Regime: flow.Swing25, Prefill: 500, N: 20_000})
	region := must.Get(ring.Anonymous(ring.SPSCBytes[bookReport](1 << 10)))(t)
	defer region.Close()
	q := must.Get(ring.NewSPSC[bookReport](region, 1<<10))(t)
	sink := &reporter{q}
	book := must.Get(matcher.NewBook(matcher.BookOptions{Sink: sink, MaxOrders: 1 << 15}))(t)
	defer book.Close()
	for i := range f.Commands[:f.Prefill] {
		applyRealistic(book, &f.Commands[i])
	}
	other, next, timed := &reader{result: flow.NewResult()}, 0, f.Timed()
	if n := testing.AllocsPerRun(1000, func() {
		sink.outcome(&timed[next], applyRealistic(book, &timed[next]))
		q.Publish()
		next++
		other.take(q)
	}); n != 0 {
		t.Errorf("%v allocations a message", n)
	}
	if other.outcomes != next {
		t.Errorf("%d outcomes of %d messages", other.outcomes, next)
	}
}

// lobsterFiles are the files with which the translation is tested.
const lobsterFiles = "orderflow/testdata/lobster"

func TestLobsterRowHoldsTheBookAgainstThePublishedOne(t *testing.T) {
	tape := must.Get(translateLobster(lobsterFiles))(t)
	defer tape.close()
	if tape.events == 0 || len(tape.orders) == 0 || tape.result.Trades == 0 {
		t.Fatalf("%d events, %d orders, %d trades", tape.events, len(tape.orders), tape.result.Trades)
	}
	for range 3 {
		must.Get(tape.replay())(t)
	}
	tape.result.Qty++
	if _, err := tape.replay(); err == nil {
		t.Error("a wrong trade sum is no error")
	}
	tape.result.Qty--
	if n := testing.AllocsPerRun(20, func() {
		must.Get(tape.replay())(t)
	}); n != 0 {
		t.Errorf("a replay allocates %v times", n)
	}
}

func TestLobsterRowReportsWhatIsWrong(t *testing.T) {
	r := &Run{o: Options{Stdout: io.Discard, Smoke: true}}
	if err := measureLobster(r); err != nil || len(r.lines) != 0 {
		t.Errorf("without files: %v, %q", err, r.lines)
	}
	r.o.Lobster = lobsterFiles
	if err := measureLobster(r); err != nil || len(r.lines) != 1 ||
		!strings.Contains(r.lines[0], "BenchmarkBook/op=lobster") {
		t.Errorf("with files: %v, %q", err, r.lines)
	}
	r.o.Lobster = t.TempDir()
	if err := measureLobster(r); err == nil {
		t.Error("an empty folder is no error")
	}
	// One wrong quantity in the published book.
	dir := t.TempDir()
	for _, kind := range []string{"message", "orderbook"} {
		name := "ACME_2020-01-02_34200000_57600000_" + kind + "_5.csv"
		text := must.Get(os.ReadFile(filepath.Join(lobsterFiles, name)))(t)
		if kind == "orderbook" {
			lines := strings.Split(strings.TrimSpace(string(text)), "\n")
			fields := strings.Split(lines[len(lines)-1], ",")
			fields[1] += "9" // the best ask
			lines[len(lines)-1] = strings.Join(fields, ",")
			text = []byte(strings.Join(lines, "\n") + "\n")
		}
		must.OK(t, os.WriteFile(filepath.Join(dir, name), text, 0o600))
	}
	r.o.Lobster = dir
	if err := measureLobster(r); err == nil ||
		!strings.Contains(err.Error(), "level 1 of the Sell side") {
		t.Errorf("a wrong book: %v", err)
	}
}
