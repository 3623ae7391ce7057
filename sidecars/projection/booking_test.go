package projection

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"posttrade/matcher"
	"posttrade/ring/must"
	"posttrade/sidecars/store"
	"posttrade/sidecars/store/storetest"
)

// TestMessageOfATradeOfTheJournalChangesNothing: an id that the engine has given is a no-op on
// either side of the projection's own path, and one that it has yet to give is refused.
func TestMessageOfATradeOfTheJournalChangesNothing(t *testing.T) {
	storetest.EachInFull(t, func(t *testing.T, db *store.DB) {
		random := seeded(t)
		h := newHistory(random, 40)
		p := New(options(h, db))
		for _, f := range h.fills {
			if booked, err := p.BookLegacy(t.Context(), body(f)); booked || err != nil {
				t.Fatalf("message of %d: booked %v, %v", f.TradeSeq, booked, err)
			}
		}
		wantTable(t, db, nil)
		next := newHistory(random, 41).fills[40]
		for _, id := range []string{"trd-41", "trd-42", "trd-9223372036854775807"} {
			booked, err := p.BookLegacy(t.Context(), bodyAs(id, next))
			if booked || !errors.Is(err, ErrForeignID) || errors.Is(err, ErrMalformed) ||
				!strings.Contains(err.Error(), "id="+id+" last trade=40") {
				t.Fatalf("message of %s: booked %v, %v", id, booked, err)
			}
		}
		drain(t, p)
		for _, f := range h.fills {
			f.Px++ // other terms change nothing either
			if booked, err := p.BookLegacy(t.Context(), body(f)); booked || err != nil {
				t.Fatalf("message of projected %d: booked %v, %v", f.TradeSeq, booked, err)
			}
		}
		wantTable(t, db, rows(h.fills))
		h.grow(random, 1) // the engine gives the id
		drain(t, p)
		if booked, err := p.BookLegacy(t.Context(), body(next)); booked || err != nil {
			t.Fatalf("message of the trade that came: booked %v, %v", booked, err)
		}
		wantTable(t, db, rows(h.fills))
		if m := p.Metrics(); m.Booked != 41 || m.Duplicates != 0 || m.LegacyBooked != 0 ||
			m.LegacyDuplicates != 81 || m.LegacyForeign != 3 || m.LegacyMalformed != 0 ||
			m.Failures != 0 {
			t.Errorf("metrics %+v", m)
		}
	})
}

// TestBookingsFromOutsideAreBookedOnce books ids of its own kind, above every trade sequence, and
// leaves the projection as it is.
func TestBookingsFromOutsideAreBookedOnce(t *testing.T) {
	storetest.EachInFull(t, func(t *testing.T, db *store.DB) {
		h := newHistory(seeded(t), 40)
		p := New(options(h, db))
		drain(t, p)
		want := rows(h.fills)
		for n, f := range h.fills[:20] {
			id := fmt.Sprintf("ext-%d", f.TradeSeq)
			want = append(want, outside(uint64(n+1), id, f))
			for again := range 3 {
				booked, err := p.BookLegacy(t.Context(), bodyAs(id, f))
				if booked != (again == 0) || err != nil {
					t.Fatalf("message %d of %s: booked %v, %v", again, id, booked, err)
				}
				f.Px++ // the first one counts
			}
			if n == 10 {
				p = New(options(h, db)) // a restart
				drain(t, p)
			}
		}
		wantTable(t, db, want)
		wantProjected(t, p, h.trade, h.input)
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
		bodies := [][]byte{bodyAs("ext-b", f[4]), []byte(`{"secret":1}`), bodyAs("ext-a", f[2]),
			bodyAs("ext-b", f[4]), bodyAs("ext-b", other), nil, bodyAs("ext-c", f[0]), body(f[7]),
			bodyAs("trd-10", f[8])}
		booked, refused, err := p.BookBatch(t.Context(), bodies)
		if booked != 3 || err != nil || len(refused) != len(bodies) {
			t.Fatalf("booked %d, %v, %v", booked, refused, err)
		}
		for i, err := range refused {
			want := map[int]error{1: ErrMalformed, 5: ErrMalformed, 8: ErrForeignID}[i]
			if !errors.Is(err, want) || want == nil && err != nil {
				t.Errorf("message %d: %v, want %v", i, err, want)
			}
		}
		wantTable(t, db, []store.Trade{outside(1, "ext-b", f[4]), outside(2, "ext-a", f[2]),
			outside(5, "ext-c", f[0])})
		if m := p.Metrics(); m.LegacyBooked != 3 || m.LegacyMalformed != 2 ||
			m.LegacyDuplicates != 3 || m.LegacyForeign != 1 {
			t.Errorf("metrics %+v", m)
		}
		if n := count(log.all(), "level=WARN"); n != 0 { // the caller logs what it gets
			t.Errorf("%d lines about refused messages: %q", n, log.all())
		}
		if booked, refused, err := p.BookBatch(t.Context(), nil); booked != 0 ||
			refused != nil || err != nil {
			t.Errorf("no messages: %d, %v, %v", booked, refused, err)
		}
	})
}

func TestMessageOutlivesTheDatabase(t *testing.T) {
	storetest.EachInFull(t, func(t *testing.T, db *store.DB) {
		h := newHistory(seeded(t), 3)
		p := New(options(h, db))
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if booked, err := p.BookLegacy(ctx, bodyAs("ext-1", h.fills[0])); booked || err == nil ||
			errors.Is(err, ErrMalformed) {
			t.Errorf("with its context ended: %v, %v", booked, err)
		}
		must.OK(t, db.Close())
		booked, err := p.BookLegacy(t.Context(), bodyAs("ext-1", h.fills[0]))
		if booked || !errors.Is(err, store.ErrUnavailable) || errors.Is(err, ErrMalformed) {
			t.Errorf("without a database: %v, %v", booked, err)
		}
		n, malformed, err := p.BookBatch(t.Context(), [][]byte{bodyAs("ext-1", h.fills[0]), []byte("{")})
		if n != 0 || !errors.Is(err, store.ErrUnavailable) || malformed[0] != nil ||
			!errors.Is(malformed[1], ErrMalformed) {
			t.Errorf("without a database: %d, %v, %v", n, malformed, err)
		}
		if m := p.Metrics(); m.Failures != 2 || m.LegacyBooked != 0 {
			t.Errorf("metrics %+v", m)
		}
	})
}

// TestConcurrentDeliveriesBookOnce has 16 goroutines deliver every booking as a message, each in an
// order of its own and in batches of its own, through two consumers, while the projection books
// trades from the journal.
func TestConcurrentDeliveriesBookOnce(t *testing.T) {
	trades, workers := size(10_000, 400), 16
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		random := seeded(t)
		h := newHistory(random, trades)
		o := options(h, db)
		o.BatchRows = 1024
		both := [...]*Projection{New(o), New(o)} // the old and the new leader
		bodies := make([][]byte, trades)
		for i, f := range h.fills {
			bodies[i] = bodyAs(fmt.Sprintf("ext-%d", f.TradeSeq), f)
		}
		var booked atomic.Int64
		var wait sync.WaitGroup
		for worker := range workers {
			mine, p := rand.New(rand.NewPCG(random.Uint64(), 4)), both[worker%2]
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
						got, refused, err := p.BookBatch(t.Context(), batch)
						if errors.Is(err, store.ErrUnavailable) {
							continue // delivered again
						}
						if refused != nil || err != nil {
							t.Errorf("refused %v, error %v", refused, err)
							return
						}
						booked.Add(int64(got))
						break
					}
				}
			})
		}
		wait.Go(func() {
			for both[0].Lag() > 0 {
				if _, err := both[0].Step(t.Context()); err != nil && !errors.Is(err, store.ErrUnavailable) {
					t.Error(err)
					return
				}
			}
		})
		wait.Wait()
		got := table(t, db)
		if len(got) != 2*trades {
			t.Fatalf("%d rows, want %d", len(got), 2*trades)
		}
		terms := map[string]matcher.Fill{}
		for i, f := range h.fills {
			if got[i] != row(f) {
				t.Fatalf("row %d: %+v", i, got[i])
			}
			terms[fmt.Sprintf("ext-%d", f.TradeSeq)] = f
		}
		for _, r := range got[trades:] {
			if r != outside(r.Seq-store.FirstExternal+1, r.ID, terms[r.ID]) {
				t.Fatalf("booking from outside: %+v", r)
			}
			delete(terms, r.ID)
		}
		if n := both[0].Metrics().LegacyBooked + both[1].Metrics().LegacyBooked; n != uint64(trades) ||
			booked.Load() != int64(trades) || len(terms) != 0 {
			t.Errorf("%d and %d booked, %d not", n, booked.Load(), len(terms))
		}
	})
}
