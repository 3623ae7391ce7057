package flow

import "math/bits"

// Ticks is how many prices a Ladder has: 0 to Ticks-1.
const Ticks = 1 << 16

// The sides of a command.
const (
	Buy  uint8 = 0
	Sell uint8 = 1
)

// Op says what a command does.
type Op uint8

// The operations of Generate are the first three; Realistic adds Modify.
const (
	New    Op = 0 // a limit order that does not cross and rests
	Cancel Op = 1 // of a live order
	Take   Op = 2 // a limit order that crosses and fills whole
	Modify Op = 3 // a live order's new price and open quantity
)

// Command is one record of a flow: 24 bytes, the same for every book that is measured.
type Command struct {
	Px     int64  // ticks; of a cancel the price of the order it names
	ID     uint32 // dense from 1; of a cancel or modify the order it names
	Qty    int32  // 0 for a cancel
	Symbol uint16
	Op     Op
	Side   uint8
	_      uint32
}

// Result is the sum of the trades of a flow.
type Result struct {
	// Notional is in ticks times quantity, and wraps around. Hash depends on the order of the trades.
	Trades, Qty, Notional, Hash uint64
}

// The constants of FNV-1a, applied to whole numbers instead of bytes.
const (
	hashStart = 0xcbf29ce484222325
	hashPrime = 0x100000001b3
)

// NewResult is the result of no trades.
func NewResult() Result { return Result{Hash: hashStart} }

// Add adds one trade. The hash runs over maker, taker, price and quantity.
func (r *Result) Add(maker, taker uint32, px int64, qty int32) {
	r.Trades++
	r.Qty += uint64(qty)
	r.Notional += uint64(px) * uint64(qty)
	h := r.Hash
	h = (h ^ uint64(maker)) * hashPrime
	h = (h ^ uint64(taker)) * hashPrime
	h = (h ^ uint64(px)) * hashPrime
	h = (h ^ uint64(qty)) * hashPrime
	r.Hash = h
}

// rung is a resting order of a Ladder, by id: half of what a real book needs. A quantity of 0 means
// that no order rests under the id.
type rung struct {
	next, prev uint32
	qty        uint32
	px         uint16
	symbol     uint8
	side       uint8
}

// queue is the orders at one price.
type queue struct{ head, tail uint32 }

// book is one symbol: an array of all prices, and which of them are not empty. best is kept exact
// after every command, so a taker starts without a search.
type book struct {
	queues [2][Ticks]queue
	// A bit per price with orders, by side, and a bit per word that is not 0: the next price is two or
	// three loads away, however far it is.
	words [2][Ticks / 64]uint64
	sums  [2][Ticks / 64 / 64]uint64
	best  [2]int32 // -1 without a bid, Ticks without an ask
}

// Ladder is the floor: a book in which prices and orders are plain array indexes. A book takes 1 MB
// a symbol, whatever is in it. Self-trades are allowed and nothing is checked, so it shows what the
// rest of a real book costs.
type Ladder struct {
	Result Result
	books  []book
	orders []rung
}

// NewLadder returns empty books of symbols (at most 256) for ids up to maxID.
func NewLadder(symbols int, maxID uint32) *Ladder {
	l := &Ladder{Result: NewResult(), books: make([]book, symbols), orders: make([]rung, maxID+1)}
	for i := range l.books {
		l.books[i].best = [2]int32{-1, Ticks}
	}
	return l
}

// Apply carries out one command. An id or a price outside the arrays panics; a command for an order
// that does not rest does nothing.
func (l *Ladder) Apply(c *Command) {
	switch c.Op {
	case Cancel:
		l.cancel(c.ID)
	case Modify:
		l.modify(c)
	default:
		l.enter(c.Symbol, c.Side, c.ID, int32(c.Px), uint32(c.Qty))
	}
}

// cancel does nothing for an order that has traded.
func (l *Ladder) cancel(id uint32) {
	if o := &l.orders[id]; o.qty != 0 {
		l.unlink(&l.books[o.symbol], o)
	}
}

// modify keeps the queue position of an order that shrinks at its price.
func (l *Ladder) modify(c *Command) {
	o := &l.orders[c.ID]
	if o.qty == 0 {
		return
	}
	if int64(o.px) == c.Px && uint32(c.Qty) <= o.qty {
		o.qty = uint32(c.Qty)
		return
	}
	l.unlink(&l.books[o.symbol], o)
	l.enter(uint16(o.symbol), o.side, c.ID, int32(c.Px), uint32(c.Qty))
}

// enter matches an order at prices up to its own, best first and oldest first, and rests the
// remainder.
func (l *Ladder) enter(symbol uint16, side uint8, id uint32, px int32, qty uint32) {
	b := &l.books[symbol]
	against := side ^ 1
	for qty > 0 {
		at := b.best[against]
		if side == Buy && at > px || side == Sell && at < px {
			break
		}
		q := &b.queues[against][at]
		for q.head != 0 && qty > 0 {
			maker := q.head
			o := &l.orders[maker]
			traded := min(o.qty, qty)
			qty -= traded
			l.Result.Add(maker, id, int64(at), int32(traded))
			if o.qty == traded {
				l.unlink(b, o)
			} else {
				o.qty -= traded
			}
		}
	}
	if qty == 0 {
		return
	}
	q := &b.queues[side][px]
	l.orders[id] = rung{prev: q.tail, qty: qty, px: uint16(px), symbol: uint8(symbol), side: side}
	if q.tail != 0 {
		l.orders[q.tail].next = id
	} else {
		q.head = id
		b.words[side][px>>6] |= 1 << (px & 63)
		b.sums[side][px>>12] |= 1 << (px >> 6 & 63)
		if side == Buy && px > b.best[Buy] || side == Sell && px < b.best[Sell] {
			b.best[side] = px
		}
	}
	q.tail = id
}

// unlink takes an order out of its queue and, with the last order, the price out of the bits.
func (l *Ladder) unlink(b *book, o *rung) {
	q := &b.queues[o.side][o.px]
	if o.prev != 0 {
		l.orders[o.prev].next = o.next
	} else {
		q.head = o.next
	}
	if o.next != 0 {
		l.orders[o.next].prev = o.prev
	} else {
		q.tail = o.prev
	}
	o.qty = 0
	if q.head != 0 {
		return
	}
	px := int32(o.px)
	word := px >> 6
	b.words[o.side][word] &^= 1 << (px & 63)
	if b.words[o.side][word] == 0 {
		b.sums[o.side][word>>6] &^= 1 << (word & 63)
	}
	if px == b.best[o.side] {
		b.best[o.side] = b.worse(o.side, px)
	}
}

// worse returns the next price with orders behind px: lower for a buyer.
func (b *book) worse(side uint8, px int32) int32 {
	if side == Buy {
		return b.below(px)
	}
	return b.above(px)
}

// above returns the lowest ask over px, Ticks when there is none.
func (b *book) above(px int32) int32 {
	if px++; px >= Ticks {
		return Ticks
	}
	word := px >> 6
	if m := b.words[Sell][word] >> (px & 63); m != 0 {
		return px + int32(bits.TrailingZeros64(m))
	}
	word++
	for sum := word >> 6; sum < Ticks/64/64; sum++ {
		m := b.sums[Sell][sum]
		if sum == word>>6 {
			m = m >> (word & 63) << (word & 63)
		}
		if m != 0 {
			word = sum<<6 + int32(bits.TrailingZeros64(m))
			return word<<6 + int32(bits.TrailingZeros64(b.words[Sell][word]))
		}
	}
	return Ticks
}

// below returns the highest bid under px, -1 when there is none.
func (b *book) below(px int32) int32 {
	if px--; px < 0 {
		return -1
	}
	word := px >> 6
	if m := b.words[Buy][word] << (63 - px&63); m != 0 {
		return px - int32(bits.LeadingZeros64(m))
	}
	if word--; word < 0 {
		return -1
	}
	for sum := word >> 6; sum >= 0; sum-- {
		m := b.sums[Buy][sum]
		if sum == word>>6 {
			shift := 63 - word&63
			m = m << shift >> shift
		}
		if m != 0 {
			word = sum<<6 + 63 - int32(bits.LeadingZeros64(m))
			return word<<6 + 63 - int32(bits.LeadingZeros64(b.words[Buy][word]))
		}
	}
	return -1
}
