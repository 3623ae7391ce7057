package projection

import (
	"sync/atomic"
	"testing"
	"time"

	"posttrade/matcher"
	"posttrade/sidecars/pace"
	"posttrade/sidecars/store"
	"posttrade/sidecars/store/storetest"
)

// head is a source with a head only.
type head uint64

func (h head) Head() (inputSeq, tradeSeq uint64) {
	return uint64(h), uint64(h)
}
func (h head) Fills(from uint64, fn func(fills []matcher.Fill) error) error { return nil }

func TestProjectionRestsWhileTradesCome(t *testing.T) {
	const took = 30 * time.Millisecond
	for _, tt := range []struct {
		name   string
		rest   int
		rows   int
		before uint64
		want   time.Duration
	}{
		{"trades came meanwhile", 0, 8192, 90, 4 * took},
		{"a few rows are little work, whatever they waited for", 0, 1, 99, pace.Rest(4, took, 1)},
		{"as long as it is told to", 2, 8192, 90, 2 * took},
		{"nothing was written", 0, 0, 90, 0},
		{"no trade came meanwhile", 0, 8192, 100, 0},
		{"not at all", -1, 8192, 90, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := New(Options{Journal: head(100), Rest: tt.rest, DB: &store.DB{},
				Ticker:         func(uint32) string { return "" },
				SettlementDate: func(int64) store.Date { return 0 }})
			if got := p.rest(tt.rows, tt.before, took); got != tt.want {
				t.Errorf("rests %v, want %v", got, tt.want)
			}
		})
	}
}

// A database stalls for minutes, by a clock that only the test moves: the batch under way is booked
// when the database answers again, and the next one follows at once.
func TestProjectionGoesOnWhenAStalledDatabaseComesBack(t *testing.T) {
	for _, d := range storetest.Dialects(t) {
		t.Run(d.String(), func(t *testing.T) {
			o := storetest.Options(t, d)
			o.BusyTimeout = time.Hour
			stall(t, storetest.OpenWith(t, o), nil)
		})
	}
}

// The same with a server behind a network that drops everything.
func TestProjectionGoesOnWhenASilentNetworkComesBack(t *testing.T) {
	for _, d := range storetest.Dialects(t) {
		if d == store.Postgres {
			db, network := storetest.Cut(t)
			stall(t, db, network)
		}
	}
}

// stall stops the database, with a lock where there is no network.
func stall(t *testing.T, db *store.DB, network *storetest.Proxy) {
	random := seeded(t)
	h := newHistory(random, 700)
	h.looked = make(chan struct{}, 1)
	p := New(options(h, db))
	var clock atomic.Int64
	p.clock = func() time.Time { return time.Unix(0, clock.Load()) }
	rests := make(chan time.Duration, 64)
	p.rested = func(d time.Duration) { rests <- d }
	running(t, p)
	await(t, h, func() bool { return at(p, h) })
	release := func() { network.Heal() }
	if network == nil {
		release = storetest.Lock(t, db)
	} else {
		network.Hold()
	}
	readings := h.readings()
	h.grow(random, 300)
	await(t, h, func() bool { return h.readings() > readings }) // a step has these fills and waits
	clock.Add(int64(3 * time.Minute))
	h.grow(random, 300)
	release()
	select {
	case rest := <-rests:
		if rest > pace.LongestRest {
			t.Fatalf("rests %v after a stall of three minutes", rest)
		}
	case <-t.Context().Done():
		t.Fatal("the test ended first")
	}
	await(t, h, func() bool { return at(p, h) })
	wantTable(t, db, rows(h.fills))
}
