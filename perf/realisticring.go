package perf

import (
	"posttrade/matcher"
	"posttrade/matcher/flow"
	"posttrade/ring"
)

// bookReport is a report of a book, one cache line: the outcome of a message, or a fill of one.
// Reports of one message follow each other in the ring, its fills before its outcome.
type bookReport struct {
	// px is the price of a fill, or the message's own.
	px int64
	// order is the message's order, in a fill the taker; maker is set in a fill only.
	order, maker uint32
	// qty is set in a fill, leaves in an outcome: the quantity that has not traded.
	qty, leaves int32
	// kind is the message's operation (flow.Op), or reportFill.
	kind uint8
	// reject is the book's reason, 0 for none. rests says that the order is on the book now.
	reject uint8
	rests  bool
	_      [37]byte
}

// reportFill is a value that no operation has. reportBatch is how many messages lie between two
// publications: the reader sees reports up to that much later, and publishing costs that much less.
const (
	reportFill  = 255
	reportBatch = 32
)

// reporter puts a book's reports into a ring, as the book's sink. It waits for room, so the slower
// of the two cores sets the pace. Producer's goroutine only.
type reporter struct {
	ring *ring.SPSC[bookReport]
}

// claim returns the next slot. While the ring is full it publishes what there is, or the reader
// would wait for the rest of the batch and neither side would go on.
func (p *reporter) claim() *bookReport {
	r := p.ring.Claim()
	for r == nil {
		p.ring.Publish()
		r = p.ring.Claim()
	}
	return r
}

// Filled reports a fill at the maker's price. The book calls it from within the message.
func (p *reporter) Filled(maker, taker uint32, px int64, qty int32) {
	r := p.claim()
	r.kind, r.reject = reportFill, 0
	r.order, r.maker, r.px, r.qty = taker, maker, px, qty
}

// Prevented cannot happen: the orders of a flow have no owner.
func (p *reporter) Prevented(uint32, uint32, int32) {}

// outcome reports the outcome of a message.
func (p *reporter) outcome(c *flow.Command, o matcher.Outcome) {
	r := p.claim()
	r.kind, r.reject, r.rests = uint8(c.Op), uint8(o.Reject), o.Rests
	r.order, r.px, r.leaves = c.ID, c.Px, o.Leaves
}

// reader runs on the other core: it adds up every report. A fill that is lost, invented or out of
// order changes the result; outcomes and refusals are counted.
type reader struct {
	result             flow.Result
	outcomes, rejected int
}

// read takes in reports until it has seen the outcomes of n messages. It spins while there are
// none.
func (a *reader) read(q *ring.SPSC[bookReport], n int) {
	idler := ring.NewIdler(ring.Spin, q.Waiter())
	for a.outcomes < n {
		if a.take(q) {
			idler.Reset()
		} else {
			idler.Idle(q)
		}
	}
}

// take adds up the reports that are there, 256 at most, and returns whether there were any.
func (a *reader) take(q *ring.SPSC[bookReport]) bool {
	lo, hi := q.Ready(256)
	for at := lo; at < hi; at++ {
		a.add(q.At(at))
	}
	if hi > lo {
		q.Release(hi)
	}
	return hi > lo
}

// add takes in one report: a fill goes into the sum, an outcome is counted.
func (a *reader) add(r *bookReport) {
	if r.kind == reportFill {
		a.result.Add(r.maker, r.order, r.px, r.qty)
		return
	}
	a.outcomes++
	if r.reject != 0 {
		a.rejected++
	}
}
