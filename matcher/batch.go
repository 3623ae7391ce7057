//perf:hot

package matcher

import (
	"unsafe"

	"posttrade/ring"
)

// Before its turn comes, the memory that a command will need is asked for in two
// steps: first what its fields lead to, then what that leads to. The distances
// are long enough for a line to come from main memory, and short enough that it
// is still in the first-level cache when it is used.
const (
	farAhead  = 8
	nearAhead = 4
)

// ApplyBatch is Apply for commands that lie side by side, the fastest way to
// decide many: while one is decided, the memory of those behind it is fetched.
func (e *Engine) ApplyBatch(batch []Command, out *Outlet) {
	for i := range batch {
		e.lookAhead(batch[i:])
		e.Apply(&batch[i], out)
	}
}

// ReplayBatch is Replay for commands that lie side by side. It stops at the
// first error and returns how many were decided.
func (e *Engine) ReplayBatch(batch []Command, out *Outlet) (int, error) {
	for i := range batch {
		e.lookAhead(batch[i:])
		if err := e.Replay(&batch[i], out); err != nil {
			return i, err
		}
	}
	return len(batch), nil
}

// lookAhead fetches for the commands that come. It changes nothing, and what it
// expects may turn out wrong.
func (e *Engine) lookAhead(rest []Command) {
	if len(rest) > farAhead {
		e.expectFar(&rest[farAhead])
		e.expectNear(&rest[nearAhead])
	}
}

// expectFar fetches the bucket of a key or the order that is named, and what the
// engine will need by itself by then: the place of the next order, and the
// retained order that goes.
func (e *Engine) expectFar(c *Command) {
	p, gone := e.orders, ix(0)
	if at := e.retired.next + farAhead; at < len(e.retired.ring) {
		gone = ix(e.retired.ring[at])
	}
	if c.Type == OrderNew || c.Type == TradeNew {
		home := p.homeOf(uint32(e.nextRef) + farAhead)
		ring.Prefetch(
			unsafe.Pointer(e.keys.home(uint64(c.PriceTicks))), unsafe.Pointer(p.cold(home)),
			unsafe.Pointer(p.hot(home)), unsafe.Pointer(p.hot(gone)),
		)
		return
	}
	if c.Type == SwapBook || c.Type == SwaptionBook {
		t := &e.contracts
		row := min(t.count+farAhead, len(t.rows)-1)
		ring.Prefetch(
			unsafe.Pointer(e.keys.home(uint64(c.PriceTicks))), unsafe.Pointer(&t.rows[row]), nil, nil,
		)
		return
	}
	home := p.homeOf(c.OrderRef)
	ring.Prefetch(
		unsafe.Pointer(p.hot(home)), unsafe.Pointer(p.cold(home)),
		unsafe.Pointer(p.hot(gone)), nil,
	)
}

// expectNear fetches the position, the level, and the neighbours in its queue.
func (e *Engine) expectNear(c *Command) {
	if c.Type == OrderNew {
		i := e.accounts.find(c.AccountID)
		if i < 0 || c.SecurityID-1 >= uint32(len(e.ladders)) {
			return
		}
		ticks, _ := e.policy.toTicks(c.LimitPx)
		leaf, level := e.ladders[c.SecurityID-1].whereabouts(ticks)
		row := e.positions.at(i, c.SecurityID)
		ring.Prefetch(unsafe.Pointer(&e.positions.rows[row]), leaf, level, nil)
		return
	}
	p := e.orders
	o := p.hot(p.homeOf(c.OrderRef))
	if o.ref != c.OrderRef || !o.rests() {
		return
	}
	row := e.positions.at(int(o.account)-1, o.security())
	ring.Prefetch(
		unsafe.Pointer(&e.positions.rows[row]), unsafe.Pointer(e.ladders[0].level(o.level)),
		unsafe.Pointer(p.hot(o.prev)), unsafe.Pointer(p.hot(o.next)),
	)
}

// whereabouts is where the leaf and the level of a price are, if there are any:
// the way of rest, with nothing planted.
func (l *ladder) whereabouts(tickPx int64) (leaf, at unsafe.Pointer) {
	key := uint64(tickPx) ^ signBit
	n := l.root
	for n.shift() != 0 {
		n = l.kid(n, key)
	}
	return unsafe.Pointer(l.leaf(uint32(n))), unsafe.Pointer(l.level(uint32(n)*fanout + uint32(key)%fanout))
}
