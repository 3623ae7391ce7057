package httpapi

import (
	"posttrade/blotter"
	"posttrade/matcher"
	"posttrade/matcher/desk"
)

// createOrder is POST /orders.
func (x *exchange) createOrder() problem {
	if p := x.admit(); p.status != 0 {
		return p
	}
	if p := x.readBody(); p.status != 0 {
		return p
	}
	x.body.order(&x.order)
	if p := x.bodyRead(); p.status != 0 {
		return p
	}
	return x.decide(matcher.OrderNew)
}

// bookTrade is POST /trades.
func (x *exchange) bookTrade() problem {
	if p := x.admit(); p.status != 0 {
		return p
	}
	if p := x.readBody(); p.status != 0 {
		return p
	}
	x.body.trade(&x.order)
	if p := x.bodyRead(); p.status != 0 {
		return p
	}
	return x.decide(matcher.TradeNew)
}

// decide handles a decoded admission of one command, from the entitlement check to the answer.
func (x *exchange) decide(kind matcher.CommandType) problem {
	o := &x.order
	if !x.entitled(o.accountID) {
		return problemEntitled
	}
	var probe matcher.Command
	securityID, _ := x.m.Gate.Security(o.security)
	o.command(kind, securityID, x.m.Clock(), &probe)
	x.key(&probe, o.clientID)
	if row, p, ok := x.known(&probe, o.clientID, o.security); ok {
		if p.status != 0 {
			return p
		}
		x.m.duplicates.n.Add(1)
		return x.answerKnown(&row)
	}
	if p := x.ready(); p.status != 0 {
		return p
	}
	reason := x.screen(&probe)
	if reason != matcher.Accepted && !x.m.SequenceRefusals {
		x.refused(reason)
		return x.answerRefusal(o, reason, 0, 0)
	}
	if p := x.acquire(1); p.status != 0 {
		return p
	}
	probe.OrderRef = uint32(reason)
	*x.ticket.Command(0) = probe
	x.ticket.SetClientID(0, o.clientID)
	if p := x.sequence(); p.status != 0 {
		return p
	}
	a := x.ticket.Answer(0)
	p := x.answerDecision(kind, &probe, a)
	x.took()
	return p
}

// answerDecision renders what the engine decided on a new order or a market trade.
func (x *exchange) answerDecision(kind matcher.CommandType, cmd *matcher.Command,
	a *desk.Answer) problem {
	o := &x.order
	switch {
	case a.Duplicate():
		return x.answerDuplicate(cmd)
	case a.Refused():
		x.refused(a.Reason)
		return x.answerRefusal(o, a.Reason, a.InputSeq, a.Order())
	}
	x.m.accepted.n.Add(1)
	b := x.begin()
	if kind == matcher.TradeNew {
		b = appendTrade(b, o, a.Fills[0].TradeSeq, a.Fills[0].Px, a.InputSeq, a.TimeMillis)
	} else {
		b = appendAnswer(b, o, a, &x.times)
	}
	return x.send(201, b)
}

// refused counts a refusal.
func (x *exchange) refused(reason matcher.RiskReason) {
	x.m.rejected.n.Add(1)
	x.m.rejections[min(reason, matcher.ReasonCount-1)].n.Add(1)
}

// answerRefusal is the 422 of an order or trade that was refused. A sequence of
// 0 is shown as null: nothing was sequenced.
func (x *exchange) answerRefusal(o *orderRequest, reason matcher.RiskReason,
	inputSeq, number uint64) problem {
	b := x.refusal(o, reason).append(x.begin())
	b = append(b, `,"decision":"REJECTED","orderId":`...)
	b = appendOrderID(b, number)
	b = append(b, `,"clientOrderId":`...)
	b = appendOptional(b, o.clientID)
	b = append(b, `,"accountId":`...)
	b = appendUint(b, uint64(o.accountID))
	b = append(b, `,"security":`...)
	b = appendString(b, o.security)
	b = append(b, `,"sequence":`...)
	b = appendPresent(b, inputSeq)
	return x.sendProblem(422, append(b, '}'))
}

// refusal is the problem of a refused order or trade, without the members of an admission. What is
// wrong with a price off the grid is said, since a client cannot see it in the reason.
func (x *exchange) refusal(o *orderRequest, reason matcher.RiskReason) problem {
	p := problem{status: 422, code: CodeRiskRefused, reason: reason,
		detail: "the risk gate refused the request"}
	if tick := x.m.Gate.Tick(); reason == matcher.Invalid && o.limitPx%tick != 0 {
		p.field = "limitPrice"
		p.detail = "field limitPrice: not a multiple of the tick, " + string(appendDecimal(nil, tick))
	}
	return p
}

// key gives an admission its idempotency key.
func (x *exchange) key(cmd *matcher.Command, clientID []byte) {
	cmd.PriceTicks = int64(x.m.Views.ClientKey().Of(cmd.AccountID, clientID))
}

// known looks an admission's key up among the first decisions. ok: the request was decided before;
// p is set when its terms were different. Terms are compared as the client sent them. That includes
// the ticker of a security that the server did not know then or does not know now; security is nil
// for a booking.
func (x *exchange) known(cmd *matcher.Command, clientID, security []byte) (
	row blotter.KeyRow, p problem, ok bool) {
	if cmd.PriceTicks == 0 {
		return row, p, false
	}
	space := matcher.KeyOrder
	if cmd.Type == matcher.SwapBook || cmd.Type == matcher.SwaptionBook {
		space = matcher.KeyContract
	}
	row, ok = x.m.Views.Key(space, cmd.AccountID, uint64(cmd.PriceTicks))
	if ok && !row.Repeats(cmd, clientID, security) {
		p = problemTerms
	}
	return row, p, ok
}

// answerDuplicate answers an admission that repeats another one. The edge did not see the other
// one, because it was still under way; the engine found the repetition.
func (x *exchange) answerDuplicate(cmd *matcher.Command) problem {
	x.m.duplicates.n.Add(1)
	known, p, ok := x.known(cmd, x.order.clientID, x.order.security)
	switch {
	case !ok: // the key was forgotten between the decision and now
		return problemTerms
	case p.status != 0:
		return p
	}
	return x.answerKnown(&known)
}

// answerKnown answers with the first decision on the request: its status code, id and sequence. The
// other fields show the order as it now stands.
func (x *exchange) answerKnown(row *blotter.KeyRow) problem {
	o := &x.order
	if row.Kind == matcher.KeyTrade {
		return x.answerKnownTrade(row)
	}
	// The key can be visible before its order; once the command is durable both are.
	if p := x.durable(row.InputSeq); p.status != 0 {
		return p
	}
	if row.Reason != matcher.Accepted {
		return x.answerRefusal(o, row.Reason, row.InputSeq, row.Ref)
	}
	order, held := x.m.Views.Numbered(row.Ref)
	if p := x.shown(); p.status != 0 {
		return p
	}
	b := x.begin()
	if !held {
		return x.send(201, appendForgotten(b, o, row))
	}
	x.fills = x.m.Blotter.ByInputSeq(row.InputSeq, x.fills[:0])
	b = x.appendRow(b, &order)
	b = appendFills(b[:len(b)-1], order.Ref, x.fills)
	return x.send(201, append(b, '}'))
}

// answerKnownTrade is answerKnown for a market trade.
func (x *exchange) answerKnownTrade(row *blotter.KeyRow) problem {
	o := &x.order
	if p := x.durable(row.InputSeq); p.status != 0 {
		return p
	}
	if row.Reason != matcher.Accepted {
		return x.answerRefusal(o, row.Reason, row.InputSeq, 0)
	}
	x.fills = x.m.Blotter.ByInputSeq(row.InputSeq, x.fills[:0])
	if len(x.fills) == 0 { // older than the oldest entry of the blotter
		return x.send(201, appendTrade(x.begin(), o, 0, 0, row.InputSeq, 0))
	}
	fill := &x.fills[0]
	return x.send(201, appendTrade(x.begin(), o, fill.TradeSeq, fill.Px, fill.InputSeq,
		fill.TimeMillis))
}
