package httpapi

import (
	"context"
	"errors"
	"time"

	"posttrade/blotter"
	"posttrade/journal"
	"posttrade/matcher"
	"posttrade/matcher/admission"
	"posttrade/matcher/desk"
)

// createOrder is POST /orders.
//
// 201 with the order and its fills, or 422 for a refusal, with its sequence if it has one.
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

// bookTrade is POST /trades. The trade is at the last known price: there is no order and no book.
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
//
// The entitlement comes before the key is looked up: a caller must not learn of another account's
// orders by their client ids.
func (x *exchange) decide(kind matcher.CommandType) problem {
	o := &x.order
	if !x.entitled(o.accountID) {
		return problemEntitled
	}
	q := x.asked(o.clientID, o.security)
	o.command(kind, x.m.Security(o.security), x.m.Clock(), q.Command)
	if x.judge(q) != admission.Admitted {
		return x.answerDecision(q, &undecided)
	}
	if p := x.handIn(q); p.status != 0 {
		return p
	}
	a := x.ticket.Answer(0)
	x.m.Settle(q, a)
	p := x.answerDecision(q, a)
	x.took()
	return p
}

// undecided is the engine's answer to a request that did not reach it.
var undecided desk.Answer

// answerDecision renders the verdict on a new order or a market trade, with the engine's answer.
//
// a is undecided when the request was not handed in; its sequence is then 0.
func (x *exchange) answerDecision(q *admission.Request, a *desk.Answer) problem {
	o := &x.order
	switch q.Verdict {
	case admission.Admitted:
	case admission.Repeated:
		return x.answerKnown(&q.First)
	case admission.Refused:
		x.refused(q.Reason)
		return x.answerRefusal(o, q.Reason, a.InputSeq, a.Order())
	default:
		return x.verdictProblem(q.Verdict).under(a.InputSeq)
	}
	x.m.accepted.n.Add(1)
	b := x.begin()
	if q.Command.Type == matcher.TradeNew {
		b = appendTrade(b, o, a.Fills[0].TradeSeq, a.Fills[0].Px, a.InputSeq, a.TimeMillis)
	} else {
		b = appendAnswer(b, o, a, &x.times)
	}
	return x.send(201, b)
}

// refused counts a refusal.
//
// A reason that this build does not know counts under the last one.
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

// answerKnown answers with the first decision on the request: its status code, id and sequence. The
// other fields show the order as it now stands.
//
// A first decision is looked up before it may be durable: every branch waits before it answers. 201
// also when the order has ended since; appendForgotten shows one that is not kept any more.
func (x *exchange) answerKnown(row *blotter.KeyRow) problem {
	o := &x.order
	x.m.duplicates.n.Add(1)
	if row.Kind == matcher.KeyTrade {
		return x.answerKnownTrade(row)
	}
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
	if p := x.fillsOf(row.InputSeq, x.fillsLate()); p.status != 0 {
		return p
	}
	b = x.appendRow(b, &order)
	b = appendFills(b[:len(b)-1], order.Ref, x.fills)
	return x.send(201, append(b, '}'))
}

// fillsLate is when an answer that begins now gives up to read fills from the journal.
func (x *exchange) fillsLate() time.Time { return time.Now().Add(x.m.AnswerTimeout) }

// fillsOf reads the fills of a durable command into x.fills: from the blotter, and from the journal
// when the blotter has dropped some. Fills in an archive that cannot be read are left out. The
// journal is read until late, which is the same for all commands of an answer.
func (x *exchange) fillsOf(inputSeq uint64, late time.Time) problem {
	var whole bool
	x.fills, whole = x.m.Blotter.ByInputSeq(inputSeq, x.fills[:0])
	if whole || x.m.FillsOf == nil {
		return problem{}
	}
	ctx, cancel := context.WithDeadline(x.m.lasting, late)
	defer cancel()
	fills, err := x.m.FillsOf(ctx, inputSeq, x.fills[:0])
	switch {
	case err == nil:
		x.fills = fills
	case errors.Is(err, context.DeadlineExceeded):
		return x.notShown()
	case !errors.Is(err, journal.ErrArchived):
		return x.m.failed(err)
	}
	return problem{}
}

// answerKnownTrade is answerKnown for a market trade. Id, price and time are null when the trade is
// in an archive that cannot be read.
func (x *exchange) answerKnownTrade(row *blotter.KeyRow) problem {
	o := &x.order
	if p := x.durable(row.InputSeq); p.status != 0 {
		return p
	}
	if row.Reason != matcher.Accepted {
		return x.answerRefusal(o, row.Reason, row.InputSeq, 0)
	}
	if p := x.fillsOf(row.InputSeq, x.fillsLate()); p.status != 0 {
		return p
	}
	if len(x.fills) == 0 {
		return x.send(201, appendTrade(x.begin(), o, 0, 0, row.InputSeq, 0))
	}
	fill := &x.fills[0]
	return x.send(201, appendTrade(x.begin(), o, fill.TradeSeq, fill.Px, fill.InputSeq,
		fill.TimeMillis))
}
