package httpapi

import (
	"errors"
	"time"

	"github.com/valyala/fasthttp"

	"posttrade/blotter"
	"posttrade/matcher"
	"posttrade/matcher/desk"
	"posttrade/matcher/gate"
)

// exchange is one request being answered, with everything that handlers need
// and that is kept from one request to the next. One goroutine uses it.
type exchange struct {
	m      *OrderMatcher
	ctx    *fasthttp.RequestCtx
	query  []byte
	claims gate.Claims
	done   bool // the handler returned

	body   decoder
	order  orderRequest
	ticket *desk.Ticket // what is out, so that a panic gives it back

	batch []batchItem
	ticks []priceTick
	rows  []blotter.OrderRow
	fills []matcher.Fill

	ticker [matcher.MaxTicker]byte // of the order that a replace is about
}

// finish gives back what the request held. Deferred: it also runs when the
// handler panicked, and then the exchange is not used again.
func (x *exchange) finish() {
	x.release()
	if !x.done {
		return
	}
	x.done, x.ctx, x.query, x.claims = false, nil, nil, gate.Claims{}
	x.body.reset(nil)
	x.order = orderRequest{}
	x.m.exchanges.Put(x)
}

// release returns the ticket that is out, if one is.
func (x *exchange) release() {
	if x.ticket != nil {
		x.ticket.Release()
		x.ticket = nil
	}
}

// begin takes the response's buffer to append an answer to; send gives it back.
func (x *exchange) begin() []byte { return x.ctx.Response.SwapBody(nil)[:0] }

// send makes b the body of a JSON answer.
func (x *exchange) send(status int, b []byte) problem {
	x.ctx.Response.SwapBody(b)
	x.ctx.Response.SetStatusCode(status)
	x.ctx.Response.Header.SetContentType(contentJSON)
	return problem{}
}

// sendProblem makes b, rendered by problem.append and closed, the answer.
func (x *exchange) sendProblem(status int, b []byte) problem {
	x.ctx.Response.SwapBody(b)
	x.ctx.Response.SetStatusCode(status)
	x.ctx.Response.Header.SetContentType(contentProblem)
	return problem{}
}

// authenticate verifies the caller's token.
func (x *exchange) authenticate() problem {
	token := bearer(x.ctx.Request.Header.Peek("Authorization"))
	if token == nil {
		return problemToken
	}
	claims, err := x.m.Verifier.Verify(token)
	if err != nil {
		return problemToken
	}
	x.claims = claims
	return problem{}
}

// maxToken is the longest token that is looked at.
const maxToken = 4 << 10

// bearer returns the token of an Authorization header, nil if there is none.
func bearer(header []byte) []byte {
	const scheme = "bearer "
	if len(header) <= len(scheme) || !equalFold(header[:len(scheme)], scheme) {
		return nil
	}
	token := trimSpace(header[len(scheme):])
	if len(token) == 0 || len(token) > maxToken {
		return nil
	}
	return token
}

// admit verifies the token of an admission or of an account's data, where
// entitlements are enforced. Else tokens are ignored.
func (x *exchange) admit() problem {
	if !x.m.Enforced {
		return problem{}
	}
	return x.authenticate()
}

// admin verifies a token and its admin claim, always.
func (x *exchange) admin() problem {
	if p := x.authenticate(); p.status != 0 {
		return p
	}
	if !x.claims.Admin {
		return problemAdmin
	}
	return problem{}
}

// entitled reports whether the caller may act for and see an account.
func (x *exchange) entitled(accountID uint32) bool {
	return !x.m.Enforced || x.claims.Admin || x.claims.Entitled(accountID)
}

// readBody makes the body ready to decode, if its type is JSON or not said.
func (x *exchange) readBody() problem {
	if !jsonType(x.ctx.Request.Header.ContentType()) || len(x.ctx.Request.Header.ContentEncoding()) > 0 {
		return problemMedia
	}
	x.body.reset(x.ctx.Request.Body())
	return problem{}
}

// jsonType reports that a Content-Type is absent or JSON, in UTF-8 if it says.
func jsonType(value []byte) bool {
	if len(value) == 0 {
		return true
	}
	kind, rest := value, []byte(nil)
	for i, ch := range value {
		if ch == ';' {
			kind, rest = value[:i], trimSpace(value[i+1:])
			break
		}
	}
	return equalFold(trimSpace(kind), contentJSON) &&
		(len(rest) == 0 || equalFold(rest, "charset=utf-8") || equalFold(rest, `charset="utf-8"`))
}

// emptyBody refuses a body where none is expected; {} passes for none.
func (x *exchange) emptyBody() problem {
	if p := x.readBody(); p.status != 0 {
		return p
	}
	if len(x.ctx.Request.Body()) == 0 {
		return problem{}
	}
	x.body.json.BeginObject()
	if _, more := x.body.json.NextKey(); more {
		x.body.fail(errNoBody)
	}
	return x.bodyRead()
}

// bodyRead is the problem of what was decoded, if there is one.
func (x *exchange) bodyRead() problem {
	if err := x.body.end(); err != nil {
		return x.body.bodyProblem(err, -1)
	}
	return problem{}
}

// open reports why nothing can be sequenced at all.
func (x *exchange) open() problem {
	if x.m.Failed() != nil {
		return problemJournal
	}
	if x.m.StorageFull() {
		return problemStorage
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
	if err := x.ticket.Submit(); err != nil {
		return notSubmitted(err)
	}
	switch err := x.ticket.Wait(x.m.AnswerTimeout); {
	case err == nil:
		return problem{}
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
	default:
		return problemJournal
	}
}

// shown waits until everything that was read from the views is durable, so that
// nothing is shown that a crash could take back.
func (x *exchange) shown() problem { return x.durable(x.m.Seen()) }

func (x *exchange) durable(inputSeq uint64) problem {
	if x.m.Durable.Durable() >= inputSeq {
		return problem{}
	}
	if x.m.Durable.WaitDurable(inputSeq, x.m.AnswerTimeout) == nil {
		return problem{}
	}
	if x.m.Failed() != nil {
		return problemJournal
	}
	return problemReadUnknown
}

// took records how long an admission took.
func (x *exchange) took() { x.m.latency.Record(int64(time.Since(x.ctx.Time()))) }
