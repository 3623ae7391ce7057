package httpapi

import (
	"context"
	"errors"

	"posttrade/journal/asof"
)

// The endpoints below /as-of/{inputSeq} show what the endpoint behind the number showed when that
// sequence was the head. They run the code of that endpoint over the views of a moment.

// asOfPrefix begins the path of every endpoint of the past.
const asOfPrefix = "/as-of/"

// problemMoments is the answer when no engine for the past becomes free in time.
var problemMoments = problem{status: 503, code: CodeBusy,
	detail:       "as many moments as may be are being looked at, or this one is still being loaded",
	notSequenced: true}

// problemMoment is the answer to a sequence that is none.
var problemMoment = problem{status: 400, code: CodeBadRequest, field: "inputSeq",
	detail: "the sequence is a whole number without leading zeros, " +
		"0 for the state before the first command"}

// asOfRoute finds the endpoint of a path behind asOfPrefix.
//
// It knows the paths behind the sequence by routeOf, so an endpoint has one spelling in both times.
// Endpoints without a past are 404.
func asOfRoute(rest []byte) (r route, id []byte) {
	sequence, path := cutSegment(rest)
	if len(sequence) == 0 || len(path) == 0 {
		return routeNone, nil
	}
	if string(path) == "/accounts" {
		return routeAsOfAccounts, nil
	}
	now, id := routeOf(path)
	switch now {
	case routeBook:
		return routeAsOfBook, id
	case routePositions:
		return routeAsOfPositions, nil
	case routeCredit:
		return routeAsOfCredit, nil
	case routeOrders:
		return routeAsOfOrders, nil
	case routeOrder:
		return routeAsOfOrder, id
	case routeRiskSnapshot:
		return routeAsOfControls, nil
	case routeTrades:
		return routeAsOfTrades, nil
	case routeContracts:
		return routeAsOfContracts, nil
	case routeContract:
		return routeAsOfContract, id
	}
	return routeNone, nil
}

// pastSequence reads the number behind asOfPrefix. ok is false for a number with a sign, a leading
// zero or more than 63 bits.
func (x *exchange) pastSequence() (inputSeq uint64, ok bool) {
	path, _ := splitTarget(x.ctx.Request.Header.RequestURI())
	rest, _ := cutPrefix(stripPrefix(path, x.m.prefix), asOfPrefix)
	sequence, _ := cutSegment(rest)
	return number(sequence, 0, 1<<63-1)
}

// showPast answers for a moment of the past.
//
// It needs an admin token in every configuration: a moment shows all accounts. The wait for an
// engine of the past counts against queryTimeout.
func (x *exchange) showPast(r route, id []byte) problem {
	if p := x.admin(); p.status != 0 {
		return p
	}
	if x.m.AsOf == nil {
		return problemRoute
	}
	inputSeq, ok := x.pastSequence()
	if !ok {
		return problemMoment
	}
	ctx, cancel := context.WithTimeout(x.m.lasting, queryTimeout)
	defer cancel()
	return x.showAt(ctx, inputSeq, r, id)
}

// showAt answers with what an endpoint showed when a sequence was the head.
//
// While it runs, views are the moment's, and past says that nothing has to become durable. Both are
// set back before the moment is released. Only a good answer is marked with the moment's sequence.
func (x *exchange) showAt(ctx context.Context, inputSeq uint64, r route, id []byte) problem {
	moment, p := x.m.moment(ctx, inputSeq)
	if p.status != 0 {
		return p
	}
	defer moment.Release()
	x.views, x.past = moment.Views(), true
	defer func() { x.views, x.past = x.m.Views, false }()
	if p := x.showMoment(ctx, moment, r, id); p.status != 0 {
		return p
	}
	x.asOf, x.marked = inputSeq, true
	return problem{}
}

// moment loads a moment. The caller releases it.
func (m *OrderMatcher) moment(ctx context.Context, inputSeq uint64) (*asof.Moment, problem) {
	moment, err := m.AsOf.At(ctx, inputSeq)
	if err != nil {
		return nil, m.notLoaded(err)
	}
	return moment, problem{}
}

// notLoaded is the problem of a moment that cannot be shown.
//
// A sequence beyond the durable head is 400 and names the head. A time-out is 503 and not 504: what
// was replayed is kept, so a repetition gets further.
func (m *OrderMatcher) notLoaded(err error) problem {
	var beyond *asof.BeyondError
	switch {
	case errors.As(err, &beyond):
		p := badQuery(beyond.Error())
		p.field = problemMoment.field
		return p
	case errors.Is(err, asof.ErrBusy), errors.Is(err, context.DeadlineExceeded): // being loaded
		return problemMoments
	case errors.Is(err, asof.ErrClosed):
		return problemStopping
	}
	return m.failed(err)
}

// showMoment runs the endpoint of the present over the views of a moment.
//
// The endpoints of the present check token and query themselves.
func (x *exchange) showMoment(ctx context.Context, moment *asof.Moment, r route,
	id []byte) problem {
	switch r {
	case routeAsOfBook:
		return x.showBook(id)
	case routeAsOfPositions:
		return x.listPositions()
	case routeAsOfCredit:
		return x.listPastCredit(moment)
	case routeAsOfOrders:
		return x.listOrders()
	case routeAsOfOrder:
		return x.showOrder(id)
	case routeAsOfAccounts:
		return x.listPastAccounts()
	case routeAsOfControls:
		return x.showPastControls(moment)
	case routeAsOfContracts:
		return x.listContracts()
	case routeAsOfContract:
		return x.showContract(id)
	default:
		return x.listPastTrades(ctx, moment)
	}
}
