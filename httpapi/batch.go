package httpapi

import (
	"posttrade/blotter"
	"posttrade/matcher"
)

// batchItem is one order of a batch on its way.
type batchItem struct {
	order   orderRequest
	command matcher.Command
	reason  matcher.RiskReason // the reason of the gate
	known   blotter.KeyRow     // the first decision, if the order was decided before
	repeats bool
	differs bool // decided before, with different terms
	ticket  int  // its place on the ticket; -1: it is not sequenced
}

// createBatch is POST /orders/batch. Reading and entitlement refuse the whole batch before anything
// is sequenced. After that each order is decided separately, also an order whose key is known with
// different terms.
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
	sequenced, p := x.screenBatch()
	if p.status != 0 {
		return p
	}
	if sequenced > 0 {
		if p := x.acquire(sequenced); p.status != 0 {
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
	}
	p = x.answerBatch()
	x.took()
	return p
}

// readBatch decodes the array.
func (x *exchange) readBatch() problem {
	x.batch = x.batch[:0]
	for x.body.json.BeginArray(); x.body.json.NextItem(); {
		if len(x.batch) == maxBatch {
			x.body.field = ""
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

// screenBatch finds the orders that are known already, screens the others and returns the number of
// orders that go to the engine.
func (x *exchange) screenBatch() (sequenced int, p problem) {
	now, fresh := x.m.Clock(), false
	for i := range x.batch { // start the look-ups of all keys before the first result is needed
		item := &x.batch[i]
		securityID, _ := x.m.Gate.Security(item.order.security)
		item.order.command(matcher.OrderNew, securityID, now, &item.command)
		x.key(&item.command, item.order.clientID)
		x.m.Views.ExpectKey(matcher.KeyOrder, uint64(item.command.PriceTicks))
	}
	for i := range x.batch {
		item := &x.batch[i]
		known, p, ok := x.known(&item.command, item.order.clientID, item.order.security)
		item.known, item.repeats, item.differs = known, ok, p.status != 0
		fresh = fresh || !ok
	}
	if !fresh {
		return 0, problem{}
	}
	if p := x.ready(); p.status != 0 {
		return 0, p
	}
	x.atGate()
	for i := range x.batch {
		sequenced += x.screenItem(&x.batch[i], sequenced)
	}
	x.atEdge()
	return sequenced, problem{}
}

// screenItem screens one order and returns 1 when it goes to the engine, at place
// at of the ticket.
func (x *exchange) screenItem(item *batchItem, at int) int {
	if item.repeats {
		return 0
	}
	item.reason = x.m.Gate.Screen(&item.command)
	if item.reason != matcher.Accepted && !x.m.SequenceRefusals {
		return 0
	}
	item.command.OrderRef = uint32(item.reason)
	item.ticket = at
	return 1
}

// answerBatch renders the decisions in the order of the request.
func (x *exchange) answerBatch() problem {
	if p := x.shownBatch(); p.status != 0 {
		return p
	}
	b := append(x.begin(), '[')
	for i := range x.batch {
		if i > 0 {
			b = append(b, ',')
		}
		b = x.appendItem(b, &x.batch[i])
	}
	return x.send(201, append(b, ']'))
}

// shownBatch waits until what the batch's repeated orders show is durable.
func (x *exchange) shownBatch() problem {
	for i := range x.batch {
		item := &x.batch[i]
		if !item.repeats && (item.ticket < 0 || !x.ticket.Answer(item.ticket).Duplicate()) {
			continue
		}
		return x.shown()
	}
	return problem{}
}

// appendItem appends the Order of one item.
func (x *exchange) appendItem(b []byte, item *batchItem) []byte {
	o, cmd := &item.order, &item.command
	switch {
	case item.differs:
		return x.appendConflict(b, o, 0, cmd.EventTimeMillis)
	case item.repeats:
		x.m.duplicates.n.Add(1)
		return x.appendKnown(b, o, cmd, &item.known)
	case item.ticket < 0:
		x.refused(item.reason)
		return x.appendRefusedItem(b, o, item.reason, 0, cmd.EventTimeMillis)
	}
	a := x.ticket.Answer(item.ticket)
	switch {
	case a.Duplicate():
		x.m.duplicates.n.Add(1)
		row, p, ok := x.known(cmd, o.clientID, o.security)
		if !ok || p.status != 0 {
			return x.appendConflict(b, o, a.InputSeq, a.TimeMillis)
		}
		return x.appendKnown(b, o, cmd, &row)
	case a.Refused():
		x.refused(a.Reason)
	default:
		x.m.accepted.n.Add(1)
	}
	return appendAnswer(b, o, a, &x.times)
}

// appendKnown appends the Order behind a key that was decided before.
func (x *exchange) appendKnown(b []byte, o *orderRequest, cmd *matcher.Command,
	key *blotter.KeyRow) []byte {
	row, held := x.m.Views.Numbered(key.Ref)
	switch {
	case held:
		x.fills = x.m.Blotter.ByInputSeq(key.InputSeq, x.fills[:0])
		b = x.appendRow(b, &row)
		return append(appendFills(b[:len(b)-1], row.Ref, x.fills), '}')
	case key.Reason != matcher.Accepted:
		return x.appendRefusedItem(b, o, key.Reason, key.InputSeq, cmd.EventTimeMillis)
	}
	return appendForgotten(b, o, key)
}
