package matcher

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"posttrade/ring/must"
)

// bookModel is a book of an obviously correct form: one slice, oldest order first, scanned whole
// for every question.
type bookModel struct {
	room   int
	orders []modelOrder
}

type modelOrder struct {
	id, owner uint32
	side      Side
	px        int64
	leaves    int32
}

func (m *bookModel) at(id uint32) int {
	return slices.IndexFunc(m.orders, func(o modelOrder) bool { return o.id == id })
}

// next returns the resting order that a taker would meet first, -1 for none.
func (m *bookModel) next(side Side, px int64) int {
	best := -1
	for i, o := range m.orders {
		if o.side == side || side == Buy && o.px > px || side == Sell && o.px < px {
			continue
		}
		if best == -1 || side == Buy && o.px < m.orders[best].px ||
			side == Sell && o.px > m.orders[best].px {
			best = i
		}
	}
	return best
}

// fillable returns how much a taker could trade with orders of other owners.
func (m *bookModel) fillable(o BookOrder) (sum int64) {
	for _, r := range m.orders {
		own := o.Owner != 0 && r.owner == o.Owner
		if r.side != o.Side && !own && (o.Side == Buy && r.px <= o.Px || o.Side == Sell && r.px >= o.Px) {
			sum += int64(r.leaves)
		}
	}
	return sum
}

// match trades an order and rests its leaves, if it may rest.
func (m *bookModel) match(o BookOrder, rests bool, out []BookEvent) []BookEvent {
	met := false
	for o.Qty > 0 {
		i := m.next(o.Side, o.Px)
		if i == -1 {
			break
		}
		met = true
		maker := &m.orders[i]
		if o.Owner != 0 && maker.owner == o.Owner {
			out = append(out, BookEvent{Kind: BookPrevented, ID: o.ID, Maker: maker.id,
				Leaves: maker.leaves})
			m.orders = slices.Delete(m.orders, i, i+1)
			continue
		}
		qty := min(o.Qty, maker.leaves)
		o.Qty -= qty
		maker.leaves -= qty
		out = append(out, BookEvent{Kind: BookFilled, ID: o.ID, Maker: maker.id, Px: maker.px, Qty: qty})
		if maker.leaves == 0 {
			m.orders = slices.Delete(m.orders, i, i+1)
		}
	}
	switch {
	case o.Qty == 0:
	case !rests:
		out = append(out, BookEvent{Kind: BookCanceled, ID: o.ID, Leaves: o.Qty})
	default:
		m.orders = append(m.orders, modelOrder{o.ID, o.Owner, o.Side, o.Px, o.Qty})
		if met {
			out = append(out, BookEvent{Kind: BookRested, ID: o.ID, Px: o.Px, Leaves: o.Qty})
		}
	}
	return out
}

func (m *bookModel) apply(c BookCommand) []BookEvent {
	o := c.Order
	refuse := func(why BookReject) []BookEvent {
		return []BookEvent{{Kind: BookRejected, ID: o.ID, Reject: why}}
	}
	i := m.at(o.ID)
	switch c.Kind {
	case BookCancel:
		if i == -1 {
			return refuse(BookUnknownID)
		}
		leaves := m.orders[i].leaves
		m.orders = slices.Delete(m.orders, i, i+1)
		return []BookEvent{{Kind: BookCanceled, ID: o.ID, Leaves: leaves}}
	case BookModify:
		if i == -1 {
			return refuse(BookUnknownID)
		}
		if o.Qty < 1 {
			return refuse(BookInvalid)
		}
		old := &m.orders[i]
		kept := old.px == o.Px && o.Qty <= old.leaves
		out := []BookEvent{{Kind: BookModified, ID: o.ID, Px: o.Px, Leaves: o.Qty, Kept: kept}}
		if kept {
			old.leaves = o.Qty
			return out
		}
		o.Side, o.Owner = old.side, old.owner
		m.orders = slices.Delete(m.orders, i, i+1)
		return m.match(o, true, out)
	case BookNew:
		return m.enter(o, i, refuse)
	}
	return refuse(BookInvalid)
}

func (m *bookModel) enter(o BookOrder, at int, refuse func(BookReject) []BookEvent) []BookEvent {
	market, ioc := o.Flags&FlagMarket != 0, o.Flags&FlagIOC != 0
	fok, post := o.Flags&FlagFOK != 0, o.Flags&FlagPostOnly != 0
	known := FlagMarket | FlagIOC | FlagFOK | FlagPostOnly
	if o.ID == 0 || o.Qty < 1 || o.Flags&^known != 0 || ioc && fok || post && (ioc || fok || market) {
		return refuse(BookInvalid)
	}
	if at != -1 {
		return refuse(BookDuplicateID)
	}
	accepted := BookEvent{Kind: BookAccepted, ID: o.ID, Px: o.Px, Leaves: o.Qty}
	if market {
		accepted.Px, o.Px = 0, math.MaxInt64
		if o.Side == Sell {
			o.Px = math.MinInt64
		}
	}
	rests := !market && !ioc && !fok
	if post && m.next(o.Side, o.Px) != -1 {
		return refuse(BookWouldCross)
	}
	if rests && len(m.orders) == m.room {
		return refuse(BookFull)
	}
	out := []BookEvent{accepted}
	if fok && m.fillable(o) < int64(o.Qty) {
		return append(out, BookEvent{Kind: BookCanceled, ID: o.ID, Leaves: o.Qty})
	}
	return m.match(o, rests, out)
}

// depth returns every level of a side, best first.
func (m *bookModel) depth(side Side) (levels []BookLevel) {
	for _, o := range m.orders {
		if o.side != side {
			continue
		}
		i := slices.IndexFunc(levels, func(l BookLevel) bool { return l.Px == o.px })
		if i == -1 {
			i = len(levels)
			levels = append(levels, BookLevel{Px: o.px})
		}
		levels[i].Qty += int64(o.leaves)
		levels[i].Orders++
	}
	slices.SortFunc(levels, func(a, b BookLevel) int {
		if a.Px < b.Px == (side == Buy) {
			return 1
		}
		return -1
	})
	return levels
}

// twins are a book and its model that get the same commands.
type twins struct {
	book  *Book
	model bookModel
	step  int
}

func newTwins(tb testing.TB, room int) *twins {
	tb.Helper()
	book := must.Get(NewBook(BookOptions{MaxOrders: room}))(tb)
	tb.Cleanup(func() { book.Close() })
	return &twins{book: book, model: bookModel{room: room}}
}

// apply gives both a command and returns its events. It returns an error when the two differ
// afterwards in events, depth, or an invariant.
func (w *twins) apply(c BookCommand) ([]BookEvent, error) {
	w.step++
	got, want := w.book.Apply(c, nil), w.model.apply(c)
	if !slices.Equal(got, want) {
		return got, fmt.Errorf("step %d %+v:\n got %+v\nwant %+v", w.step, c, got, want)
	}
	if err := w.book.check(); err != nil {
		return got, fmt.Errorf("step %d %+v: %w", w.step, c, err)
	}
	return got, w.compare(c)
}

func (w *twins) compare(c BookCommand) error {
	for side := range Side(2) {
		want := w.model.depth(side)
		got := make([]BookLevel, len(want)+1)
		if got = got[:w.book.Depth(side, got)]; !slices.Equal(got, want) {
			return fmt.Errorf("step %d %+v: side %d is\n%v, want\n%v", w.step, c, side, got, want)
		}
		px, ok := w.book.Best(side)
		if ok != (len(want) > 0) || ok && px != want[0].Px {
			return fmt.Errorf("step %d %+v: best of side %d is %d %v, want %v", w.step, c, side, px, ok,
				want)
		}
	}
	return nil
}

// tapePrices are the prices that a tape can name: neighbours, both sides of every border between
// pages, and the ends of int64.
var tapePrices = []int64{
	0, 1, -1, 2, 63, 64, 65, -63, -64, -65, 100, 101, 102, 4095, 4096, 4097, -4096, -4097, 262143,
	262144,
	-262144, -262145, 1 << 24, 1<<24 - 1, 1 << 30, 1<<30 + 1, 1 << 36, 1 << 42, 1 << 48, 1 << 54,
	1 << 60, -1 << 60,
	1<<60 - 1, math.MaxInt64, math.MaxInt64 - 1, math.MaxInt64 - 64, math.MinInt64, math.MinInt64 + 1,
	math.MinInt64 + 64,
	math.MaxInt64 - 4096, math.MinInt64 + 4096, 103, 104, 105, 99, 98, 97, 96,
}

const tapeStep = 6 // bytes per command: call, id, price, quantity, owner, flags

// decodeTape reads any bytes as commands. There are few ids, so that commands hit the same orders,
// and they are far apart, so that they share homes.
func decodeTape(tape []byte) (out []BookCommand) {
	for ; len(tape) >= tapeStep; tape = tape[tapeStep:] {
		o := BookOrder{
			ID: uint32(tape[1]&31) * uint32(1+int(tape[1]>>5)*4), Owner: uint32(tape[4] & 3),
			Side: Side(tape[0] & 1),
			Px:   tapePrices[int(tape[2])%len(tapePrices)], Qty: int32(tape[3]&31) - 1,
		}
		if tape[3] == 255 {
			o.Qty = math.MaxInt32
		}
		switch f := tape[5]; {
		case f < 128:
		case f < 240:
			o.Flags = []uint16{FlagIOC, FlagFOK, FlagPostOnly, FlagMarket}[f&3]
		default:
			o.Flags = uint16(f&15) | uint16(f&1)<<15
		}
		kind := []BookCommandKind{BookNew, BookNew, BookNew, BookNew, BookCancel, BookModify, BookModify,
			BookNew}[tape[0]>>1&7]
		if tape[0] == 255 {
			kind = 9
		}
		out = append(out, BookCommand{Kind: kind, Order: o})
	}
	return out
}

// seededTape returns a tape of random bytes; the name of a failing test shows the seed.
func seededTape(seed uint64, steps int) []byte {
	r := rand.New(rand.NewPCG(seed, 1))
	tape := make([]byte, 0, steps*tapeStep)
	for len(tape) < steps*tapeStep {
		tape = binary.LittleEndian.AppendUint64(tape, r.Uint64())
	}
	return tape[:steps*tapeStep]
}

func FuzzBookMatchesModel(f *testing.F) {
	f.Add([]byte("\x01\x01\x01\x05\x00\x00\x00\x02\x01\x07\x00\x00")) // a crossing pair
	f.Add([]byte{0, 1, 35, 9, 0, 0, 1, 2, 38, 9, 0, 0, 0, 3, 38, 9, 0, 200, 1, 4, 35, 9, 0, 203})
	for seed := range uint64(40) {
		f.Add(seededTape(seed, 60))
	}
	f.Fuzz(func(t *testing.T, tape []byte) {
		if len(tape) > 400*tapeStep {
			tape = tape[:400*tapeStep]
		}
		w := newTwins(t, 12) // small, so that it gets full
		for _, c := range decodeTape(tape) {
			must.Get(w.apply(c))(t)
		}
	})
}

// TestBookMatchesModelOverLongRuns lets books grow deep, around a price that moves over the borders
// of pages.
func TestBookMatchesModelOverLongRuns(t *testing.T) {
	for seed := range uint64(6) {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 2))
			w := newTwins(t, 100)
			spread := []int64{3, 40, 300, 10_000, 1 << 20, 1 << 61}[seed]
			mid := int64(0)
			for range 1_500 {
				must.Get(w.apply(randomCommand(r, &mid, spread)))(t)
			}
		})
	}
}

func randomCommand(r *rand.Rand, mid *int64, spread int64) BookCommand {
	*mid += r.Int64N(spread/2+1) - spread/4
	o := BookOrder{
		ID: 1 + uint32(r.IntN(300)), Owner: uint32(r.IntN(4)), Side: Side(r.IntN(2)),
		Px: *mid + r.Int64N(2*spread) - spread, Qty: 1 + int32(r.IntN(50)),
	}
	switch what := r.IntN(20); {
	case what < 10:
		return BookCommand{Kind: BookNew, Order: o}
	case what < 13:
		o.Flags = []uint16{FlagIOC, FlagFOK, FlagPostOnly, FlagMarket, FlagMarket | FlagFOK}[r.IntN(5)]
		return BookCommand{Kind: BookNew, Order: o}
	case what < 16:
		return BookCommand{Kind: BookCancel, Order: o}
	}
	return BookCommand{Kind: BookModify, Order: o}
}

// TestBookKeepsItsPromises checks what must hold of the events of any commands, without knowledge
// of how a book works.
func TestBookKeepsItsPromises(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		book := must.Get(NewBook(BookOptions{MaxOrders: 64}))(t)
		defer book.Close()
		open := map[uint32]int64{} // the quantity that each accepted order may still trade
		owners := map[uint32]uint32{}
		for range rapid.IntRange(1, 80).Draw(t, "commands") {
			tape := rapid.SliceOfN(rapid.Byte(), tapeStep, tapeStep).Draw(t, "command")
			c := decodeTape(tape)[0]
			for _, e := range book.Apply(c, nil) {
				switch e.Kind {
				case BookAccepted:
					open[e.ID], owners[e.ID] = int64(e.Leaves), c.Order.Owner
				case BookModified:
					open[e.ID] = int64(e.Leaves)
				case BookFilled:
					open[e.ID] -= int64(e.Qty)
					open[e.Maker] -= int64(e.Qty)
					if e.Qty < 1 || open[e.ID] < 0 || open[e.Maker] < 0 {
						t.Fatalf("%+v: %+v fills more than there is", c, e)
					}
					if owners[e.ID] != 0 && owners[e.ID] == owners[e.Maker] {
						t.Fatalf("%+v: %+v trades with itself", c, e)
					}
				case BookCanceled, BookRested:
					if open[e.ID] != int64(e.Leaves) {
						t.Fatalf("%+v: %+v, but %d were open", c, e, open[e.ID])
					}
					if e.Kind == BookCanceled {
						delete(open, e.ID)
					}
				case BookPrevented:
					delete(open, e.Maker)
				}
			}
			resting := int64(0)
			var levels [64]BookLevel
			for side := range Side(2) {
				for _, l := range levels[:book.Depth(side, levels[:])] {
					resting += l.Qty
				}
			}
			var want int64
			for _, qty := range open {
				want += qty
			}
			if resting != want {
				t.Fatalf("%+v: %d rest, the events say %d", c, resting, want)
			}
			bid, any := book.Best(Buy)
			if ask, both := book.Best(Sell); any && both && bid >= ask {
				t.Fatalf("%+v: crossed at rest: bid %d, ask %d", c, bid, ask)
			}
			if err := book.check(); err != nil {
				t.Fatalf("%+v: %v", c, err)
			}
		}
	})
}
