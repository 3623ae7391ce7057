package httpapi

import (
	"errors"
	"fmt"

	"posttrade/blotter"
	"posttrade/matcher"
	"posttrade/matcher/admission"
)

// The errors of a booking whose JSON is well-formed. Their texts contain nothing of the input.
var (
	errDate       = errors.New("not a date, yyyy-MM-dd, of 1970-01-01 to 2149-06-06")
	errZeroRate   = errors.New("a rate of 0 cannot be booked")
	errConvention = errors.New("not the name of a set of conventions; the case counts")
	errMaturity   = errors.New("the maturity must be after the effective date")
	errExpiry     = errors.New("the expiry must not be after the effective date")
)

// bookContract is POST /swaps and POST /swaptions: one code path and one validator for both.
//
// The record of a booking cannot carry a gate's refusal: the engine judges every booking itself.
func (x *exchange) bookContract(swaption bool) problem {
	if p := x.admit(); p.status != 0 {
		return p
	}
	if p := x.readBody(); p.status != 0 {
		return p
	}
	c := &x.contract
	x.body.contract(c, swaption)
	if p := x.bodyRead(); p.status != 0 {
		return p
	}
	if !x.entitled(c.terms.AccountID) {
		return problemEntitled
	}
	q := x.asked(c.clientID, nil)
	*q.Command = c.command(x.m.Clock())
	if x.judge(q) == admission.Admitted {
		if p := x.handIn(q); p.status != 0 {
			return p
		}
		a := x.ticket.Answer(0)
		x.m.Settle(q, a)
		p := x.answerContract(q, a.InputSeq)
		x.took()
		return p
	}
	return x.answerContract(q, 0)
}

// answerContract renders the verdict on a booking; a sequence of 0: nothing was sequenced.
func (x *exchange) answerContract(q *admission.Request, inputSeq uint64) problem {
	switch q.Verdict {
	case admission.Admitted:
		x.m.accepted.n.Add(1)
		return x.answerBooked(inputSeq)
	case admission.Repeated:
		return x.answerKnownContract(&q.First)
	case admission.Refused:
		x.refused(q.Reason)
		return x.answerContractRefusal(q.Reason, inputSeq)
	}
	return x.verdictProblem(q.Verdict).under(inputSeq)
}

// answerKnownContract answers with the first decision on the booking.
//
// A contract never changes, so the first answer can be made again from its key and the repeated
// terms.
func (x *exchange) answerKnownContract(row *blotter.KeyRow) problem {
	x.m.duplicates.n.Add(1)
	if p := x.durable(row.InputSeq); p.status != 0 {
		return p
	}
	if row.Reason != matcher.Accepted {
		return x.answerContractRefusal(row.Reason, row.InputSeq)
	}
	return x.answerBooked(row.InputSeq)
}

// answerBooked is the 200 of a booking: its sequence is the number in its id.
func (x *exchange) answerBooked(inputSeq uint64) problem {
	b := append(x.begin(), `{"contractId":`...)
	b = appendContractID(b, x.contract.terms.Swaption, inputSeq)
	b = append(b, `,"sequence":`...)
	b = appendUint(b, inputSeq)
	return x.send(200, append(b, `,"booked":true}`...))
}

// answerContractRefusal is the 422 of a booking. A sequence of 0 is shown as null: nothing was
// sequenced.
//
// A refused booking has no contract id.
func (x *exchange) answerContractRefusal(reason matcher.RiskReason, inputSeq uint64) problem {
	c := &x.contract
	b := problem{status: 422, code: CodeRiskRefused, reason: reason,
		detail: "the risk gate refused the booking"}.append(x.begin())
	b = append(b, `,"booked":false,"clientOrderId":`...)
	b = appendOptional(b, c.clientID)
	b = append(b, `,"accountId":`...)
	b = appendUint(b, uint64(c.terms.AccountID))
	b = append(b, `,"sequence":`...)
	b = appendPresent(b, inputSeq)
	return x.sendProblem(422, append(b, '}'))
}

// listContracts is GET /contracts.
//
// A page is by id, ascending. The cursor is the last id shown.
func (x *exchange) listContracts() problem {
	if p := x.admit(); p.status != 0 {
		return p
	}
	page := newListQuery(cursorContracts)
	if p := x.eachParameter(page.read); p.status != 0 {
		return p
	}
	accounts, p := x.accountScope(page.asked, page.account)
	if p.status != 0 {
		return p
	}
	var next uint64
	x.contracts, next = x.views.Contracts(blotter.ContractFilter{Accounts: accounts}, page.after,
		page.limit, x.contracts[:0])
	if p := x.shown(); p.status != 0 {
		return p
	}
	b := append(x.begin(), `{"items":[`...)
	b = appendEach(b, x.contracts, appendContract)
	return x.send(200, endList(b, cursorContracts, next))
}

// showContract is GET /contracts/{contractId}. The prefix is part of the id: the prefix of a swap
// with the number of a swaption finds no contract.
func (x *exchange) showContract(id []byte) problem {
	if p := x.admit(); p.status != 0 {
		return p
	}
	if p := x.noParameters(); p.status != 0 {
		return p
	}
	swaption, n, ok := matcher.ParseContractID(string(id))
	if !ok {
		return problemContract
	}
	row, ok := x.views.Contract(n)
	if !ok || row.Swaption != swaption {
		return problemContract
	}
	if !x.entitled(row.AccountID) {
		return problemEntitled
	}
	if p := x.shown(); p.status != 0 {
		return p
	}
	return x.send(200, appendContract(x.begin(), &row))
}

// appendContract appends the document of a contract, with the terms that the client asked for. A
// name that this build does not know has no default.
//
// It panics on terms that this build does not know, which ends the request with 500: to show other
// terms in their place would be worse.  A journal may hold the terms of another build.
func appendContract(b []byte, c *blotter.ContractRow) []byte {
	convention, ok := matcher.ConventionAt(c.Convention)
	if !ok || !c.Style.Known() {
		panic(fmt.Sprintf(
			"httpapi: contract %d has terms that this build does not know: convention=%d style=%d",
			c.ID, c.Convention, c.Style))
	}
	b = append(b, `{"contractId":`...)
	b = appendContractID(b, c.Swaption, c.ID)
	if c.Swaption {
		b = append(b, `,"productType":"SWAPTION","clientOrderId":`...)
	} else {
		b = append(b, `,"productType":"SWAP","clientOrderId":`...)
	}
	b = appendOptional(b, c.ClientID())
	b = append(b, `,"accountId":`...)
	b = appendUint(b, uint64(c.AccountID))
	if c.Side == matcher.Sell {
		b = append(b, `,"payReceive":"Pay","notional":`...)
	} else {
		b = append(b, `,"payReceive":"Receive","notional":`...)
	}
	b = appendInt(b, int64(c.Notional))
	b = append(b, `,"fixedRate":`...)
	b = appendDecimal(b, c.FixedRate)
	b = append(b, `,"effectiveDate":`...)
	b = appendDay(b, c.Effective)
	b = append(b, `,"maturityDate":`...)
	b = appendDay(b, c.Maturity)
	b = append(b, `,"conventions":`...)
	b = appendString(b, convention.Name)
	if c.Swaption {
		b = append(b, `,"expiryDate":`...)
		b = appendDay(b, c.Expiry)
		b = append(b, `,"exerciseStyle":`...)
		b = appendString(b, c.Style.String())
	} else {
		b = append(b, `,"expiryDate":null,"exerciseStyle":null`...)
	}
	b = append(b, `,"sequence":`...)
	return append(appendUint(b, c.ID), '}')
}
