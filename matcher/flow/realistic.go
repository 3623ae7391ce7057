package flow

// Regime is a kind of market day.
type Regime uint8

// The regimes of Realistic.
const (
	Static  Regime = iota // a deep book around a price that stays
	Normal                // the price wanders
	Swing25               // up by a quarter and down by a quarter, twice
	Swing40               // the same by two fifths
	Crash                 // calm, 40,000 ticks down within a twentieth of the flow, half of it back
)

var regimeNames = [...]string{"static", "normal", "swing25", "swing40", "crash"}

// String returns the name that benchmarks use.
func (r Regime) String() string {
	if int(r) < len(regimeNames) {
		return regimeNames[r]
	}
	return "unknown"
}

// Regimes are all of them.
func Regimes() []Regime { return []Regime{Static, Normal, Swing25, Swing40, Crash} }

// RealisticOptions are what a realistic flow depends on. Zeros mean defaults. The same options give
// the same flow.
type RealisticOptions struct {
	Seed    uint64
	Regime  Regime
	Prefill int // resting orders to begin with: 100,000 when static, else 10,000
	N       int // messages after that: 2,000,000
}

// The shape of a realistic flow. Of a hundred messages 20 modify, 40 enter an order, 38 cancel one
// and 2 take: 19 of 20 orders end by a cancel. Distances from the mid follow a power law: each
// octave is 5/8 as likely as the one before and twice as wide. When the mid has left orders behind,
// a third of the messages deal with those orders: they modify, cancel or sweep them. A book that
// has lost many orders gets more new ones.
const (
	startMid   = 40_000 // ticks
	crashMid   = 52_000 // where the regime Crash starts
	crashDepth = 40_000
	edge       = 64 // no price is closer to the ends of a Ladder
	touch      = 16 // ticks of the first octave
	octaves    = 10
	lotQty     = 100
	newest     = 1_000 // cancels and modifies prefer so many of the newest orders
	sweepMost  = 3     // most orders of one taker while the mid runs away
)

// Realistic returns a flow of one symbol in which most orders are changed and withdrawn, as on an
// exchange. It is a function of its options, like Generate.
func Realistic(o RealisticOptions) *Flow {
	if o.N == 0 {
		o.N = 2_000_000
	}
	if o.Prefill == 0 {
		o.Prefill = 10_000
		if o.Regime == Static {
			o.Prefill = 100_000
		}
	}
	maxID := uint32(o.Prefill + o.N)
	g := &market{
		generator: generator{
			Random: NewRandom(o.Seed), ladder: NewLadder(1, maxID),
			mid: []int32{startMid}, live: make([][]uint32, 1), out: make([]Command, 0, maxID),
		},
		regime: o.Regime,
		n:      int64(o.N),
		usual:  o.Prefill,
	}
	g.book = &g.ladder.books[0]
	g.follow(0)
	for range o.Prefill {
		g.enter()
	}
	for at := range g.n {
		g.follow(at)
		g.message()
	}
	return &Flow{Commands: g.out, Prefill: o.Prefill, Symbols: 1, MaxID: maxID,
		Result: g.ladder.Result, Levels: g.levels()}
}

// market is the generator of Realistic: one symbol, whose mid follows the path of a regime.
type market struct {
	generator
	book   *book
	regime Regime
	n      int64
	usual  int   // target number of orders in the book
	noise  int32 // a slow walk on top of the path
}

// follow moves the mid to its place in the regime after at messages: the path of the regime and a
// slow walk of at most 500 ticks around it.
func (g *market) follow(at int64) {
	mid := int64(startMid)
	switch g.regime {
	case Static:
		return
	case Swing25:
		mid += wave(at, g.n/2, startMid/4)
	case Swing40:
		mid += wave(at, g.n/2, startMid*2/5)
	case Crash:
		mid = crashMid
		fall, length := g.n*2/5, max(g.n/20, 1)
		switch {
		case at > fall+length:
			mid -= max(crashDepth-(at-fall-length)*crashDepth/g.n, crashDepth/2)
		case at > fall:
			mid -= (at - fall) * crashDepth / length
		}
	}
	switch g.N(64) {
	case 0:
		g.noise = min(g.noise+1, 500)
	case 1:
		g.noise = max(g.noise-1, -500)
	}
	g.mid[0] = int32(mid) + g.noise
}

// wave is a triangle around zero: up to height, down to -height and back in one period. Its
// arithmetic is whole, so it is the same on every machine.
func wave(at, period, height int64) int64 {
	quarter := max(period/4, 1)
	phase := at % (4 * quarter)
	switch {
	case phase < quarter:
		return height * phase / quarter
	case phase < 3*quarter:
		return height * (2*quarter - phase) / quarter
	}
	return height * (phase - 4*quarter) / quarter
}

// message makes at most one command. Of a stale side a third of the messages chase the first order.
// A book with too few orders gets a new one in place of every second cancel.
func (g *market) message() {
	what := g.N(100)
	if stale, side := g.stale(); stale && g.N(3) == 0 {
		g.chase(side, what)
		return
	}
	switch {
	case what < 40 || len(g.live[0]) < few:
		g.enter()
	case what < 60:
		g.modify(g.pick())
	case what < 98:
		if len(g.live[0]) < g.usual && g.N(2) == 0 {
			g.enter()
			return
		}
		g.withdraw(g.pick())
	default:
		g.sweep(uint8(g.N(2)))
	}
}

// stale reports whether the mid has left the best orders of a side behind.
func (g *market) stale() (bool, uint8) {
	switch {
	case g.book.best[Sell] <= g.mid[0]:
		return true, Sell
	case g.book.best[Buy] >= g.mid[0]:
		return true, Buy
	}
	return false, 0
}

// chase modifies, cancels or sweeps the first order at the best price of a stale side.
func (g *market) chase(side uint8, what uint64) {
	first := g.book.queues[side][g.book.best[side]].head
	switch {
	case what < 25:
		g.modify(first)
	case what < 95:
		g.withdraw(first)
	default:
		g.sweep(side ^ 1)
	}
}

// price is the price of a new passive order of a side: behind the mid by a power law.
func (g *market) price(side uint8) int64 {
	octave := uint(0)
	for octave < octaves && g.N(8) < 5 {
		octave++
	}
	offset := int32(touch*(1<<octave-1) + g.N(touch<<octave))
	if side == Buy {
		px := min(g.mid[0]-1-offset, g.book.best[Sell]-1)
		return int64(max(px, edge))
	}
	px := max(g.mid[0]+1+offset, g.book.best[Buy]+1)
	return int64(min(px, Ticks-edge))
}

// enter adds a passive order of either side.
func (g *market) enter() {
	g.id++
	side := uint8(g.N(2))
	g.emit(Command{Op: New, Side: side, Qty: int32(1 + g.N(lotQty)), ID: g.id, Px: g.price(side)})
	g.live[0] = append(g.live[0], g.id)
}

// pick returns a live order, half of the time one of the newest. It drops the ids that it meets
// whose orders are gone.
func (g *market) pick() uint32 {
	for {
		live := g.live[0]
		at := int(g.N(uint64(len(live))))
		if g.N(2) == 0 && len(live) > newest {
			at = len(live) - 1 - int(g.N(newest))
		}
		id := live[at]
		if g.ladder.orders[id].qty != 0 {
			return id
		}
		live[at] = live[len(live)-1]
		g.live[0] = live[:len(live)-1]
	}
}

// withdraw cancels an order that rests.
func (g *market) withdraw(id uint32) {
	o := g.ladder.orders[id]
	g.emit(Command{Op: Cancel, Side: o.side, ID: id, Px: int64(o.px)})
}

// modify shrinks every second order at its price, and moves the others to a new price. It always
// moves a stale order.
func (g *market) modify(id uint32) {
	o := g.ladder.orders[id]
	c := Command{Op: Modify, Side: o.side, ID: id, Px: int64(o.px), Qty: int32(1 + g.N(uint64(o.qty)))}
	if stale, side := g.stale(); stale && side == o.side || g.N(2) == 0 {
		c.Px, c.Qty = g.price(o.side), int32(1+g.N(lotQty))
	}
	g.emit(c)
}

// sweep sends a taker that fills completely: against a few orders in a calm market, otherwise
// against all stale orders, up to a bound.
func (g *market) sweep(side uint8) {
	against := side ^ 1
	px := g.book.best[against]
	if px < 0 || px >= Ticks {
		return
	}
	most := 1 + int(g.N(2))
	stale, which := g.stale()
	if stale = stale && which == against; stale {
		most = sweepMost
	}
	var qty int32
	limit, met := px, 0
	for px >= 0 && px < Ticks && met < most && (met == 0 || !stale || g.behind(against, px)) {
		for id := g.book.queues[against][px].head; id != 0 && met < most; id = g.ladder.orders[id].next {
			qty += int32(g.ladder.orders[id].qty)
			met++
		}
		limit, px = px, g.book.worse(against, px)
	}
	qty -= int32(g.N(uint64(min(qty, lotQty))))
	g.id++
	g.emit(Command{Op: Take, Side: side, Qty: qty, ID: g.id, Px: int64(limit)})
}

// behind reports whether the mid has left a price of a side behind.
func (g *market) behind(side uint8, px int32) bool {
	return side == Sell && px <= g.mid[0] || side == Buy && px >= g.mid[0]
}
