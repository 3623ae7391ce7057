package projection

import (
	"context"
	"errors"
	"testing"
	"time"

	"posttrade/sidecars/store"
	"posttrade/sidecars/store/storetest"
)

// running starts p.Run and returns the function that ends it, and its result.
func running(t *testing.T, p *Projection) (stop func() error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- p.Run(ctx) }()
	stop = func() error {
		cancel()
		err, open := <-done
		if open {
			close(done)
		}
		return err
	}
	t.Cleanup(func() { _ = stop() })
	return stop
}

// await waits until cond holds, and checks it again when Run has looked at the journal.
func await(t *testing.T, h *history, cond func() bool) {
	t.Helper()
	for !cond() {
		select {
		case <-h.looked:
		case <-t.Context().Done():
			t.Fatal("the test ended first")
		}
	}
}

// at reports whether p stands at the head of h.
func at(p *Projection, h *history) bool {
	trade, input := p.Projected()
	h.mu.Lock()
	defer h.mu.Unlock()
	return trade == h.trade && input == h.input
}

func TestRunFollowsTheHead(t *testing.T) {
	storetest.EachInFull(t, func(t *testing.T, db *store.DB) {
		random := seeded(t)
		h := newHistory(random, 1500)
		h.looked = make(chan struct{}, 1)
		var log diary
		o := options(h, db)
		o.Poll, o.Logger = time.Millisecond, log.logger()
		p := New(o)
		stop := running(t, p)
		for range 20 {
			await(t, h, func() bool { return at(p, h) })
			h.grow(random, random.IntN(20))
		}
		await(t, h, func() bool { return at(p, h) })
		if err := stop(); err != nil {
			t.Errorf("run: %v", err)
		}
		wantTable(t, db, rows(h.fills))
		if lines := log.all(); len(lines) != 1 || count(lines, "follows") != 1 {
			t.Errorf("logged %q", lines)
		}
	})
}

func TestRunEndsInTheMiddleOfAWait(t *testing.T) {
	storetest.EachInFull(t, func(t *testing.T, db *store.DB) {
		h := newHistory(seeded(t), 10)
		h.looked = make(chan struct{}, 1)
		o := options(h, db)
		o.Poll = 24 * time.Hour
		p := New(o)
		stop := running(t, p)
		await(t, h, func() bool { return at(p, h) })
		if err := stop(); err != nil {
			t.Errorf("run: %v", err)
		}
		wantTable(t, db, rows(h.fills))
	})
}

// impatient is a database that gives up at once when it meets a lock.
func impatient(t *testing.T, d store.Dialect) *store.DB {
	o := storetest.Options(t, d)
	o.BusyTimeout = 20 * time.Millisecond
	return storetest.OpenWith(t, o)
}

func TestLockedDatabaseIsWaitedFor(t *testing.T) {
	for _, d := range storetest.Dialects(t) {
		t.Run(d.String(), func(t *testing.T) {
			db := impatient(t, d)
			random := seeded(t)
			h := newHistory(random, 700)
			h.looked = make(chan struct{}, 1)
			var log diary
			o := options(h, db)
			o.Poll, o.Logger = time.Millisecond, log.logger()
			p := New(o)
			stop := running(t, p)
			await(t, h, func() bool { return at(p, h) })
			enough := uint64(size(3, 1)) // the pauses between failures double
			for outage := range uint64(2) {
				unlock := storetest.Lock(t, db)
				h.grow(random, 600)
				failures := p.Metrics().Failures + enough
				await(t, h, func() bool { return p.failed.Load() >= failures })
				if booked, err := p.BookLegacy(t.Context(), bodyAs("ext-1", h.fills[len(h.fills)-1])); booked ||
					!errors.Is(err, store.ErrUnavailable) {
					t.Errorf("message while locked: %v, %v", booked, err)
				}
				wantPhase(t, p, failing)
				wantProjected(t, p, 700+600*outage, p.shown.input)
				wantTable(t, db, rows(h.fills[:700+600*outage]))
				unlock()
				await(t, h, func() bool { return at(p, h) })
				wantTable(t, db, rows(h.fills))
				wantPhase(t, p, following)
			}
			if err := stop(); err != nil {
				t.Errorf("run: %v", err)
			}
			lines := log.all()
			if count(lines, "follows") != 3 || count(lines, "interrupted") != 2 || len(lines) != 5 {
				t.Errorf("logged more or less than each change once: %q", lines)
			}
			if m := p.Metrics(); m.Booked != 1900 || m.Duplicates != 0 {
				t.Errorf("metrics %+v", m)
			}
		})
	}
}

func TestRunEndsWhileItWaits(t *testing.T) {
	for _, d := range storetest.Dialects(t) {
		t.Run(d.String(), func(t *testing.T) {
			o := storetest.Options(t, d)
			o.BusyTimeout = time.Hour
			db := storetest.OpenWith(t, o)
			h := newHistory(seeded(t), 10)
			h.looked = make(chan struct{}, 1)
			p := New(options(h, db))
			unlock := storetest.Lock(t, db) // Run waits for it inside a transaction, for an hour
			stop := running(t, p)
			<-h.looked
			if err := stop(); err != nil {
				t.Errorf("run: %v", err)
			}
			unlock()
			if got := table(t, db); len(got) != 0 {
				t.Errorf("%d rows after a stop", len(got))
			}

			h.fail = errors.New("broken") // held up by the pause after a failure
			p = New(options(h, db))
			stop = running(t, p)
			await(t, h, func() bool { return p.failed.Load() > 0 })
			if err := stop(); err != nil {
				t.Errorf("run: %v", err)
			}
		})
	}
}

func TestNewNeedsItsParts(t *testing.T) {
	db := storetest.Open(t, store.SQLite)
	whole := options(&history{block: 1}, db)
	for name, without := range map[string]func(*Options){
		"Journal": func(o *Options) { o.Journal = nil }, "DB": func(o *Options) { o.DB = nil },
		"Ticker":         func(o *Options) { o.Ticker = nil },
		"SettlementDate": func(o *Options) { o.SettlementDate = nil },
	} {
		o := whole
		without(&o)
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("taken without %s", name)
				}
			}()
			New(o)
		}()
	}
	whole.Poll, whole.BatchRows, whole.Now, whole.Logger = 0, 0, nil, nil
	if o := New(whole).o; o.Poll != defaultPoll || o.BatchRows != defaultBatchRows || o.Now == nil ||
		o.Logger == nil {
		t.Errorf("defaults %+v", o)
	}
}
