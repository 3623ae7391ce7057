package tca

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"posttrade/matcher"
	"posttrade/ring/must"
	"posttrade/sidecars/store"
)

// lines keeps what is logged.
type lines struct {
	slog.Handler
	mu   sync.Mutex
	said []string
}

func (l *lines) Enabled(context.Context, slog.Level) bool { return true }
func (l *lines) Handle(_ context.Context, r slog.Record) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.said = append(l.said, r.Level.String()+" "+r.Message)
	return nil
}

func (l *lines) all() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.said)
}

func TestRunTriesAgainWithGrowingPausesAndSaysItOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := newVenue(t)
		(&flow{v: v, rnd: seeded(t)}).steps(500)
		o := v.options()
		log := &lines{}
		o.Logger = slog.New(log)
		var mu sync.Mutex
		var tries []time.Duration
		begin := time.Now()
		o.Shadow = func(before uint64) (Shadow, error) {
			mu.Lock()
			defer mu.Unlock()
			tries = append(tries, time.Since(begin))
			return v.shadow(before)
		}
		x := open(t, o)
		v.breaks(errors.New("disk on fire"))
		stop := run(t, x)
		elapse(20 * time.Second)
		v.breaks(nil)
		caughtUp(t, x, v)
		ms := time.Millisecond
		mu.Lock()
		want := []time.Duration{
			0, 100 * ms, 300 * ms, 700 * ms, 1500 * ms, 3100 * ms, 6300 * ms, 11300 * ms,
			16300 * ms, 21300 * ms,
		}
		if !slices.Equal(tries, want) {
			t.Errorf("tried at %v, want %v", tries, want)
		}
		mu.Unlock()
		// A journal that breaks off later is read again at once.
		v.breaks(errors.New("disk on fire"))
		v.at(0).must(tick(aaa, unit))
		elapse(50 * ms)
		v.breaks(nil)
		synctest.Wait()
		before := time.Now()
		caughtUp(t, x, v)
		if took := time.Since(before); took > 100*ms {
			t.Errorf("took %v to go on", took)
		}
		elapse(time.Second)
		stop()
		wantSaid := []string{
			"WARN tca: following the journal does not work and is tried again",
			"INFO tca: following the journal works again",
			"WARN tca: following the journal does not work and is tried again",
			"INFO tca: following the journal works again",
		}
		if said := log.all(); !slices.Equal(said, wantSaid) {
			t.Errorf("said %s", strings.Join(said, "\n"))
		}
	})
}

func TestRunEndsWithItsContext(t *testing.T) {
	for _, tt := range []struct {
		name   string
		broken error
	}{{"while idle", nil}, {"while pausing", errors.New("broken")}} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				v := newVenue(t)
				v.breaks(tt.broken)
				o := v.options()
				o.Poll = time.Hour
				stop := run(t, open(t, o))
				elapse(4 * time.Second)
				before := time.Now()
				stop()
				if took := time.Since(before); took != 0 {
					t.Errorf("took %v", took)
				}
			})
		})
	}
}

func TestAReportWaitsForTheIndexAndThenSaysThatItIsBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := newVenue(t)
		v.at(0).must(tick(aaa, 100*unit))
		v.at(second).must(trade(1, aaa, matcher.Buy, 3))
		o := v.options()
		x := open(t, o)
		if x.Lag() != 2 || x.Applied() != 0 {
			t.Errorf("lag %d at %d, want 2 at 0", x.Lag(), x.Applied())
		}
		began := time.Now()
		_, err := x.Report(t.Context(), v.trades[0])
		if !errors.Is(err, ErrBehind) || time.Since(began) != time.Second {
			t.Errorf("after %v: %v, want ErrBehind after a second", time.Since(began), err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer cancel()
		_, err = x.Report(ctx, v.trades[0])
		if errors.Is(err, ErrBehind) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the caller's deadline: %v", err)
		}
		// A break while the caller waits is reported.
		time.AfterFunc(500*time.Millisecond, func() { run(t, x) })
		if r, err := x.Report(t.Context(), v.trades[0]); err != nil || r.ArrivalPrice != 100*unit {
			t.Errorf("%+v, %v", r, err)
		}
		if x.Lag() != 0 {
			t.Errorf("lag %d, want 0", x.Lag())
		}
	})
}

func TestCheckpointsAreTakenWhenIdleByCountAndAtClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := newVenue(t)
		o := v.options()
		o.CheckpointCommands, o.CheckpointInterval = 1000, 10*time.Second
		x := open(t, o)
		stop := run(t, x)
		saved := func() uint64 {
			fresh := o
			fresh.Dir = snatch(t, seeded(t), o.Dir)
			y := open(t, fresh)
			defer closeAll(t, y)
			return y.Applied()
		}
		check := func(what string, want uint64) {
			t.Helper()
			synctest.Wait()
			if got := saved(); got != want {
				t.Errorf("%s: checkpoint at %d, want %d", what, got, want)
			}
		}
		f := &flow{v: v, rnd: seeded(t)}
		f.steps(10)
		elapse(9 * time.Second)
		check("early", 0)
		elapse(2 * time.Second)
		check("idle", 10)
		f.steps(1000)
		elapse(time.Second)
		check("many commands", 1010)
		f.steps(7)
		elapse(time.Second)
		check("few commands", 1010)
		stop()
		closeAll(t, x, x)
		check("closed", 1017)
		if err := x.Run(t.Context()); !errors.Is(err, ErrClosed) {
			t.Errorf("run after close: %v", err)
		}
	})
}

func TestACheckpointThatCannotBeWrittenDoesNotStopTheIndex(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := newVenue(t)
		o := v.options()
		o.CheckpointInterval = time.Second
		log := &lines{}
		o.Logger = slog.New(log)
		x := open(t, o)
		obstacle := filepath.Join(o.Dir, checkpointName+".new")
		must.OK(t, os.Mkdir(obstacle, 0o700))
		run(t, x)
		for range 5 {
			v.must(tick(aaa, unit))
			elapse(2 * time.Second)
		}
		if x.Lag() != 0 {
			t.Errorf("lag %d", x.Lag())
		}
		must.OK(t, os.Remove(obstacle))
		elapse(2 * time.Second)
		synctest.Wait()
		want := []string{
			"WARN tca: taking checkpoints does not work and is tried again",
			"INFO tca: taking checkpoints works again",
		}
		if said := log.all(); !slices.Equal(said, want) {
			t.Errorf("said %q", said)
		}
	})
}

// TestAWriteThatFailsLeavesNothingToRead breaks the index off in the middle of a batch: it answers
// nothing, and continues from its checkpoint.
func TestAWriteThatFailsLeavesNothingToRead(t *testing.T) {
	for _, which := range []string{samplesName, arrivalsName} {
		t.Run(which, func(t *testing.T) {
			v := newVenue(t)
			f := &flow{v: v, rnd: seeded(t)}
			f.steps(3000)
			o := v.options()
			o.Patience = time.Millisecond
			x := open(t, o)
			follow(t, x, v)
			must.OK(t, x.save())
			f.steps(4000)
			shadow, err := x.attach(t.Context())
			must.OK(t, err)
			file := x.index.samples.file
			if which == arrivalsName {
				file = x.index.executions.file
			}
			good := file.f
			if file.f, err = os.Open(good.Name()); err != nil {
				t.Fatal(err)
			}
			if _, err := x.step(t.Context(), shadow); err == nil || !x.torn {
				t.Fatalf("got %v, want a write that fails", err)
			}
			if _, err := x.Report(t.Context(), v.trades[0]); !errors.Is(err, ErrBehind) {
				t.Errorf("report on a torn index: %v", err)
			}
			closeAll(t, file.f, shadow)
			file.f = good
			if err := x.mend(); err != nil || x.Applied() != 3000 {
				t.Fatalf("mended at %d: %v", x.Applied(), err)
			}
			follow(t, x, v)
			closeAll(t, x)
			fresh := o
			fresh.Dir = t.TempDir()
			y := open(t, fresh)
			follow(t, y, v)
			closeAll(t, y)
			sameFiles(t, o.Dir, fresh.Dir)
		})
	}
}

func TestCatchUpWaitsForAnIndexThatMustBeBuiltAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := newVenue(t)
		(&flow{v: v, rnd: seeded(t)}).steps(100)
		x := open(t, v.options())
		follow(t, x, v)
		x.damaged.Store(true)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := x.CatchUp(ctx, 100); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("caught up with a damaged index: %v", err)
		}
		follow(t, x, v)
		if x.damaged.Load() || x.Applied() != 100 {
			t.Errorf("still damaged at %d", x.Applied())
		}
	})
}

func TestOptionsThatCannotWorkAreRefused(t *testing.T) {
	v := newVenue(t)
	for name, change := range map[string]func(*Options){
		"no shadow":       func(o *Options) { o.Shadow = nil },
		"no durable head": func(o *Options) { o.Durable = nil },
		"no securities":   func(o *Options) { o.SecurityID = nil },
		"window":          func(o *Options) { o.Window = -1 },
		"a file for a folder": func(o *Options) {
			o.Dir = filepath.Join(o.Dir, "x")
			os.WriteFile(o.Dir, nil, 0o600)
		},
	} {
		o := v.options()
		change(&o)
		if x, err := Open(o); err == nil {
			t.Errorf("%s: opened", name)
			x.Close()
		}
	}
	x := open(t, v.options())
	if _, err := x.Summary(t.Context(), SummaryQuery{}); err == nil {
		t.Error("a summary without a database")
	}
}

func TestReportsRaceWithTheFollower(t *testing.T) {
	rnd := seeded(t)
	v := newVenue(t)
	(&flow{v: v, rnd: rnd}).steps(6000)
	o := v.options()
	o.Patience, o.CheckpointCommands = 3*time.Minute, 500
	oracle := newOracle(o.Window, v.events)
	x := open(t, o)
	v.become(0)
	run(t, x)
	var wg sync.WaitGroup
	for range 4 {
		var picks []store.Trade
		for range 25 {
			picks = append(picks, v.trades[rnd.IntN(len(v.trades))])
		}
		wg.Go(func() {
			for _, trade := range picks {
				if err := x.CatchUp(t.Context(), trade.Sequence); err != nil {
					t.Error(err)
				}
				r, err := x.Report(t.Context(), trade)
				if got, want := string(r.AppendJSON(nil)), oracle.report(trade); err != nil || got != want {
					t.Errorf("%v\n got %s\nwant %s", err, got, want)
				}
			}
		})
	}
	for at := uint64(0); at < 6000; at += 50 {
		v.become(at + 50)
		caughtUp(t, x, v)
	}
	wg.Wait()
}

// elapse lets time pass in a synctest bubble.
func elapse(d time.Duration) { <-time.After(d) }
