package httpapi

import (
	"posttrade/blotter"
	"posttrade/matcher"
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
	if !row.Open() {
		return x.terminal()
	}
	if p := x.open(); p.status != 0 {
		return p
	}
	if p := x.acquire(1); p.status != 0 {
		return p
	}
	cmd := x.ticket.Command(0)
	*cmd = matcher.NewCommand(matcher.OrderCancel)
	cmd.EventTimeMillis = x.m.Clock()
	cmd.OrderRef, cmd.AccountID, cmd.SecurityID, cmd.Side = row.Ref, row.AccountID,
		row.SecurityID, row.Side
	if p := x.sequence(); p.status != 0 {
		return p
	}
	if a := x.ticket.Answer(0); a.Refused() {
		return x.terminal() // it was filled or cancelled before the engine reached the command
	}
	x.took()
	return x.answerOrder(200, row.Number())
}

// replaceOrder is POST /orders/{orderId}/replace.
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
	if row.TimeInForce == blotter.PostOnly {
		o.flags = matcher.FlagPostOnly
	}
	var probe matcher.Command
	o.command(matcher.OrderReplace, row.SecurityID, x.m.Clock(), &probe)
	x.key(&probe, o.clientID)
	probe.OrderRef = row.Ref
	if key, p, ok := x.known(&probe, o.clientID, o.security); ok {
		if p.status != 0 {
			return p
		}
		x.m.duplicates.n.Add(1)
		return x.answerReplaced(row.Number(), key.Reason, key.InputSeq)
	}
	if !row.Open() {
		return x.terminal()
	}
	if p := x.ready(); p.status != 0 {
		return p
	}
	if p := x.acquire(1); p.status != 0 {
		return p
	}
	*x.ticket.Command(0) = probe
	x.ticket.SetClientID(0, o.clientID)
	if p := x.sequence(); p.status != 0 {
		return p
	}
	x.took()
	a := x.ticket.Answer(0)
	if a.Duplicate() {
		x.m.duplicates.n.Add(1)
		key, p, ok := x.known(&probe, o.clientID, o.security)
		if !ok || p.status != 0 {
			return problemTerms
		}
		return x.answerReplaced(row.Number(), key.Reason, key.InputSeq)
	}
	if a.Refused() {
		if now, ok := x.m.Views.Numbered(row.Number()); a.Reason == matcher.Invalid &&
			(!ok || !now.Open()) {
			return x.terminal() // it ended before the engine reached the command
		}
		x.refused(a.Reason)
	}
	return x.answerReplaced(row.Number(), a.Reason, a.InputSeq)
}

// ownOrder finds the order of a path's id, if the caller may see and change it.
func (x *exchange) ownOrder(id []byte) (row blotter.OrderRow, p problem) {
	number, ok := parsePrefixed(id, "ord-")
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

// answerOrder answers with an order as it now stands.
func (x *exchange) answerOrder(status int, number uint64) problem {
	row, ok := x.m.Views.Numbered(number)
	if p := x.shown(); p.status != 0 {
		return p
	}
	if !ok {
		return problemOrder // so many orders have ended since then that this one is no longer kept
	}
	return x.send(status, x.appendRow(x.begin(), &row))
}

// answerReplaced answers a replace with its decision.
func (x *exchange) answerReplaced(number uint64, reason matcher.RiskReason,
	inputSeq uint64) problem {
	if reason == matcher.Accepted {
		return x.answerOrder(200, number)
	}
	if p := x.durable(inputSeq); p.status != 0 {
		return p
	}
	return x.answerRefusal(&x.order, reason, inputSeq, number)
}
