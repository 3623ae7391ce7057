package httpapi

import (
	"errors"
	"time"

	"posttrade/blotter"
	"posttrade/matcher"
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
	ticket   *desk.Ticket // the ticket that is out, so that it is given back after a panic

	batch     []batchItem
	ticks     []priceTick
	rows      []blotter.OrderRow
	fills     []matcher.Fill
	contracts []blotter.ContractRow

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
	x.order, x.contract = orderRequest{}, contractRequest{}
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
	return !x.m.Enforced || x.claims.Admin || x.claims.Entitled(accountID)
}

// open reports why nothing can be sequenced at all: the journal has failed or is full, or the
// database knows more than it.
func (x *exchange) open() problem {
	if x.m.Failed() != nil {
		return problemJournal
	}
	if x.m.StorageFull() {
		return problemStorage
	}
	if x.m.Held() {
		return problemHistory
	}
	return problem{}
}

// ready reports why no order can be let in.
func (x *exchange) ready() problem {
	if p := x.open(); p.status != 0 {
		return p
	}
	if !x.m.Gate.Ready() {
		return problemReady
	}
	return problem{}
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
	if err := x.ticket.SubmitAndDrive(); err != nil {
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
