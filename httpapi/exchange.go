package httpapi

import (
	"errors"
	"time"

	"posttrade/blotter"
	"posttrade/matcher"
	"posttrade/matcher/admission"
	"posttrade/matcher/desk"
)

// exchange is one request to the order-matcher, with everything that its handlers need and reuse
// from one request to the next. One goroutine uses it.
type exchange struct {
	visit
	m     *OrderMatcher
	done  bool           // the handler returned
	views *blotter.Views // what is shown: the engine's, or those of a moment
	past  bool           // views are of a moment: all that they show is durable

	order    orderRequest
	contract contractRequest
	command  matcher.Command   // of ask
	ask      admission.Request // what the admission room is asked about
	ticket   *desk.Ticket      // the ticket that is out, so that it is given back after a panic

	batch     []batchItem
	asks      []admission.Request // of the batch
	ticks     []priceTick
	rows      []blotter.OrderRow
	fills     []matcher.Fill
	contracts []blotter.ContractRow

	asOf   uint64 // a sequence that a read has in it
	marked bool   // asOf is the moment that is shown, which may be 0
	digits []byte // memory of its text

	times  timeText                // of the last order shown
	ticker [matcher.MaxTicker]byte // of the order that a replace changes
}

// finish gives back what the request held. It is deferred, so it also runs after a panic of the
// handler; the exchange is not used again then.
func (x *exchange) finish() {
	x.release()
	if !x.done {
		return
	}
	x.done = false
	x.visit.clear()
	x.order, x.contract, x.ask = orderRequest{}, contractRequest{}, admission.Request{}
	x.views, x.past = x.m.Views, false
	x.m.exchanges.Put(x)
}

// release returns the ticket that is out, if one is.
func (x *exchange) release() {
	if x.ticket != nil {
		x.ticket.Release()
		x.ticket = nil
	}
}

// admit verifies the token of an admission or of an account's data, where entitlements are
// enforced. Elsewhere tokens are ignored.
func (x *exchange) admit() problem {
	if !x.m.Enforced {
		return problem{}
	}
	return x.authenticate()
}

// entitled reports whether the caller may act for an account and see it.
func (x *exchange) entitled(accountID uint32) bool {
	return x.m.May(&x.claims, accountID)
}

// open reports why nothing can be sequenced at all.
func (x *exchange) open() problem { return x.turnedAway(x.m.Open()) }

// turnedAway is the problem of a verdict that has no decision to show, no problem for the others.
func (x *exchange) turnedAway(v admission.Verdict) problem {
	switch v {
	case admission.Differs:
		return problemTerms
	case admission.Ended:
		return x.terminal()
	case admission.Failed:
		return problemJournal
	case admission.Full:
		return problemStorage
	case admission.Held:
		return problemHistory
	case admission.NotReady:
		return problemReady
	}
	return problem{}
}

// asked begins the question that the admission room answers.
func (x *exchange) asked(clientID, ticker []byte) *admission.Request {
	x.ask = admission.Request{Command: &x.command, ClientID: clientID, Ticker: ticker}
	return &x.ask
}

// judge asks the admission room, and labels that time in profiles. Setting a label stores one
// pointer: about 10 ns, no allocation.
func (x *exchange) judge(q *admission.Request) admission.Verdict {
	x.atGate()
	x.m.Prepare(q)
	v := x.m.Decide(q)
	x.atEdge()
	return v
}

// handIn sequences one admitted request; the answer is that of the ticket's command 0.
func (x *exchange) handIn(q *admission.Request) problem {
	if p := x.acquire(1); p.status != 0 {
		return p
	}
	*x.ticket.Command(0) = *q.Command
	x.ticket.SetClientID(0, q.ClientID)
	return x.sequence()
}

// acquire takes a ticket for n commands.
func (x *exchange) acquire(n int) problem {
	ticket, err := x.m.Desk.Acquire(n)
	if err != nil {
		return notSubmitted(err)
	}
	x.ticket = ticket
	return problem{}
}

// sequence hands the ticket's commands to the engine and waits for durable answers.
func (x *exchange) sequence() problem {
	if err := x.ticket.Submit(); err != nil {
		return notSubmitted(err)
	}
	switch err := x.ticket.Wait(x.m.AnswerTimeout); {
	case err == nil:
		return problem{}
	case errors.Is(err, desk.ErrRefused):
		return problemNotLeader
	case errors.Is(err, desk.ErrFailed):
		return problemJournalUnknown
	default:
		return problemUnknown
	}
}

// notSubmitted is the problem of a command that did not reach the ring.
func notSubmitted(err error) problem {
	switch {
	case errors.Is(err, desk.ErrBusy):
		return problemInflight
	case errors.Is(err, desk.ErrFull):
		return problemRing
	case errors.Is(err, desk.ErrRefused):
		return problemNotLeader
	case errors.Is(err, desk.ErrClosed):
		return problemStopping
	default:
		return problemJournal
	}
}

// shown waits until everything that was read from the views is durable. So an answer shows nothing
// that a crash could undo.
func (x *exchange) shown() problem {
	if x.past {
		return problem{}
	}
	return x.durable(x.m.Seen())
}

func (x *exchange) durable(inputSeq uint64) problem {
	if x.past || x.m.Durable.Durable() >= inputSeq {
		return problem{}
	}
	patience := x.m.AnswerTimeout
	if x.reads() {
		patience = x.m.ReadTimeout
	}
	if x.m.Durable.WaitDurable(inputSeq, patience) == nil {
		return problem{}
	}
	return x.notShown()
}

// reads reports a request that changes nothing: there is no outcome to wait for.
func (x *exchange) reads() bool { return x.ctx.IsGet() || x.ctx.IsHead() }

// notShown is the problem of what did not become durable in time.
func (x *exchange) notShown() problem {
	switch {
	case x.m.Failed() != nil:
		return problemJournal
	case x.reads():
		return problemSlowDisk
	}
	return problemReadUnknown
}

// took records how long an admission took.
func (x *exchange) took() { x.m.latency.Record(int64(time.Since(x.ctx.Time()))) }
