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
//
// Its slices keep their memory from one request to the next, so that a request allocates only when
// it is larger than those before it on the same exchange.
type exchange struct {
	serviceRequest
	m     *OrderMatcher
	done  bool           // the handler returned
	views *blotter.Views // what is shown: the engine's, or those of a moment
	past  bool           // views are of a moment: all that they show is durable

	order    orderRequest
	contract contractRequest
	// command is what ask points to: the record that is handed in.
	command matcher.Command
	ask     admission.Request // what the admission room is asked about
	// ticket is the one that is out, nil for none. finish gives it back, also after a panic.
	ticket *desk.Ticket

	// batch and asks belong together by index: asks[i] is what the admission room is asked about
	// batch[i].
	batch []batchItem
	asks  []admission.Request
	ticks []priceTick
	// rows, fills and contracts are memory for what a list shows.
	rows      []blotter.OrderRow
	fills     []matcher.Fill
	contracts []blotter.ContractRow

	asOf   uint64    // a sequence that a read has in it
	late   time.Time // when a read gives up to wait for its X-Min-Sequence
	marked bool      // asOf is the moment that is shown, which may be 0
	digits []byte    // memory of its text

	times  timeText                  // of the last order shown
	ticker [matcher.TickerBytes]byte // of the order that a replace changes
}

// finish gives back what the request held. It is deferred, so it also runs after a panic of the
// handler; the exchange is not used again then.
//
// A ticket that timed out goes back too: the desk keeps it until its answer has come.
func (x *exchange) finish() {
	x.release()
	if !x.done {
		return
	}
	x.done = false
	x.serviceRequest.clear()
	x.order, x.contract, x.ask = orderRequest{}, contractRequest{}, admission.Request{}
	x.views, x.past = x.m.Views, false
	x.m.exchanges.Put(x)
}

// release returns the ticket that is out, if one is.
//
// Answers of the ticket must not be read afterwards.
func (x *exchange) release() {
	if x.ticket != nil {
		x.ticket.Release()
		x.ticket = nil
	}
}

// admit verifies the token of an admission or of an account's data, where entitlements are
// enforced. Elsewhere tokens are ignored.
//
// Without entitlements the claims stay empty, and entitled is true for each account.
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

// open reports why nothing can be sequenced at all. The problem is the one that an admission would
// get now. Controls ask it instead of the admission room: they are not screened.
func (x *exchange) open() problem { return x.verdictProblem(x.m.Open()) }

// verdictProblem is the problem of a verdict that has no decision to show, no problem for the
// others.
//
// Of Ended it waits until the end of the order is durable.
func (x *exchange) verdictProblem(v admission.Verdict) problem {
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
//
// The caller fills the command before it asks. clientID and ticker point into the request's body
// and are kept until finish.
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
//
// After a problem with notSequenced nothing was sequenced; after any other one the outcome is
// unknown.
func (x *exchange) handIn(q *admission.Request) problem {
	if p := x.acquire(1); p.status != 0 {
		return p
	}
	*x.ticket.Command(0) = *q.Command
	x.ticket.SetClientID(0, q.ClientID)
	return x.sequence()
}

// acquire takes a ticket for n commands. It does not wait: a desk without a ticket is 429. finish
// gives the ticket back, and a handler that takes several releases each.
func (x *exchange) acquire(n int) problem {
	ticket, err := x.m.Desk.Acquire(n)
	if err != nil {
		return notSubmitted(err)
	}
	x.ticket = ticket
	return problem{}
}

// sequence hands the ticket's commands to the engine and waits for durable answers.
//
// It blocks for AnswerTimeout at most. After a problem the ticket's answers must not be read.
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
//
// All of them say that nothing was sequenced.
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
//
// The caller reads the views first and calls shown then: Seen is at or above all that it has read.
// A moment of the past is durable.
func (x *exchange) shown() problem {
	if x.past {
		return problem{}
	}
	return x.durable(x.m.Seen())
}

// durable waits until the command of a sequence is durable, a read for ReadTimeout at most and
// every other request for AnswerTimeout. It costs one load when the sequence is durable already.
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
//
// A write has a 504: its own command may be durable although what it would show is not.
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
//
// It is called for the admissions that the engine has decided.
func (x *exchange) took() { x.m.latency.Record(int64(time.Since(x.ctx.Time()))) }
