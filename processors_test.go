package main

import (
	"log/slog"
	"runtime"
	"testing"
)

// TestPoliteThreadsHaveProcessorsOfTheirOwn: what works beside the path of an order
// may not hold the processors that the goroutines of the path need, and a stop leaves
// the scheduler as it was.
func TestPoliteThreadsHaveProcessorsOfTheirOwn(t *testing.T) {
	for sidecars, beside := range map[string]int{"true": politeThreads, "false": 0} {
		before := runtime.GOMAXPROCS(0)
		in := install(t, t.TempDir(), "sidecars.enabled", sidecars)
		path := runtime.NumCPU() + hotThreads + spareProcs
		if in.core.session != nil {
			path += sessionThreads
		}
		if got := runtime.GOMAXPROCS(0); got != path+beside {
			t.Errorf("sidecars.enabled=%s: %d processors, want %d for the path of an order and %d beside it", sidecars, got, path, beside)
		}
		in.stop()
		if got := runtime.GOMAXPROCS(0); got != before {
			t.Errorf("sidecars.enabled=%s: %d processors after the stop, %d before the start", sidecars, got, before)
		}
	}
}

// TestAStopGivesTheProcessorsBack: a member that no longer leads stops what works
// beside the path, and goes on with the path itself.
func TestAStopGivesTheProcessorsBack(t *testing.T) {
	before := runtime.GOMAXPROCS(0)
	d := &downstream{loops: newLoops(slog.New(slog.DiscardHandler)), takeBack: lendProcessors()}
	if got := runtime.GOMAXPROCS(0); got != before+politeThreads {
		t.Errorf("%d processors, want %d more than %d", got, politeThreads, before)
	}
	if err := d.stop(); err != nil {
		t.Fatal(err)
	}
	if got := runtime.GOMAXPROCS(0); got != before {
		t.Errorf("%d processors after the stop, want %d", got, before)
	}
}
