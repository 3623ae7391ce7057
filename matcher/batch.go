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
	e.out = out
	for i := range batch {
		if len(batch)-i > farAhead {
			e.lookAhead(&batch[i+farAhead], &batch[i+nearAhead])
		}
		e.Apply(&batch[i], out)
	}
}

// ReplayBatch is Replay for commands that lie side by side. It stops at the
// first error and returns how many were decided.
func (e *Engine) ReplayBatch(batch []Command, out *Outlet) (int, error) {
	e.out = out
	for i := range batch {
		if len(batch)-i > farAhead {
			e.lookAhead(&batch[i+farAhead], &batch[i+nearAhead])
		}
		if err := e.Replay(&batch[i], out); err != nil {
			return i, err
		}
	}
	return len(batch), nil
}

// lookAhead fetches for the commands that come: of the far one the bucket of its
// key and the order that it names; of the near one what that order leads to, and
// the place and the position of a new order; and what the engine will need by
// itself by then, the slot of an event and the retained order that goes. It
// changes nothing, and what it expects may turn out wrong.
//
// It does not ask what the commands are, because that would have to be guessed: what a
// field leads to that means something else is some line that nobody needs, and for
// a new order, which names none, always the same one. The places that new orders
// take lie side by side, and the processor fetches those by itself.
func (e *Engine) lookAhead(far, near *Command) {
	p := e.orders
	home := p.homeOf(far.OrderRef)
	ring.Prefetch(
		unsafe.Pointer(e.keys.home(uint64(far.PriceTicks))),
		unsafe.Pointer(p.hot(home)), unsafe.Pointer(p.cold(home)),
		unsafe.Pointer(e.out.slot(e.out.Next+farAhead)),
	)
	o := p.hot(p.homeOf(near.OrderRef))
	row := e.positions.at(int(o.account)-1, o.security())
	ring.Prefetch(
		unsafe.Pointer(e.positions.table.at(row)), unsafe.Pointer(e.ladders[0].level(o.level)),
		unsafe.Pointer(p.hot(o.prev)), unsafe.Pointer(p.hot(o.next)),
	)
	if near.SecurityID-1 >= uint32(len(e.ladders)) {
		return
	}
	gone := ix(0)
	if at := e.retired.next + farAhead; at < len(e.retired.ring) {
		gone = ix(e.retired.ring[at])
	}
	ticks, _ := e.policy.toTicks(near.LimitPx)
	leaf, level := e.ladders[near.SecurityID-1].whereabouts(ticks)
	row = e.positions.at(max(e.accounts.find(near.AccountID), 0), near.SecurityID)
	ring.Prefetch(leaf, level, unsafe.Pointer(p.hot(gone)), unsafe.Pointer(e.positions.table.at(row)))
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
