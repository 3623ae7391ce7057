package settlement

import (
	"bytes"
	"context"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"posttrade/ring/must"
	"posttrade/sidecars/store"
	"posttrade/sidecars/store/storetest"
)

// The pauses of Run, its log and its end, by a clock that only the test moves.
func TestRunPausesAndGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		s := New(Options{DB: &store.DB{}, Calendar: mustCalendar(t, "weekdays", time.UTC, 1),
			Interval: 3 * time.Second,
			Logger:   slog.New(slog.NewTextHandler(&log, nil))})
		start := time.Now()
		var starts []time.Duration
		s.write = func(context.Context, func(*store.Tx) error) error {
			starts = append(starts, time.Since(start))
			if n := len(starts); n > 2 && n <= 11 || n == 13 {
				return errCut
			}
			return nil
		}
		ctx, cancel := context.WithCancel(t.Context())
		s.seen = func(error) {
			if len(starts) == 15 {
				cancel()
			}
		}
		must.OK(t, s.Run(ctx))
		var gaps []time.Duration
		for i := range starts[1:] {
			gaps = append(gaps, (starts[i+1] - starts[i]).Round(time.Millisecond))
		}
		const ms = time.Millisecond
		want := []time.Duration{3000 * ms, 3000 * ms, 100 * ms, 200 * ms, 400 * ms, 500 * ms,
			500 * ms, 500 * ms,
			500 * ms, 500 * ms, 500 * ms, 3000 * ms, 100 * ms, 3000 * ms}
		if starts[0] != 0 || !slices.Equal(gaps, want) {
			t.Errorf("first sweep after %s, then after %v, want %v", starts[0], gaps, want)
		}
		if lines := strings.Count(log.String(), "\n"); lines != 4 ||
			strings.Count(log.String(), "level=WARN") != 2 {
			t.Errorf("log of two interruptions:\n%s", &log)
		}
		if got := s.Metrics(); got.Failures != 10 || got.LastSweepMillis == 0 {
			t.Errorf("metrics %+v, want 10 failures", got)
		}
	})
}

func TestRunEndsWithinASweep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		s := New(Options{DB: &store.DB{}, Calendar: mustCalendar(t, "weekdays", time.UTC, 1),
			Logger: slog.New(slog.NewTextHandler(&log, nil))})
		ctx, cancel := context.WithCancel(t.Context())
		s.write = func(ctx context.Context, _ func(*store.Tx) error) error {
			cancel()
			<-ctx.Done()
			return ctx.Err()
		}
		if err := s.Run(ctx); err != nil || log.Len() != 0 || s.Metrics() != (Metrics{}) {
			t.Errorf("run: %v, log %q, metrics %+v", err, &log, s.Metrics())
		}
	})
}

// Run against a real database: locked when it begins, and settled once it is free.
func TestRunSettlesOnceTheDatabaseIsFree(t *testing.T) {
	for _, dialect := range storetest.Dialects(t) {
		t.Run(dialect.String(), func(t *testing.T) {
			o := storetest.Options(t, dialect)
			o.BusyTimeout = 20 * time.Millisecond
			db := storetest.OpenWith(t, o)
			insert(t, db, aTrade(1, mustDate(t, "2026-03-06")), aTrade(2, mustDate(t, "2026-03-09")))
			c := newClock(noon("2026-03-06"))
			s := New(Options{DB: db, Calendar: mustCalendar(t, "XNYS", newYork(t), 1), Now: c.Now,
				Interval: time.Millisecond})
			ctx, cancel := context.WithCancel(bounded(t))
			unlock := storetest.Lock(t, db)
			s.seen = func(err error) {
				switch s.Metrics() {
				case Metrics{Failures: 2}:
					unlock()
				case Metrics{Failures: s.failures.Load(), Swept: 1, LastSweepMillis: c.Now().UnixMilli()}:
					c.set(noon("2026-03-09"))
				}
				if s.Metrics().Swept == 2 {
					cancel()
				}
			}
			if err := s.Run(ctx); err != nil || s.Metrics().Swept != 2 {
				t.Errorf("run: %v, swept %d, want 2", err, s.Metrics().Swept)
			}
			for _, row := range rows(t, db) {
				if row.Status != store.Settled {
					t.Errorf("row %+v", row)
				}
			}
		})
	}
}
