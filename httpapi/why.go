package httpapi

import (
	"context"
	"encoding/json"
	"errors"

	"posttrade/journal/asof"
	"posttrade/journal/why"
	"posttrade/matcher"
)

// problemExplanations is the answer when no explanation more is made.
var problemExplanations = problem{status: 503, code: CodeBusy,
	detail: "as many explanations as may be are being made", notSequenced: true}

// showWhy is GET /orders/{orderId}/why, GET /contracts/{contractId}/why and GET /why.
//
// The explanation is made before the account is known, so entitlement is checked behind it; a
// caller without it gets 403 and nothing of the explanation. Fills against orders of other accounts
// are shown without those orders.
func (x *exchange) showWhy(r route, id []byte) problem {
	if p := x.admit(); p.status != 0 {
		return p
	}
	if x.m.AsOf == nil {
		return problemRoute
	}
	inputSeq := uint64(0)
	if p := x.eachParameter(func(name string, value []byte) (ok bool) {
		if r == routeWhy && name == "inputSeq" {
			inputSeq, ok = number(value, 1, 1<<63-1)
		}
		return ok
	}); p.status != 0 {
		return p
	}
	if r == routeWhy && inputSeq == 0 {
		return badParameter("inputSeq", "it is missing")
	}
	ctx, cancel := context.WithTimeout(x.m.lasting, queryTimeout)
	defer cancel()
	answer, p := x.explain(ctx, r, id, inputSeq)
	if p.status != 0 {
		return p
	}
	if answer.ForAdmin {
		if p := x.admin(); p.status != 0 {
			return p
		}
	} else if !x.entitled(answer.Account) {
		return problemEntitled
	}
	answer.Hide(x.entitled)
	b, err := json.Marshal(answer)
	if err != nil {
		panic("httpapi: an explanation does not marshal: " + err.Error()) // plain types: a bug
	}
	return x.send(200, append(x.begin(), b...))
}

// explain makes the explanation that a path asks for.
//
// It costs a replay of the command, and readings backwards for its causes; why.MaxConcurrent are
// made at a time.
func (x *exchange) explain(ctx context.Context, r route, id []byte,
	inputSeq uint64) (answer *why.Explanation, p problem) {
	explainer, err := x.m.why, error(nil)
	switch r {
	case routeOrderWhy:
		n, ok := matcher.ParseOrderID(id)
		if !ok {
			return nil, problemOrder
		}
		answer, err = explainer.Order(ctx, n)
	case routeContractWhy:
		swaption, n, ok := matcher.ParseContractID(string(id))
		if !ok {
			return nil, problemContract
		}
		answer, err = explainer.Contract(ctx, swaption, n)
	default:
		answer, err = explainer.Command(ctx, inputSeq)
	}
	switch {
	case err == nil:
		return answer, problem{}
	case errors.Is(err, asof.ErrNoOrder):
		return nil, problemOrder
	case errors.Is(err, why.ErrNoContract):
		return nil, problemContract
	case errors.Is(err, why.ErrBusy):
		return nil, problemExplanations
	}
	return nil, x.m.notLoaded(err)
}
