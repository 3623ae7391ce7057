package projection

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"

	"posttrade/ring/must"
	"posttrade/sidecars/store"
	"posttrade/sidecars/store/storetest"
)

// failCommits makes every transaction that has written its rows and two of the
// cursors fail at the third, until heal.
func failCommits(t *testing.T, db *store.DB) (heal func()) {
	t.Helper()
	if db.Dialect() == store.Postgres {
		storetest.Edit(t, db,
			"alter table cursors add constraint no_mark check (name <> 'projection.mark') not valid")
		return func() { storetest.Edit(t, db, "alter table cursors drop constraint no_mark") }
	}
	storetest.Edit(t, db, `create trigger no_mark before insert on cursors when
		new.name = 'projection.mark'
		begin select raise(abort, 'no mark'); end`)
	return func() { storetest.Edit(t, db, "drop trigger no_mark") }
}

func TestFailureInsideATransactionLeavesNothing(t *testing.T) {
	storetest.EachInFull(t, func(t *testing.T, db *store.DB) {
		h := newHistory(seeded(t), 600)
		p := New(options(h, db))
		must.Get(p.Step(t.Context()))(t)
		heal := failCommits(t, db)
		for range 3 {
			if n, err := p.Step(t.Context()); n != 0 || err == nil || final(err) {
				t.Fatalf("step: %d rows, %v", n, err)
			}
			wantTable(t, db, rows(h.fills[:256]))
			if got := cursor(t, db, cursorTrades); got != 256 {
				t.Fatalf("cursor %d, want 256", got)
			}
			wantProjected(t, p, 256, h.fills[255].InputSeq-1)
		}
		if m := p.Metrics(); m.Booked != 256 || m.Failures != 3 || m.LagRecords != 344 {
			t.Errorf("metrics %+v", m)
		}
		heal()
		drain(t, p)
		wantTable(t, db, rows(h.fills))
		if m := p.Metrics(); m.Booked != 600 || m.Duplicates != 0 {
			t.Errorf("metrics %+v", m)
		}
	})
}

func TestCursorMovedBySomebodyElse(t *testing.T) {
	storetest.EachInFull(t, func(t *testing.T, db *store.DB) {
		random := seeded(t)
		h := newHistory(random, 900)
		p, other := New(options(h, db)), New(options(h, db))
		must.Get(p.Step(t.Context()))(t)
		for range 2 { // now the other one is ahead, as after an attempt with an unknown outcome
			must.Get(other.Step(t.Context()))(t)
		}
		if n, err := p.Step(t.Context()); n != 132 || err != nil {
			t.Fatalf("step behind another projection: %d rows, %v, want the last 132", n, err)
		}
		wantTable(t, db, rows(h.fills))
		if m := p.Metrics(); m.Booked != 388 || m.Duplicates != 0 {
			t.Errorf("metrics %+v", m)
		}

		// By hand, back: the fills are booked again, which changes nothing.
		storetest.Edit(t, db, "update trades set quantity = 5, status = 'Settled' where trade_seq = 450")
		before := table(t, db)
		setCursor(t, db, cursorTrades, 400)
		h.grow(random, 10)
		if n, err := p.Step(t.Context()); n != 256 || err != nil {
			t.Fatalf("step: %d rows, %v", n, err)
		}
		wantProjected(t, p, 656, h.fills[655].InputSeq-1)
		drain(t, p)
		wantTable(t, db, append(before, rows(h.fills[900:])...))
		if m := p.Metrics(); m.Booked != 398 || m.Duplicates != 500 {
			t.Errorf("metrics %+v", m)
		}

		// By hand, forward: an operator has decided to skip the fills between, and recon reports them.
		h.grow(random, 300)
		setCursor(t, db, cursorTrades, 1000)
		drain(t, New(options(h, db)))
		wantTable(t, db, slices.Concat(before, rows(h.fills[900:910]), rows(h.fills[1000:])))
	})
}

func TestTwoProjectionsOnOneTable(t *testing.T) {
	trades := size(6000, 1500)
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		h := newHistory(seeded(t), trades)
		twin := must.Get(db.Twin())(t)
		defer twin.Close()
		both := []*Projection{New(options(h, db)), New(options(h, twin))}
		var wait sync.WaitGroup
		for _, p := range both {
			wait.Go(func() {
				for p.Lag() > 0 {
					if _, err := p.Step(t.Context()); err != nil && !errors.Is(err, store.ErrUnavailable) {
						t.Error(err)
						return
					}
				}
			})
		}
		wait.Wait()
		wantTable(t, db, rows(h.fills))
		booked, duplicates := uint64(0), uint64(0)
		for _, p := range both {
			m := p.Metrics()
			booked, duplicates = booked+m.Booked, duplicates+m.Duplicates
		}
		if booked != uint64(trades) || duplicates != 0 {
			t.Errorf("%d rows booked and %d met again, want %d and 0", booked, duplicates, trades)
		}
		if got := cursor(t, db, cursorTrades); got != uint64(trades) {
			t.Errorf("cursor %d, want %d", got, trades)
		}
	})
}

func TestStepEndsWithItsContext(t *testing.T) {
	storetest.EachInFull(t, func(t *testing.T, db *store.DB) {
		h := newHistory(seeded(t), 100)
		var log diary
		o := options(h, db)
		o.Logger = log.logger()
		p := New(o)
		ctx, cancel := context.WithCancel(t.Context())
		p.o.SettlementDate = func(millis int64) store.Date { // in the middle of a batch
			cancel()
			return settlesOn(millis)
		}
		if n, err := p.Step(ctx); n != 0 || err == nil {
			t.Errorf("step: %d rows, %v", n, err)
		}
		if lines, m := log.all(), p.Metrics(); len(lines) != 0 || m.Failures != 0 {
			t.Errorf("a stop is no failure: %q, %+v", lines, m)
		}
		p.o.SettlementDate = settlesOn
		drain(t, p)
		wantTable(t, db, rows(h.fills))
	})
}

// TestAnyInterleavingGivesTheSameTable mixes batches, failures, restarts, cursors
// moved back and messages, and compares the table after every step.
func TestAnyInterleavingGivesTheSameTable(t *testing.T) {
	steps := 300
	if testing.Short() {
		steps = 60
	}
	storetest.EachInFull(t, func(t *testing.T, db *store.DB) {
		random := seeded(t)
		h := newHistory(random, 50)
		o := options(h, db)
		o.BatchRows = 16
		p := New(o)
		want := map[uint64]store.Trade{}
		outsiders, numbered, highest := map[string]bool{}, uint64(0), uint64(0)
		cursorAt := uint64(0)
		var heal func()
		for step := range steps {
			switch random.IntN(10) {
			case 0, 1, 2, 3:
				n, err := p.Step(t.Context())
				if failed := err != nil; failed != (heal != nil && cursorAt < h.trade) {
					t.Fatalf("step %d: %v", step, err)
				}
				for _, f := range h.fills[cursorAt : cursorAt+uint64(n)] {
					if _, there := want[f.TradeSeq]; !there {
						want[f.TradeSeq] = row(f)
					}
				}
				cursorAt += uint64(n)
			case 4:
				if heal == nil {
					heal = failCommits(t, db)
				} else {
					heal()
					heal = nil
				}
			case 5:
				p = New(o) // a restart
			case 6:
				cursorAt = random.Uint64N(cursorAt + 1)
				setCursor(t, db, cursorTrades, cursorAt)
				p = New(o)
			case 7:
				h.grow(random, random.IntN(30))
			case 8, 9:
				var bodies [][]byte
				booked := 0
				for range 1 + random.IntN(6) {
					f := h.fills[random.IntN(len(h.fills))]
					id := fmt.Sprintf("ext-%d", f.TradeSeq)
					bodies = append(bodies, body(f), bodyAs(id, f))
					if outsiders[id] {
						continue
					}
					outsiders[id] = true
					at := numbered + uint64(len(bodies)/2)
					want[store.FirstExternal+at-1] = outside(at, id, f)
					booked++
					highest = at
				}
				numbered = highest
				n, malformed, err := p.BookBatch(t.Context(), bodies)
				if n != booked || malformed != nil || err != nil {
					t.Fatalf("step %d: booked %d, %v, %v, want %d", step, n, malformed, err, booked)
				}
			}
			wantTable(t, db, sorted(want))
			if trade, input := p.Projected(); trade > cursorAt || input > h.input {
				t.Fatalf("step %d: projected %d, %d beyond %d, %d", step, trade, input, cursorAt, h.input)
			}
		}
		if heal != nil {
			heal()
		}
		drain(t, p)
		for _, f := range h.fills {
			if _, there := want[f.TradeSeq]; !there {
				want[f.TradeSeq] = row(f)
			}
		}
		wantTable(t, db, sorted(want))
		wantProjected(t, p, h.trade, h.input)
	})
}

// sorted is the rows by trade sequence.
func sorted(m map[uint64]store.Trade) []store.Trade {
	var out []store.Trade
	for _, seq := range slices.Sorted(maps.Keys(m)) {
		out = append(out, m[seq])
	}
	return out
}
