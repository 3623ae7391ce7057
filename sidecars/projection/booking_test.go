package projection

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"posttrade/sidecars/store"
	"posttrade/sidecars/store/storetest"
)

func TestMessageGivesTheRowOfTheFill(t *testing.T) {
	storetest.EachInFull(t, func(t *testing.T, db *store.DB) {
		h := newHistory(seeded(t), 40)
		p := New(options(h, db))
		var want []store.Trade
		for _, f := range h.fills[:20] {
			want = append(want, legacyRow(f))
			for again := range 3 {
				if booked, err := p.BookLegacy(t.Context(), body(f)); booked != (again == 0) || err != nil {
					t.Fatalf("message %d of %d: booked %v, %v", again, f.TradeSeq, booked, err)
				}
			}
		}
		wantTable(t, db, want)
		drain(t, p) // the rows that are there stay as they are
		want = append(want, rows(h.fills[20:])...)
		wantTable(t, db, want)
		for _, f := range h.fills {
			if booked, err := p.BookLegacy(t.Context(), body(f)); booked || err != nil {
				t.Fatalf("message of projected %d: booked %v, %v", f.TradeSeq, booked, err)
			}
		}
		wantTable(t, db, want)
		if m := p.Metrics(); m.Booked != 20 || m.Duplicates != 20 || m.LegacyBooked != 20 ||
			m.LegacyDuplicates != 80 || m.Failures != 0 {
			t.Errorf("metrics %+v", m)
		}
		if got := cursor(t, db, cursorTrades); got != 40 {
			t.Errorf("cursor %d, want 40", got)
		}
	})
}

func TestBatchOfMessages(t *testing.T) {
	storetest.EachInFull(t, func(t *testing.T, db *store.DB) {
		var log diary
		h := newHistory(seeded(t), 9)
		o := options(h, db)
		o.Logger = log.logger()
		p := New(o)
		f := h.fills
		other := f[4] // the same id with another price: the first one counts
		other.Px++
		bodies := [][]byte{body(f[4]), []byte(`{"secret":1}`), body(f[2]), body(f[4]), body(other),
			nil, body(f[0])}
		booked, malformed, err := p.BookBatch(t.Context(), bodies)
		if booked != 3 || err != nil || len(malformed) != len(bodies) {
			t.Fatalf("booked %d, %v, %v", booked, malformed, err)
		}
		for i, err := range malformed {
			if bad := i == 1 || i == 5; bad != errors.Is(err, ErrMalformed) || !bad && err != nil {
				t.Errorf("message %d: %v", i, err)
			}
		}
		wantTable(t, db, []store.Trade{legacyRow(f[0]), legacyRow(f[2]), legacyRow(f[4])})
		if m := p.Metrics(); m.LegacyBooked != 3 || m.LegacyMalformed != 2 || m.LegacyDuplicates != 2 {
			t.Errorf("metrics %+v", m)
		}
		if n := count(log.all(), "level=WARN"); n != 2 {
			t.Errorf("%d lines, want one for each malformed message: %q", n, log.all())
		}
		if booked, malformed, err := p.BookBatch(t.Context(), nil); booked != 0 ||
			malformed != nil || err != nil {
			t.Errorf("no messages: %d, %v, %v", booked, malformed, err)
		}
	})
}

func TestMessageOutlivesTheDatabase(t *testing.T) {
	storetest.EachInFull(t, func(t *testing.T, db *store.DB) {
		h := newHistory(seeded(t), 3)
		p := New(options(h, db))
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if booked, err := p.BookLegacy(ctx, body(h.fills[0])); booked || err == nil ||
			errors.Is(err, ErrMalformed) {
			t.Errorf("with its context ended: %v, %v", booked, err)
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		booked, err := p.BookLegacy(t.Context(), body(h.fills[0]))
		if booked || !errors.Is(err, store.ErrUnavailable) || errors.Is(err, ErrMalformed) {
			t.Errorf("without a database: %v, %v", booked, err)
		}
		n, malformed, err := p.BookBatch(t.Context(), [][]byte{body(h.fills[0]), []byte("{")})
		if n != 0 || !errors.Is(err, store.ErrUnavailable) || malformed[0] != nil ||
			!errors.Is(malformed[1], ErrMalformed) {
			t.Errorf("without a database: %d, %v, %v", n, malformed, err)
		}
		if m := p.Metrics(); m.Failures != 2 || m.LegacyBooked != 0 {
			t.Errorf("metrics %+v", m)
		}
	})
}

// TestConcurrentDeliveriesBookOnce has 16 goroutines deliver every trade as a
// message, each in an order of its own and in batches of its own, while the
// projection books the same trades from the journal.
func TestConcurrentDeliveriesBookOnce(t *testing.T) {
	trades, workers := size(10_000, 400), 16
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		random := seeded(t)
		h := newHistory(random, trades)
		o := options(h, db)
		o.BatchRows = 1024
		p := New(o)
		bodies := make([][]byte, trades)
		for i, f := range h.fills {
			bodies[i] = body(f)
		}
		var booked atomic.Int64
		var wait sync.WaitGroup
		for range workers {
			mine := rand.New(rand.NewPCG(random.Uint64(), 4))
			wait.Go(func() {
				order := mine.Perm(trades)
				for len(order) > 0 {
					n := min(1+mine.IntN(trades/10), len(order))
					batch := make([][]byte, n)
					for i, at := range order[:n] {
						batch[i] = bodies[at]
					}
					order = order[n:]
					for {
						got, malformed, err := p.BookBatch(t.Context(), batch)
						if errors.Is(err, store.ErrUnavailable) {
							continue // delivered again
						}
						if malformed != nil || err != nil {
							t.Errorf("malformed %v, error %v", malformed, err)
							return
						}
						booked.Add(int64(got))
						break
					}
				}
			})
		}
		wait.Go(func() {
			for p.Lag() > 0 {
				if _, err := p.Step(t.Context()); err != nil && !errors.Is(err, store.ErrUnavailable) {
					t.Error(err)
					return
				}
			}
		})
		wait.Wait()
		got := table(t, db)
		if len(got) != trades {
			t.Fatalf("%d rows, want %d", len(got), trades)
		}
		fromJournal := 0
		for i, f := range h.fills {
			switch got[i] {
			case row(f):
				fromJournal++
			case legacyRow(f):
			default:
				t.Fatalf("row %d is neither path's: %+v", i, got[i])
			}
		}
		m := p.Metrics()
		if m.Booked+m.LegacyBooked != uint64(trades) || m.Booked != uint64(fromJournal) ||
			booked.Load() != int64(m.LegacyBooked) {
			t.Errorf("%d rows from the journal, %d booked by messages, metrics %+v", fromJournal,
				booked.Load(), m)
		}
		if m.Booked+m.Duplicates != uint64(trades) ||
			m.LegacyBooked+m.LegacyDuplicates != uint64(trades*workers) {
			t.Errorf("deliveries do not add up: %+v", m)
		}
		t.Logf("%d trades, %d deliveries: %d from the journal, %d from messages", trades,
			trades*(workers+1), m.Booked, m.LegacyBooked)
	})
}
