package flow

import "math/bits"

// Random is splitmix64: one multiplication chain, with the same numbers on every machine. Not for
// secrets.
type Random struct{ state uint64 }

// NewRandom returns the sequence of a seed.
func NewRandom(seed uint64) *Random { return &Random{seed} }

// Uint64 returns the next number.
func (r *Random) Uint64() uint64 {
	r.state += 0x9e3779b97f4a7c15
	z := r.state
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// N returns a number below n. The upper half of a product is not quite uniform; for the small n of
// a flow that does not show.
func (r *Random) N(n uint64) uint64 {
	hi, _ := bits.Mul64(r.Uint64(), n)
	return hi
}

// Flow is a sequence of commands: first the prefill, then the timed commands. It is made before
// anything is measured, so the generator costs the measurement nothing.
type Flow struct {
	Commands []Command
	Prefill  int // how many of Commands build the book and are not timed
	Symbols  int
	// No command has a higher id; arrays by id have room for MaxID+1.
	MaxID  uint32
	Result Result // of all commands
	Levels int    // prices with orders at the end, over all books
}

// Timed is the part that is measured.
func (f *Flow) Timed() []Command { return f.Commands[f.Prefill:] }

// Options are what a generated flow depends on. The same options give the same flow. Symbols,
// Prefill and N are not checked.
type Options struct {
	Seed    uint64
	Symbols int // 1 to 256
	Prefill int // resting orders to begin with
	N       int // commands after that
}

// The shape of a generated flow. The published figures rest on these numbers: another one makes
// another flow, and older results cannot be compared with it.
const (
	offsets   = 500  // maximum distance of passive orders from the mid, in ticks
	meanTicks = 41   // on average so many steps of a geometric offset
	recent    = 2000 // cancels prefer so many of the newest orders
	few       = 64   // with fewer live orders than this every command is new
	longQueue = 12   // takers do not walk a longer queue than this
)

// generator makes a flow of several symbols and applies each command to its ladder at once, so that
// the next command can be chosen from the state of the books.
type generator struct {
	*Random
	ladder *Ladder
	mid    []int32
	live   [][]uint32 // ids by symbol; an id that has traded is dropped when a cancel meets it
	out    []Command
	id     uint32
}

// Generate returns the flow of the published figures: 50 % passive orders, 40 % cancels, 10 %
// takers. Books of low symbols are busier than those of high ones. The mid of a book moves a tick
// up or down once in forty of its commands.
func Generate(o Options) *Flow {
	total := o.Prefill + o.N
	g := &generator{
		Random: NewRandom(o.Seed),
		ladder: NewLadder(o.Symbols, uint32(total)),
		mid:    make([]int32, o.Symbols),
		live:   make([][]uint32, o.Symbols),
		out:    make([]Command, 0, total),
	}
	for i := range g.mid {
		g.mid[i] = Ticks / 2
	}
	for i := range o.Prefill {
		g.passive(i%o.Symbols, true)
	}
	for range o.N {
		g.step(o.Symbols)
	}
	return &Flow{
		Commands: g.out, Prefill: o.Prefill, Symbols: o.Symbols, MaxID: uint32(total),
		Result: g.ladder.Result, Levels: g.levels(),
	}
}

// levels counts the prices that have orders.
func (g *generator) levels() (n int) {
	for i := range g.ladder.books {
		for _, side := range g.ladder.books[i].words {
			for _, word := range side {
				n += bits.OnesCount64(word)
			}
		}
	}
	return n
}

// step makes one timed command. The smaller of two random numbers is the symbol, so low symbols are
// busier. A book with few live orders gets a new one.
func (g *generator) step(symbols int) {
	s := 0
	if symbols > 1 {
		s = int(min(g.N(uint64(symbols)), g.N(uint64(symbols))))
	}
	switch g.N(40) {
	case 0:
		g.mid[s]++
	case 1:
		g.mid[s]--
	}
	g.mid[s] = min(max(g.mid[s], Ticks/4), Ticks*3/4)
	switch what := g.N(100); {
	case what < 50 || len(g.live[s]) < few:
		g.passive(s, false)
	case what < 90:
		g.cancel(s)
	default:
		g.take(s)
	}
}

// emit appends a command after the ladder has taken it.
func (g *generator) emit(c Command) {
	g.ladder.Apply(&c)
	g.out = append(g.out, c)
}

// passive adds an order that rests: its price is never beyond the other side's best. The prefill
// has few orders near the touch and many far away; after the prefill most orders are near.
func (g *generator) passive(s int, prefill bool) {
	g.id++
	side := uint8(g.N(2))
	var offset int32
	switch {
	case prefill:
		a, b := g.N(offsets), g.N(offsets)
		offset = int32(max(a, b))
	case g.N(100) < 30:
		offset = int32(g.N(offsets))
	default:
		for offset < offsets-1 && g.N(meanTicks) != 0 {
			offset++
		}
	}
	b := &g.ladder.books[s]
	px := max(g.mid[s]+1+offset, b.best[Buy]+1)
	if side == Buy {
		px = min(g.mid[s]-1-offset, b.best[Sell]-1)
	}
	qty := int32(1 + g.N(100))
	g.emit(Command{Op: New, Side: side, Symbol: uint16(s), Qty: qty, ID: g.id, Px: int64(px)})
	g.live[s] = append(g.live[s], g.id)
}

// cancel names a live order, most often one of the newest. It drops the ids that it meets whose
// orders have traded; step calls it only with enough live ids.
func (g *generator) cancel(s int) {
	live := g.live[s]
	for {
		var at int
		if g.N(100) < 60 && len(live) > recent {
			at = len(live) - 1 - int(g.N(recent))
		} else {
			at = int(g.N(uint64(len(live))))
		}
		id := live[at]
		o := g.ladder.orders[id]
		if o.qty == 0 { // already traded or cancelled: drop it and pick another
			live[at] = live[len(live)-1]
			live = live[:len(live)-1]
			continue
		}
		g.live[s] = live
		g.emit(Command{Op: Cancel, Side: o.side, Symbol: uint16(s), ID: id, Px: int64(o.px)})
		return
	}
}

// take sends an order towards the mid that fills completely, over one to five levels. A side that
// the mid has left behind is taken first, so that the books follow the mid.
func (g *generator) take(s int) {
	b := &g.ladder.books[s]
	side := uint8(g.N(2))
	if b.best[Sell] <= g.mid[s] {
		side = Buy
	} else if b.best[Buy] >= g.mid[s] {
		side = Sell
	}
	against := side ^ 1
	levels := 1
	switch deep := g.N(100); {
	case deep >= 97:
		levels = 5
	case deep >= 93:
		levels = 4
	case deep >= 85:
		levels = 3
	case deep >= 70:
		levels = 2
	}
	px := b.best[against]
	var qty uint32
	for walked := 1; ; walked++ {
		var all, firstThree uint32
		orders := 0
		for id := b.queues[against][px].head; id != 0; id = g.ladder.orders[id].next {
			all += g.ladder.orders[id].qty
			if orders++; orders <= 3 {
				firstThree = all
			}
		}
		next := b.worse(against, px)
		if walked >= levels || orders > longQueue || next < 0 || next >= Ticks {
			qty += uint32(1 + g.N(uint64(firstThree)))
			break
		}
		qty += all
		px = next
	}
	g.id++
	g.emit(Command{Op: Take, Side: side, Symbol: uint16(s), Qty: int32(qty), ID: g.id, Px: int64(px)})
}
