//perf:hot

package matcher

import (
	"unsafe"

	"posttrade/ring"
)

// The engine prefetches the memory of a command in two steps before it decides the command: first
// what the command's fields lead to, then what that memory leads to. The distances are long enough
// for a line to arrive from main memory, and short enough that the line is still in the first-level
// cache when the engine uses it.
const (
	farAhead  = 8
	nearAhead = 4
)

// ApplyBatch is Apply for commands that lie side by side, and the fastest way to decide many. While
// the engine decides one command, it prefetches the memory of those behind it. The events are the
// same as those of single calls.
//
// The length may be any, 0 too. batch is not changed, and is not used after the call. Only the
// owner may call it.
func (e *Engine) ApplyBatch(batch []Command, out *Outlet) {
	e.out = out
	e.lookFirst(batch)
	for i := range batch {
		if near := i + nearAhead; near < len(batch) {
			e.lookAhead(&batch[min(i+farAhead, len(batch)-1)], &batch[near], e.request(near))
		}
		e.correlation = batch[i].InputSeq
		e.decide(&batch[i], e.request(i))
	}
}

// ReplayBatch is Replay for commands that lie side by side. It stops at the first error and returns
// the number of commands decided. The commands before the error are decided and their events
// written; the one that it names has changed nothing.
func (e *Engine) ReplayBatch(batch []Command, out *Outlet) (int, error) {
	e.out = out
	e.correlation = 0
	e.lookFirst(batch)
	for i := range batch {
		if near := i + nearAhead; near < len(batch) {
			e.lookAhead(&batch[min(i+farAhead, len(batch)-1)], &batch[near], e.request(near))
		}
		if err := e.replayable(&batch[i]); err != nil {
			return i, err
		}
		e.decide(&batch[i], e.request(i))
	}
	return len(batch), nil
}

// request is what lookAhead has found out about the i-th command of a batch. The array is twice
// nearAhead, so that the command being decided and those ahead of it never share a place.
func (e *Engine) request(i int) *request { return &e.requests[uint(i)%uint(len(e.requests))] }

// lookFirst looks at the first commands of a batch, which no earlier lookAhead has covered.
func (e *Engine) lookFirst(batch []Command) {
	for i := range batch[:min(nearAhead, len(batch))] {
		e.lookAhead(&batch[i], &batch[i], e.request(i))
	}
}

// lookAhead finds out what holds of the near command at any later moment, and prefetches memory for
// the commands to come. For the far command this is the bucket of its key and the order that it
// names. For the near command it is what that order leads to, and the place and the position of a
// new order. It also prefetches what the engine itself needs by then: the slot of an event. It
// changes nothing that a decision depends on, and the engine may not need what it prefetches.
//
// It does not test the type of a command, because the processor would have to predict that branch.
// A field that means something else in another type leads to a line that the engine does not use;
// for a new order, which names no order, that is always the same line. The places of new orders lie
// side by side, and the processor prefetches those by itself.
func (e *Engine) lookAhead(far, near *Command, q *request) {
	p := e.orders
	home := p.homeOf(far.OrderRef)
	ring.Prefetch(
		unsafe.Pointer(e.keys.home(uint64(far.PriceTicks))),
		unsafe.Pointer(p.hot(home)), unsafe.Pointer(p.cold(home)),
		e.keys.coming(),
	)
	slot, coming := e.out.slot(e.out.Next+farAhead), p.homeOf(uint32(e.nextRef)+farAhead)
	ring.Prefetch(
		unsafe.Pointer(slot), unsafe.Pointer(slot.Cmd()),
		unsafe.Pointer(p.hot(coming)), unsafe.Pointer(p.cold(coming)),
	)
	o := p.hot(p.homeOf(near.OrderRef))
	q.owner = e.accounts.seek(near.AccountID)
	q.row = e.positions.at(int(q.owner)-1, near.SecurityID)
	q.ticks, q.onGrid = e.policy.toTicks(near.LimitPx)
	row := q.row
	if near.SecurityID == 0 { // a cancel may leave it out
		row = e.positions.at(int(o.account)-1, o.security())
	}
	ring.Prefetch(
		unsafe.Pointer(e.positions.near(row)), unsafe.Pointer(e.levels.at(o.level)),
		unsafe.Pointer(p.hot(o.prev)), unsafe.Pointer(p.hot(o.next)),
	)
	if near.SecurityID-1 >= uint32(e.securities.count) {
		return
	}
	key := uint64(q.ticks) ^ signBit
	leaf := uint32(e.books.at(near.SecurityID - 1).way(key))
	q.leaf = leaf
	ring.Prefetch(
		unsafe.Pointer(e.leaves.at(leaf)), unsafe.Pointer(e.levels.at(leaf*fanout+uint32(key)%fanout)),
		nil, nil,
	)
}
