package httpapi

import (
	"posttrade/blotter"
	"posttrade/matcher"
	"posttrade/matcher/admission"
)

// cancelOrder is POST /orders/{orderId}/cancel. An owner can cancel an order also while the control
// state is stale or the kill switch is on. Only a problem of the journal prevents it; see open.
func (x *exchange) cancelOrder(id []byte) problem {
	if p := x.admit(); p.status != 0 {
		return p
	}
	if p := x.emptyBody(); p.status != 0 {
		return p
	}
	row, p := x.ownOrder(id)
	if p.status != 0 {
		return p
	}
	q := x.asked(nil, nil)
	*q.Command = matcher.NewCommand(matcher.OrderCancel)
	return x.amend(q, &row)
}

// replaceOrder is POST /orders/{orderId}/replace.
//
// The order's own account, side and security complete the record; the body has the rest. A replace
// is not screened at the gate: the engine judges it.
func (x *exchange) replaceOrder(id []byte) problem {
	if p := x.admit(); p.status != 0 {
		return p
	}
	if p := x.readBody(); p.status != 0 {
		return p
	}
	x.body.replacement(&x.order)
	if p := x.bodyRead(); p.status != 0 {
		return p
	}
	row, p := x.ownOrder(id)
	if p.status != 0 {
		return p
	}
	o := &x.order
	o.accountID, o.side = row.AccountID, row.Side
	o.security = append(x.ticker[:0], x.m.Gate.Ticker(row.SecurityID)...)
	q := x.asked(o.clientID, nil)
	o.command(matcher.OrderReplace, row.SecurityID, 0, q.Command)
	return x.amend(q, &row)
}

// amend decides a cancel or a replace of an order and answers it.
//
// The command gets its time here, when everything about it has been read.
func (x *exchange) amend(q *admission.Request, row *blotter.OrderRow) problem {
	q.Command.EventTimeMillis = x.m.Clock()
	q.About(row)
	if x.judge(q) != admission.Admitted {
		return x.answerAmended(q, row.Number(), 0)
	}
	if p := x.handIn(q); p.status != 0 {
		return p
	}
	a := x.ticket.Answer(0)
	x.m.Settle(q, a)
	p := x.answerAmended(q, row.Number(), a.InputSeq)
	x.took()
	return p
}

// answerAmended renders the verdict on a cancel or a replace.
//
// A success shows the order as it is after the command; another command may have changed it since.
// A refusal is counted, and shown when it is durable.
func (x *exchange) answerAmended(q *admission.Request, number, inputSeq uint64) problem {
	reason := q.Reason
	switch q.Verdict {
	case admission.Admitted:
	case admission.Repeated:
		x.m.duplicates.n.Add(1)
		reason, inputSeq = q.First.Reason, q.First.InputSeq
	case admission.Refused:
		x.refused(reason)
	default:
		if first := q.First.InputSeq; q.Verdict == admission.Ended && first != 0 {
			inputSeq = first // of the key
		}
		return x.verdictProblem(q.Verdict).under(inputSeq)
	}
	if reason == matcher.Accepted {
		return x.answerOrder(200, number, inputSeq)
	}
	if p := x.durable(inputSeq); p.status != 0 {
		return p
	}
	return x.answerRefusal(&x.order, reason, inputSeq, number)
}

// ownOrder finds the order of a path's id, if the caller may see and change it.
//
// 404 comes before 403: an id that was never given is the same answer for every caller.
func (x *exchange) ownOrder(id []byte) (row blotter.OrderRow, p problem) {
	number, ok := matcher.ParseOrderID(id)
	if !ok {
		return row, problemOrder
	}
	if row, ok = x.views.Numbered(number); !ok {
		return row, problemOrder
	}
	if !x.entitled(row.AccountID) {
		return row, problemEntitled
	}
	return row, problem{}
}

// terminal is the 409 of an order that can no longer change. It waits until that state is durable.
func (x *exchange) terminal() problem {
	if p := x.shown(); p.status != 0 {
		return p
	}
	return problemDone
}

// answerOrder answers a command, sequenced under inputSeq, with its order as it now stands.
//
// It waits until what it shows is durable, also when the order is gone.
func (x *exchange) answerOrder(status int, number, inputSeq uint64) problem {
	row, ok := x.m.Views.Numbered(number)
	if p := x.shown(); p.status != 0 {
		return p
	}
	if !ok {
		// So many orders have ended since then that this one is no longer kept.
		return problemOrder.under(inputSeq)
	}
	return x.send(status, x.appendRow(x.begin(), &row))
}
