package httpapi

import (
	"slices"
	"time"

	"posttrade/matcher"
	"posttrade/matcher/admission"
)

// batchItem is one order of a batch on its way.
//
// It is kept by the exchange for later batches: its slices point into the body of the batch that
// used it last.
type batchItem struct {
	order   orderRequest
	command matcher.Command
	ask     *admission.Request // what became of it; see judgeBatch
	ticket  int                // its place on the ticket; -1: it is not sequenced
}

// createBatch is POST /orders/batch. Reading and entitlement refuse the whole batch before anything
// is sequenced. After that each order is decided separately, also an order whose key is known with
// different terms.
//
// 201 whatever becomes of the single orders. All admitted orders are handed in on one ticket, so
// they are sequenced side by side, in the order of the request, all or none.
func (x *exchange) createBatch() problem {
	if p := x.admit(); p.status != 0 {
		return p
	}
	if p := x.readBody(); p.status != 0 {
		return p
	}
	if p := x.readBatch(); p.status != 0 {
		return p
	}
	for i := range x.batch {
		if !x.entitled(x.batch[i].order.accountID) {
			return problemEntitled
		}
	}
	if p := x.verdictProblem(x.judgeBatch()); p.status != 0 {
		return p
	}
	if p := x.handInBatch(); p.status != 0 {
		return p
	}
	p := x.answerBatch()
	if x.ticket != nil {
		p.notSequenced = false // orders of the batch were
	}
	x.took()
	return p
}

// readBatch decodes the array.
//
// An error names the item, counted from 0. A batch has 1 to maxBatch orders.
func (x *exchange) readBatch() problem {
	x.batch = x.batch[:0]
	for x.body.json.BeginArray(); x.body.json.NextItem(); {
		if len(x.batch) == maxBatch {
			x.body.fail(errBatchSize)
			break
		}
		x.body.order(&x.nextItem().order)
	}
	if err := x.body.end(); err != nil {
		return x.body.bodyProblem(err, len(x.batch)-1)
	}
	if len(x.batch) == 0 {
		return x.body.bodyProblem(errBatchSize, -1)
	}
	return problem{}
}

// nextItem makes the batch one item longer. The item keeps the values of its last use, except
// ticket.
func (x *exchange) nextItem() *batchItem {
	n := len(x.batch)
	if n < cap(x.batch) {
		x.batch = x.batch[:n+1]
	} else {
		x.batch = append(x.batch, batchItem{})
	}
	x.batch[n].ticket = -1
	return &x.batch[n]
}

// judgeBatch asks the admission room about all orders, and gives each that goes to the engine its
// place on the ticket.
//
// All orders of a batch have one event time. Admitted: each item has its own verdict; any other
// verdict is the whole batch's.
func (x *exchange) judgeBatch() admission.Verdict {
	now := x.m.Clock()
	x.asks = slices.Grow(x.asks[:0], len(x.batch))[:len(x.batch)]
	for i := range x.batch { // start the look-ups of all keys before the first result is needed
		item := &x.batch[i]
		o := &item.order
		o.command(matcher.OrderNew, x.m.Security(o.security), now, &item.command)
		item.ask = &x.asks[i]
		*item.ask = admission.Request{Command: &item.command, ClientID: o.clientID, Ticker: o.security}
		x.m.Prepare(item.ask)
	}
	x.atGate()
	v := x.m.DecideAll(x.asks)
	x.atEdge()
	return v
}

// handInBatch sequences the admitted orders, if there are any, and settles the answers to them.
//
// After a problem none of the answers may be read.
func (x *exchange) handInBatch() problem {
	n := 0
	for i := range x.asks {
		if x.asks[i].Verdict == admission.Admitted {
			x.batch[i].ticket = n
			n++
		}
	}
	if n == 0 {
		return problem{}
	}
	if p := x.acquire(n); p.status != 0 {
		return p
	}
	for i := range x.batch {
		if item := &x.batch[i]; item.ticket >= 0 {
			*x.ticket.Command(item.ticket) = item.command
			x.ticket.SetClientID(item.ticket, item.order.clientID)
		}
	}
	if p := x.sequence(); p.status != 0 {
		return p
	}
	for i := range x.batch {
		if item := &x.batch[i]; item.ticket >= 0 {
			x.m.Settle(item.ask, x.ticket.Answer(item.ticket))
		}
	}
	return problem{}
}

// answerBatch renders the decisions in the order of the request.
//
// All repeated orders of a batch read their fills within one time-out. A problem is the whole
// batch's, as it is of a single order.
func (x *exchange) answerBatch() problem {
	if p := x.shownBatch(); p.status != 0 {
		return p
	}
	a, late := x.m.batches.begin(), x.fillsLate()
	b, p := append(a.text, '['), problem{}
	for i := range x.batch {
		if i > 0 {
			b = append(b, ',')
		}
		if b, p = x.appendItem(b, &x.batch[i], late); p.status != 0 {
			return p
		}
	}
	a.text = append(b, ']')
	return x.sendLong(201, a)
}

// shownBatch waits until what the batch's repeated orders show is durable.
//
// The batch's own commands are durable already; first decisions may not be.
func (x *exchange) shownBatch() problem {
	for i := range x.asks {
		if v := x.asks[i].Verdict; v == admission.Repeated || v == admission.Differs {
			return x.shown()
		}
	}
	return problem{}
}

// appendItem appends the Order of one item.
//
// It counts the item, unless its key is known with other terms. Each decision of a batch has the
// document of a single order, refusals too. Problems are those of fillsOf.
func (x *exchange) appendItem(b []byte, item *batchItem, late time.Time) ([]byte, problem) {
	o, q, a := &item.order, item.ask, &undecided
	if item.ticket >= 0 {
		a = x.ticket.Answer(item.ticket)
	}
	switch q.Verdict {
	case admission.Differs:
		return x.appendConflict(b, o, a.InputSeq, q.Command.EventTimeMillis), problem{}
	case admission.Repeated:
		x.m.duplicates.n.Add(1)
		return x.appendKnown(b, o, q, late)
	case admission.Refused:
		x.refused(q.Reason)
		if item.ticket < 0 {
			return x.appendRefusedItem(b, o, q.Reason, 0, 0, q.Command.EventTimeMillis), problem{}
		}
	default:
		x.m.accepted.n.Add(1)
	}
	return appendAnswer(b, o, a, &x.times), problem{}
}

// appendKnown appends the Order behind a key that was decided before.
//
// An accepted order that is not kept any more shows what its key remembers.
func (x *exchange) appendKnown(b []byte, o *orderRequest, q *admission.Request,
	late time.Time) ([]byte, problem) {
	key := &q.First
	row, held := x.m.Views.Numbered(key.Ref)
	switch {
	case held:
		if p := x.fillsOf(key.InputSeq, late); p.status != 0 {
			return b, p
		}
		b = x.appendRow(b, &row)
		return append(appendFills(b[:len(b)-1], row.Ref, x.fills), '}'), problem{}
	case key.Reason != matcher.Accepted:
		return x.appendRefusedItem(b, o, key.Reason, key.InputSeq, key.Ref,
			q.Command.EventTimeMillis), problem{}
	}
	return appendForgotten(b, o, key), problem{}
}
