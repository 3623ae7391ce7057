package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"net/netip"
	"time"

	"github.com/valyala/fasthttp"

	"posttrade/blotter"
	"posttrade/matcher"
	"posttrade/matcher/desk"
	"posttrade/matcher/note"
)

// headerReason carries why an operator does what the request asks for.
//
// The bounds are note.CheckReason's. With profile=production it is required, see Deps.NeedReason.
const headerReason = "X-Reason"

// act is one operator's act: what the caller wants on record with it. object, old and new are of
// plain types and become JSON; nil is null.
type act struct {
	kind             string
	object, old, new any
}

// Recorder puts an act on record that is not a command of its own, and returns its sequence;
// note.Record behind a desk is one.
//
// The act must not be carried out when it returns an error.
type Recorder func(ctx context.Context, n *note.Note) (inputSeq uint64, err error)

// reason reads the header X-Reason. It is optional unless need is set.
//
// A header that is there twice is refused: nothing says which of them counts. need is set in
// production.
func (v *serviceRequest) reason(need bool) (string, problem) {
	given := v.ctx.Request.Header.PeekAll(headerReason)
	switch {
	case len(given) == 0 && !need:
		return "", problem{}
	case len(given) == 0:
		return "", badReason("the header X-Reason is required: why this is done")
	case len(given) > 1:
		return "", badReason("the header X-Reason is there twice")
	}
	text, err := note.CheckReason(string(given[0]))
	if err != nil {
		return "", badReason("the header X-Reason " + err.Error())
	}
	return text, problem{}
}

// badReason names the header. Nothing was sequenced, so the client may send the request again with
// a better reason.
func badReason(detail string) problem {
	return problem{status: 400, code: CodeBadRequest, detail: detail, field: headerReason,
		notSequenced: true}
}

// byHand returns the note of an act of this request's caller, whose token is verified.
//
// The subject is empty where no token was verified.
func (v *serviceRequest) byHand(needReason bool) (n note.Note, p problem) {
	n.Reason, p = v.reason(needReason)
	n.Subject, n.Address = v.claims.Subject, v.origin()
	return n, p
}

// origin is the address that a request came from, without its port. Of a request that another
// member has sent on it is the address that this member has seen, if the request really comes from
// the host of a member.
func (v *serviceRequest) origin() string { return originOf(v.ctx) }

// memberHosts is the key of the hosts of the other members among a request's user values.
//
// The relay sets it; the value is RelayOptions.MemberHost.
type memberHosts struct{}

// originOf believes headerRelayedFor only from the host of a member: any other client could write
// any address there.
func originOf(ctx *fasthttp.RequestCtx) string {
	peer := hostOf(ctx)
	behind := ctx.Request.Header.PeekAll(headerRelayedFor)
	if len(behind) != 1 {
		return peer
	}
	trusted, _ := ctx.UserValue(memberHosts{}).(func(host string) bool)
	if at, err := netip.ParseAddr(string(behind[0])); err == nil && trusted != nil && trusted(peer) {
		return at.String()
	}
	return peer
}

// hostOf is the address of a connection's other end, "" when it has none.
func hostOf(ctx *fasthttp.RequestCtx) string {
	if at, err := netip.ParseAddrPort(ctx.RemoteAddr().String()); err == nil {
		return at.Addr().Unmap().String()
	}
	return ""
}

// fill sets what the act says about itself.
//
// Subject, address and reason are byHand's.
func (a *act) fill(n *note.Note) {
	n.Kind = a.kind
	if a.object != nil {
		n.Object = note.Value(a.object)
	}
	if a.old != nil {
		n.Old = note.Value(a.old)
	}
	if a.new != nil {
		n.New = note.Value(a.new)
	}
}

// sequenceNoted sequences commands side by side behind their note, and waits until they are
// durable. The first command is the first of the ticket's places; the ticket stays out.
//
//	place 0 ... first-1     the note
//	place first ... Len-1   the commands, set by fill
//
// fill completes each command, the event time too, before Put writes the note: the note carries a
// hash of them. A failure whose outcome is unknown leaves a log line without a sequence; one with
// notSequenced leaves none.
func (x *exchange) sequenceNoted(n *note.Note, acts int, nowMillis int64,
	fill func(i int, c *matcher.Command)) (first int, p problem) {
	text, err := n.Write()
	if err != nil {
		return 0, badReason("subject and reason are too long for a note")
	}
	first = text.Len()
	if p := x.acquire(first + acts); p.status != 0 {
		return 0, p
	}
	for i := range acts {
		fill(i, x.ticket.Command(first+i))
	}
	text.Put(x.ticket, nowMillis)
	if p = x.sequence(); p.status != 0 && !p.notSequenced {
		n.Log(x.m.server.log, 0)
	}
	return first, p
}

// record puts an act on record that the caller is about to carry out on the database, and logs it.
// An act whose record fails must not be carried out.
//
// The record is durable before the act begins. So a crash between the two leaves a record without
// an act, and never an act without a record. inputSeq is where it is. Without a Recorder only the
// header is checked, and inputSeq is 0.
func (q *inquiry) record(ctx context.Context, a *act) (inputSeq uint64, p problem) {
	n, p := q.byHand(q.p.NeedReason)
	if p.status != 0 || q.p.Record == nil {
		return 0, p
	}
	a.fill(&n)
	inputSeq, err := q.p.Record(ctx, &n)
	if err != nil {
		return 0, q.recordProblem(err)
	}
	n.Log(q.p.log, inputSeq)
	q.asOf, q.known = inputSeq, true
	return inputSeq, problem{}
}

// recordProblem is the answer to a note that could not be sequenced.
func (q *inquiry) recordProblem(err error) problem {
	switch {
	case errors.Is(err, note.ErrSize):
		return badReason("subject and reason are too long for a note")
	case errors.Is(err, desk.ErrRefused):
		return problemNotLeader
	case errors.Is(err, desk.ErrClosed):
		return problemStopping
	case errors.Is(err, desk.ErrFailed):
		return problemJournalUnknown
	case errors.Is(err, desk.ErrTimeout): // the note may yet become durable
		return problemLate
	}
	return q.p.failed(err)
}

// alone waits until this request is the only one that holds one, so that the value before an act is
// the one that its command meets. The caller calls done when the act is decided.
//
// It waits for AnswerTimeout at most, then 429. done must be called once, also after a panic of the
// handler: callers defer it.
func (x *exchange) alone(one chan struct{}) (done func(), p problem) {
	patience := time.NewTimer(x.m.AnswerTimeout)
	defer patience.Stop()
	select {
	case one <- struct{}{}:
		return func() { <-one }, problem{}
	case <-patience.C:
		return nil, problemInflight
	}
}

// What an act is about, and its values. Their JSON names are part of the journal and of GET /audit:
// they must not change.
type (
	byAccount struct {
		AccountID uint32 `json:"accountId"`
	}
	bySecurity struct {
		Security string `json:"security"`
	}
	byPolicy struct {
		Policy string `json:"policy"`
	}
	byTrade struct {
		TradeID   string `json:"tradeId"`
		AccountID uint32 `json:"accountId"`
	}

	enabledValue struct {
		Enabled bool `json:"enabled"`
	}
	restrictedValue struct {
		Restricted bool `json:"restricted"`
	}
	statusValue struct {
		Status string `json:"status"`
	}
	securityValue struct {
		Enabled bool `json:"enabled"`
		Halted  bool `json:"halted"`
	}
	policyValue struct {
		PolicyVersion            int64           `json:"policyVersion"`
		KillSwitch               bool            `json:"killSwitch"`
		MaxPositionQuantity      int64           `json:"maxPositionQuantity"`
		MaxConcentrationNotional json.RawMessage `json:"maxConcentrationNotional"`
	}
)

// policyValueOf is a policy as an act shows it, with money as an exact decimal.
func policyValueOf(p *blotter.Policy) policyValue {
	return policyValue{p.Version, p.KillSwitch, p.MaxPositionQty,
		appendDecimal(nil, p.MaxConcentrationNotional)}
}

// policyAfter is a policy after a POLICY_CONTROL. 0 in the command leaves a limit as it is.
func policyAfter(p blotter.Policy, c *matcher.Command) blotter.Policy {
	p.Version, p.KillSwitch = c.PriceTicks, c.Side == 1
	if c.Qty > 0 {
		p.MaxPositionQty = int64(c.Qty)
	}
	if c.LimitPx > 0 {
		p.MaxConcentrationNotional = c.LimitPx
	}
	return p
}
