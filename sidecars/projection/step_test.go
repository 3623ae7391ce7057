package projection

import (
	"errors"
	"strings"
	"testing"

	"posttrade/matcher"
	"posttrade/ring/must"
	"posttrade/sidecars/store"
	"posttrade/sidecars/store/storetest"
)

func TestStepProjectsEveryFillOnce(t *testing.T) {
	storetest.EachInFull(t, func(t *testing.T, db *store.DB) {
		random, all := seeded(t), size(3000, 1000)
		h := newHistory(random, all)
		o := options(h, db)
		p := New(o)
		wantPhase(t, p, starting)
		if lag := p.Lag(); lag != uint64(all) {
			t.Errorf("lag %d before the first step, want %d", lag, all)
		}
		for done := 0; done < all; {
			n, err := p.Step(t.Context())
			if want := min(256, all-done); n != want || err != nil {
				t.Fatalf("step at %d: %d rows, %v, want %d", done, n, err, want)
			}
			done += n
			wantTable(t, db, rows(h.fills[:done]))
			input := h.fills[done-1].InputSeq - 1 // the last command may have more fills
			if done == all {
				input, _ = h.Head()
			}
			wantProjected(t, p, uint64(done), input)
			for name, want := range map[string]uint64{cursorTrades: uint64(done), cursorInput: input,
				cursorMark: markOf(&h.fills[done-1])} {
				if got := cursor(t, db, name); got != want {
					t.Fatalf("at %d: cursor %s is %d, want %d", done, name, got, want)
				}
			}
		}
		// small batches at the head, alternately from memory and from the database
		for round := range 20 {
			h.grow(random, 1+random.IntN(5))
			if round%2 == 0 {
				p = New(o)
			}
			drain(t, p)
			input, trade := h.Head()
			wantProjected(t, p, trade, input)
		}
		wantTable(t, db, rows(h.fills))
		wantPhase(t, p, following)
		if m := p.Metrics(); m.Duplicates != 0 || m.Failures != 0 || m.LagRecords != 0 || m.Booked == 0 ||
			m.Batches == 0 {
			t.Errorf("metrics %+v", m)
		}
	})
}

func TestStepNeverPassesTheDurableHead(t *testing.T) {
	storetest.EachInFull(t, func(t *testing.T, db *store.DB) {
		h := newHistory(seeded(t), 500)
		all := h.trade
		h.block = 97
		p := New(options(h, db))
		for _, head := range []uint64{0, 1, 96, 97, 98, 300, 300, all} {
			h.trade = head
			if head > 0 {
				h.input = h.fills[head-1].InputSeq
			}
			drain(t, p)
			wantTable(t, db, rows(h.fills[:head]))
		}
	})
}

func TestIdleStepsCostNoTransaction(t *testing.T) {
	storetest.EachInFull(t, func(t *testing.T, db *store.DB) {
		h := newHistory(seeded(t), 10)
		p := New(options(h, db))
		drain(t, p)
		stored := cursor(t, db, cursorInput)
		must.OK(t, db.Close())
		reads := h.reads
		for range 50 {
			h.input += 7 // commands without fills
			if n, err := p.Step(t.Context()); n != 0 || err != nil {
				t.Fatalf("idle step: %d rows, %v", n, err)
			}
			wantProjected(t, p, 10, h.input)
		}
		if h.reads != reads {
			t.Errorf("%d readings of fills while idle", h.reads-reads)
		}
		if in, _ := h.Head(); stored >= in {
			t.Errorf("stored input sequence %d, head %d", stored, in)
		}
		n := testing.AllocsPerRun(100, func() {
			if _, err := p.Step(t.Context()); err != nil {
				t.Error(err)
			}
		})
		if n != 0 {
			t.Errorf("an idle step allocates %v times, want 0", n)
		}
		h.grow(seeded(t), 1)
		if _, err := p.Step(t.Context()); !errors.Is(err, store.ErrUnavailable) {
			t.Errorf("step on a closed database: %v", err)
		}
	})
}

func TestStepStopsWhereFillsDoNotFollow(t *testing.T) {
	const at = 600 // in the third batch
	tests := []struct {
		name   string
		damage func(h *history)
	}{
		{"hole", func(h *history) { h.fills = append(h.fills[:at:at], h.fills[at+1:]...) }},
		{"fill twice", func(h *history) { h.fills[at] = h.fills[at-1] }},
		{"two exchanged", func(h *history) { h.fills[at], h.fills[at+1] = h.fills[at+1], h.fills[at] }},
		{"number jumps", func(h *history) { h.fills[at].TradeSeq += 1000 }},
		{"number 0", func(h *history) { h.fills[at].TradeSeq = 0 }},
		{"command number falls", func(h *history) { h.fills[at].InputSeq = h.fills[at-1].InputSeq - 1 }},
		{"command number 0", func(h *history) { h.fills[at].InputSeq = 0 }},
		{"command numbers beyond the head", func(h *history) {
			for i := range h.fills[at:] {
				h.fills[at+i].InputSeq = h.input + 1
			}
		}},
		{"ends too early", func(h *history) { h.fills = h.fills[:at] }},
	}
	storetest.EachInFull(t, func(t *testing.T, db *store.DB) {
		for _, tt := range tests {
			t.Run(tt.name, func(t *testing.T) {
				db := storetest.Open(t, db.Dialect())
				h := newHistory(seeded(t), 1000)
				tt.damage(h)
				var log diary
				o := options(h, db)
				o.Logger = log.logger()
				p := New(o)
				for range 2 {
					must.Get(p.Step(t.Context()))(t)
				}
				for range 3 {
					if err := p.Run(t.Context()); !errors.Is(err, ErrSequence) {
						t.Fatalf("run ended with %v", err)
					}
				}
				wantTable(t, db, rows(h.fills[:512]))
				if got := cursor(t, db, cursorTrades); got != 512 {
					t.Errorf("cursor %d, want 512", got)
				}
				wantPhase(t, p, stopped)
				if n := count(log.all(), "level=ERROR"); n != 1 {
					t.Errorf("%d errors logged, want 1: %q", n, log.all())
				}
				if p.Metrics().Failures != 3 {
					t.Errorf("%d failures counted, want 3", p.Metrics().Failures)
				}
			})
		}
	})
}

func TestFirstFillMustBeNumberOne(t *testing.T) {
	db := storetest.Open(t, store.SQLite)
	h := newHistory(seeded(t), 5)
	h.fills = h.fills[1:]
	if _, err := New(options(h, db)).Step(t.Context()); !errors.Is(err, ErrSequence) {
		t.Errorf("step: %v", err)
	}
}

func TestUnnamedSecurityWaits(t *testing.T) {
	storetest.EachInFull(t, func(t *testing.T, db *store.DB) {
		h := newHistory(seeded(t), 20)
		o := options(h, db)
		named := false
		o.Ticker = func(id uint32) string {
			if !named {
				return ""
			}
			return tickerOf(id)
		}
		p := New(o)
		for range 3 {
			if _, err := p.Step(t.Context()); !errors.Is(err, errTicker) || final(err) {
				t.Fatalf("step: %v", err)
			}
		}
		wantPhase(t, p, failing)
		named = true
		drain(t, p)
		wantTable(t, db, rows(h.fills))
	})
}

func TestSourceErrorIsRetried(t *testing.T) {
	storetest.EachInFull(t, func(t *testing.T, db *store.DB) {
		h := newHistory(seeded(t), 300)
		p := New(options(h, db))
		must.Get(p.Step(t.Context()))(t)
		broken := errors.New("disk on fire")
		for range 3 { // at the reading of the batch, then at the look at the cursor's fill
			h.fail = broken
			if _, err := p.Step(t.Context()); !errors.Is(err, broken) || final(err) {
				t.Fatalf("step: %v", err)
			}
		}
		wantTable(t, db, rows(h.fills[:256]))
		h.fail = nil
		drain(t, p)
		wantTable(t, db, rows(h.fills))
	})
}

func TestDatabaseOfAnotherHistoryIsRefused(t *testing.T) {
	storetest.EachInFull(t, func(t *testing.T, db *store.DB) {
		random := seeded(t)
		h := newHistory(random, 300)
		drain(t, New(options(h, db)))
		before := table(t, db)

		// The journal has lost its end.
		lost := &history{fills: h.fills[:290], input: h.fills[289].InputSeq, trade: 290, block: 50}
		p := New(options(lost, db))
		for range 2 {
			if _, err := p.Step(t.Context()); !errors.Is(err, ErrAhead) || final(err) {
				t.Fatalf("step behind the cursor: %v", err)
			}
		}
		wantPhase(t, p, failing)
		// It grows past the cursor again, with different fills.
		lost.grow(random, 50)
		if _, err := p.Step(t.Context()); !errors.Is(err, ErrForeign) {
			t.Fatalf("step of another history: %v", err)
		}
		if err := p.Run(t.Context()); !errors.Is(err, ErrForeign) {
			t.Fatalf("run of another history: %v", err)
		}
		wantTable(t, db, before)

		// A member that lags behind the one that projected comes to the same fills.
		late := &history{fills: h.fills[:280], input: h.fills[279].InputSeq, trade: 280, block: 50}
		p = New(options(late, db))
		if _, err := p.Step(t.Context()); !errors.Is(err, ErrAhead) {
			t.Fatalf("step of a late member: %v", err)
		}
		h.grow(random, 30)
		late.fills, late.input, late.trade = h.fills, h.input, h.trade
		drain(t, p)
		wantTable(t, db, rows(h.fills))

		// The operator's repair: delete the rows above the journal's head and the cursors.
		storetest.Edit(t, db, "delete from trades where trade_seq > 290")
		storetest.Edit(t, db, "delete from cursors where name like 'projection%'")
		drain(t, New(options(lost, db)))
		wantTable(t, db, rows(lost.fills))
	})
}

// A batch settles the trades that were settled by hand up to its own last row. A row that is there
// already, ahead of the cursor, waits for its batch: no batch reads what was noted of later trades.
func TestABatchSettlesByHandWhatItHolds(t *testing.T) {
	random := seeded(t)
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		h := newHistory(random, 9)
		want := rows(h.fills)
		must.OK(t, db.Write(t.Context(), func(tx *store.Tx) error {
			for _, seq := range []uint64{2, 3, 5, 9} {
				if err := tx.NoteForce(seq, bookedAt); err != nil {
					return err
				}
			}
			_, err := tx.InsertTrades(want[4:5])
			return err
		}))
		o := options(h, db)
		o.BatchRows = 3
		p := New(o)
		for _, settled := range [][]int{{2, 3}, {5}, {9}} {
			if n, err := p.Step(t.Context()); n != 3 || err != nil {
				t.Fatalf("step: %d, %v", n, err)
			}
			for _, seq := range settled {
				want[seq-1].Status = store.Settled
			}
			for _, got := range table(t, db) {
				if got != want[got.Seq-1] {
					t.Errorf("row\n got %+v\nwant %+v", got, want[got.Seq-1])
				}
			}
		}
		wantTable(t, db, want)
	})
}

func TestMarkTellsFillsApart(t *testing.T) {
	f := matcher.Fill{TradeSeq: 70_000, InputSeq: 9, TimeMillis: 8, Px: 7, OrderRef: 6, AccountID: 5,
		SecurityID: 4, Qty: 3, CounterRef: 2, Side: matcher.Sell, Flags: 1}
	mark := markOf(&f)
	if !marks(mark, f.TradeSeq) || mark > 1<<63-1 || marks(mark, f.TradeSeq+1) || marks(0, 0) ||
		marks(0, 65536) {
		t.Fatalf("mark %x of %d", mark, f.TradeSeq)
	}
	for name, change := range map[string]func(*matcher.Fill){
		"trade": func(f *matcher.Fill) { f.TradeSeq += 65536 },
		"input": func(f *matcher.Fill) { f.InputSeq++ },
		"time":  func(f *matcher.Fill) { f.TimeMillis++ }, "price": func(f *matcher.Fill) { f.Px++ },
		"order":    func(f *matcher.Fill) { f.OrderRef++ },
		"account":  func(f *matcher.Fill) { f.AccountID++ },
		"security": func(f *matcher.Fill) { f.SecurityID++ },
		"quantity": func(f *matcher.Fill) { f.Qty++ },
		"counter":  func(f *matcher.Fill) { f.CounterRef++ },
		"side":     func(f *matcher.Fill) { f.Side ^= 1 },
		"flags":    func(f *matcher.Fill) { f.Flags++ },
	} {
		g := f
		change(&g)
		if markOf(&g) == mark {
			t.Errorf("another %s, the same mark", name)
		}
	}
}

// count is how many lines hold text.
func count(lines []string, text string) int {
	n := 0
	for _, line := range lines {
		if strings.Contains(line, text) {
			n++
		}
	}
	return n
}
