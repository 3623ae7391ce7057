package recon

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"time"

	"posttrade/ring/waittest"
	"posttrade/sidecars/pace"
	"posttrade/sidecars/store"
	"posttrade/sidecars/store/storetest"
)

// Run sweeps and verifies by itself, waits while the history cannot be read, logs that once,
// continues, and ends with its context.
func TestRunSweepsVerifiesWaitsAndEnds(t *testing.T) {
	g := newRig(t, storetest.Open(t, store.SQLite), 0, 60)
	log := &waittest.Log{}
	g.o.Interval, g.o.VerifyInterval = time.Millisecond, 2*time.Millisecond
	g.o.Logger = slog.New(slog.NewTextHandler(log, nil))
	looked := make(chan struct{}, 1)
	g.journal.onHead = func() {
		select {
		case looked <- struct{}{}:
		default:
		}
	}
	limit, stop := context.WithTimeout(context.Background(), 3*time.Minute)
	defer stop()
	until := func(what string, is func() bool) {
		t.Helper()
		for !is() {
			select {
			case <-looked:
			case <-limit.Done():
				t.Fatalf("waited in vain until %s", what)
			}
		}
	}
	locked := func(change func(j *fakeJournal)) {
		g.journal.mu.Lock()
		defer g.journal.mu.Unlock()
		change(g.journal)
	}
	g.journal.add(g.rng, 50)
	g.project(1, 50)
	ctx, cancel := context.WithCancel(limit)
	done := make(chan error)
	go func() { done <- g.Run(ctx) }()
	until("50 have matched", func() bool { return g.tallies() == tallies{cursor: 50, matched: 50} })
	g.edit("update trades set price = price + 1 where trade_seq = 17")
	until("the edit is found", func() bool {
		return g.tallies() == tallies{cursor: 50, matched: 49, mismatch: 1}
	})
	locked(func(j *fakeJournal) { j.fail = errFake })
	until("both tasks are held up", func() bool { return log.Count("is held up") == 2 })
	g.edit("update trades set price = price - 1 where trade_seq = 17")
	locked(func(j *fakeJournal) { j.fail = nil })
	until("both tasks go on", func() bool { return log.Count("goes on") == 2 })
	until("the repair is found", func() bool {
		return g.tallies() == tallies{cursor: 50, matched: 50}
	})
	cancel()
	if err := <-done; err != nil {
		t.Errorf("Run ended with %v", err)
	}
	if log.Count("is held up") != 2 || log.Count("goes on") != 2 {
		t.Errorf("%d and %d lines of a change of state, want 2 and 2", log.Count("is held up"),
			log.Count("goes on"))
	}
}

func TestPauses(t *testing.T) {
	r := New(Options{Interval: time.Second, VerifyInterval: time.Minute})
	for _, tt := range []struct{ took, want time.Duration }{
		{0, time.Second}, {300 * time.Millisecond, 700 * time.Millisecond},
		{5 * time.Second, 100 * time.Millisecond},
	} {
		if got := r.sweepPause(tt.took); got != tt.want {
			t.Errorf("%v after a sweep of %v, want %v", got, tt.took, tt.want)
		}
	}
	for _, tt := range []struct {
		cursor     uint64
		took, want time.Duration
	}{
		{0, 0, time.Minute}, {1, 0, time.Minute}, {16384, time.Second, 59 * time.Second},
		{16385, 0, 30 * time.Second}, {500_000, 100 * time.Millisecond,
			time.Minute/31 - 100*time.Millisecond},
		{100_000_000, 50 * time.Millisecond, 150 * time.Millisecond}, {1 << 40, 0, time.Millisecond},
		{100_000_000, 12 * time.Second, pace.LongestRest}, // the database stalled
	} {
		r.cursor.Store(tt.cursor)
		if got := r.verifyPause(tt.took); got != tt.want {
			t.Errorf("%v after a step of %v at %d, want %v", got, tt.took, tt.cursor, tt.want)
		}
	}
	for name, got := range map[string]time.Duration{
		"interval":        New(Options{}).o.Interval - DefaultInterval,
		"grace":           New(Options{}).o.Grace - DefaultGrace,
		"verify interval": New(Options{}).o.VerifyInterval - DefaultVerifyInterval,
	} {
		if got != 0 {
			t.Errorf("the default %s is off by %v", name, got)
		}
	}
}

func TestBackOffDoublesToItsLimit(t *testing.T) {
	r := New(Options{})
	work := task{name: "work", run: func(context.Context) error { return errFake },
		pause: r.sweepPause}
	for range 10 {
		work.do(context.Background(), r)
		if pause := time.Until(work.at); !work.failed.Failing() || pause > pace.LastPause {
			t.Fatalf("pause %v after a failure", pause)
		}
	}
	work.run = func(context.Context) error { return nil }
	if work.do(context.Background(), r); work.failed.Failing() {
		t.Error("still failing after a success")
	}
}

// All calls run at once, for the race detector; the books are right in the end.
func TestConcurrentCalls(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		g := newRig(t, db, 20, 61)
		g.journal.add(g.rng, 300)
		g.project(1, 300)
		g.insert(stray("x", 500))
		var work sync.WaitGroup
		for _, call := range []func() error{
			func() error { return g.Sweep(context.Background()) },
			func() error { return g.VerifyStep(context.Background()) },
			func() error { _, err := g.OrphanSweep(context.Background()); return err },
			func() error { _, err := g.Status(context.Background()); return err },
			func() error { _, _, err := g.Breaks(context.Background(), BreakQuery{}); return err },
			func() error { _, _, err := g.LastOrphanSweep(context.Background()); return err },
			func() error { _ = g.Metrics(); return nil },
		} {
			work.Go(func() {
				for range 5 {
					if err := call(); err != nil {
						t.Error(err)
					}
				}
			})
		}
		work.Wait()
		g.want(tallies{cursor: 300, matched: 300, orphans: 1})
	})
}
