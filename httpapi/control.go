package httpapi

import (
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/valyala/fasthttp"

	"posttrade/blotter"
	"posttrade/matcher"
	"posttrade/matcher/desk"
	"posttrade/matcher/note"
)

// priceTick is one decoded and known price.
//
// px is in millionths and above 0.
type priceTick struct {
	securityID uint32
	px         int64
}

// prices is POST /prices. All securities must be known before anything is sequenced.
//
// 202: the prices are sequenced and durable, in the order of the request. A body that cannot be
// read is refused before an unknown security is named.
func (x *exchange) prices() problem {
	if p := x.admin(); p.status != 0 {
		return p
	}
	if p := x.readBody(); p.status != 0 {
		return p
	}
	x.ticks = x.ticks[:0]
	var unknown []byte
	for x.body.json.BeginArray(); x.body.json.NextItem(); {
		security, px := x.body.tick()
		id, ok := x.m.Gate.Security(security)
		if ok {
			ok = x.m.Views.Tradable(id)
		}
		if !ok && unknown == nil {
			unknown = security
		}
		x.ticks = append(x.ticks, priceTick{id, px})
	}
	if err := x.body.end(); err != nil {
		return x.body.bodyProblem(err, len(x.ticks)-1)
	}
	if len(x.ticks) == 0 {
		return x.body.bodyProblem(errNoItems, -1)
	}
	if unknown != nil {
		return problemSecurity(unknown)
	}
	if p := x.open(); p.status != 0 {
		return p
	}
	return x.sequencePrices()
}

// sequencePrices sends the ticks through the engine, one ticket at a time, each behind its note.
//
// Chunks are sequenced one after the other: a problem of a later one leaves the earlier ones in
// force, see behind. The answer has the sequence of the last price.
func (x *exchange) sequencePrices() problem {
	n, p := x.byHand(x.m.NeedReason)
	if p.status != 0 {
		return p
	}
	now, last := x.m.Clock(), uint64(0)
	for from := 0; from < len(x.ticks); from += maxNotedTicks {
		chunk := x.ticks[from:min(len(x.ticks), from+maxNotedTicks)]
		if p := x.sequenceTicks(n, chunk, now); p.status != 0 {
			return p.behind(from)
		}
		last = x.ticket.Answer(x.ticket.Len() - 1).InputSeq
		x.release()
	}
	b := append(x.begin(), `{"accepted":`...)
	b = appendUint(b, uint64(len(x.ticks)))
	b = append(b, `,"sequence":`...)
	return x.send(202, append(appendUint(b, last), '}'))
}

// maxNotedTicks is how many prices share one note, which holds the price before each of them.
//
// Note and prices are one submission, so the number is bounded by the ticket as well as by the
// note's own size.
const maxNotedTicks = 256

// sequenceTicks sequences ticks behind their note, and logs them.
//
// The old prices are read before the submission: another price may come between, and then stands in
// the journal before the note. Event times never run behind the market price's own, see Gate.Now.
func (x *exchange) sequenceTicks(n note.Note, ticks []priceTick, now int64) problem {
	old, times := make([]json.RawMessage, len(ticks)), make([]int64, len(ticks))
	for i, tick := range ticks {
		px, _, _ := x.m.Gate.Price(tick.securityID)
		old[i] = appendPrice(nil, px)
		times[i] = x.m.Gate.Now(tick.securityID, now)
	}
	a := act{kind: note.Price, old: old}
	a.fill(&n)
	first, p := x.sequenceNoted(&n, len(ticks), now, func(i int, cmd *matcher.Command) {
		*cmd = matcher.NewCommand(matcher.PriceTick)
		cmd.EventTimeMillis = times[i]
		cmd.SecurityID, cmd.PriceTicks = ticks[i].securityID, ticks[i].px
	})
	if p.status != 0 {
		return p
	}
	for i, tick := range ticks {
		answer := x.ticket.Answer(first + i)
		mustApply(answer)
		n.Object = note.Value(bySecurity{x.m.Gate.Ticker(tick.securityID)})
		n.Old, n.New = old[i], appendPrice(nil, tick.px)
		n.Log(x.m.server.log, answer.InputSeq)
	}
	return problem{}
}

// behind is the problem of a request that fails after some of its commands were decided. Its
// outcome is unknown, and a status code that says otherwise would be wrong.
//
// 429 becomes 503, because 429 says that nothing was done.
func (p problem) behind(sequenced int) problem {
	if sequenced == 0 {
		return p
	}
	if p.status == fasthttp.StatusTooManyRequests {
		p.status, p.code = problemRing.status, problemRing.code
	}
	p.notSequenced = false
	return p
}

// mustApply panics when the engine refused a control or tick, which ends the request. The edge
// makes every check that the engine makes, so a refusal means that gate and engine disagree.
//
// The commands are durable by then: the panic undoes nothing.
func mustApply(a *desk.Answer) {
	if a.Kind != matcher.EventApplied {
		panic(fmt.Sprintf("httpapi: the gate knows what the engine refused: sequence=%d reason=%v",
			a.InputSeq, a.Reason))
	}
}

// controlBody checks the admin claim and prepares the body for the decoder. In this order: a caller
// without the claim learns nothing about its body.
func (x *exchange) controlBody() problem {
	if p := x.admin(); p.status != 0 {
		return p
	}
	return x.readBody()
}

// controlled reads the body of a control and takes the turn of those that act; the caller calls
// done.
//
// It returns with the turn taken only when there is no problem. A version is read and raised by one
// under the turn, so two controls never ask for the same version.
func controlled[T any](x *exchange, read func(*decoder) T) (c T, done func(), p problem) {
	if p = x.controlBody(); p.status != 0 {
		return c, nil, p
	}
	c = read(&x.body)
	if p = x.bodyRead(); p.status != 0 {
		return c, nil, p
	}
	done, p = x.alone(x.m.acting)
	return c, done, p
}

// controlAccount is POST /risk/control/account.
func (x *exchange) controlAccount() problem {
	c, done, p := controlled(x, (*decoder).accountControl)
	if p.status != 0 {
		return p
	}
	defer done()
	account, ok := x.m.Views.Account(c.accountID)
	if !ok {
		return problemAccount
	}
	cmd := matcher.NewCommand(matcher.AccountControl)
	cmd.AccountID, cmd.PriceTicks = c.accountID, account.Version+1
	a := act{kind: note.Disable, object: byAccount{c.accountID}, old: enabledValue{account.Enabled},
		new: enabledValue{c.enabled}}
	if c.enabled {
		cmd.Side, a.kind = 1, note.Enable
	}
	return x.control([]matcher.Command{cmd}, &a)
}

// controlSecurity is POST /risk/control/security.
func (x *exchange) controlSecurity() problem {
	c, done, p := controlled(x, (*decoder).securityControl)
	if p.status != 0 {
		return p
	}
	defer done()
	cmd := matcher.NewCommand(matcher.SecurityControl)
	was, p := x.versioned(&cmd, c.security)
	if p.status != 0 {
		return p
	}
	if c.enabled {
		cmd.Side |= matcher.SecurityEnabled
	}
	if c.halted {
		cmd.Side |= matcher.SecurityHalted
	}
	now := securityValue{c.enabled, c.halted}
	return x.control([]matcher.Command{cmd}, securityAct(was.Ticker,
		securityValue{was.Enabled, was.Halted}, now))
}

// securityAct is the act that changes a security from one value to another.
//
// A change of both flags is named for the halt.
func securityAct(ticker string, old, now securityValue) *act {
	a := act{kind: note.Disable, object: bySecurity{ticker}, old: old, new: now}
	switch {
	case now.Halted != old.Halted:
		a.kind = note.Halt
	case now.Enabled:
		a.kind = note.Enable
	}
	return &a
}

// controlRestriction is POST /risk/control/restriction.
func (x *exchange) controlRestriction() problem {
	c, done, p := controlled(x, (*decoder).restriction)
	if p.status != 0 {
		return p
	}
	defer done()
	cmd := matcher.NewCommand(matcher.RestrictionControl)
	was, p := x.versioned(&cmd, c.security)
	if p.status != 0 {
		return p
	}
	if !was.Known {
		return problemSecurity([]byte(was.Ticker))
	}
	if c.restricted {
		cmd.Side = 1
	}
	return x.control([]matcher.Command{cmd}, &act{kind: note.Restrict, object: bySecurity{was.Ticker},
		old: restrictedValue{was.Restricted}, new: restrictedValue{c.restricted}})
}

// versioned sets the security of a control and the version that follows its last one. It returns
// the security as it is.
//
// The caller holds the turn of acting. 404 also while the views do not have the security yet.
func (x *exchange) versioned(cmd *matcher.Command, ticker []byte) (blotter.Security, problem) {
	id, ok := x.m.Gate.Security(ticker)
	if !ok {
		return blotter.Security{}, problemSecurity(ticker)
	}
	security, ok := x.m.Views.Security(id)
	if !ok {
		return security, problemSecurity(ticker) // the gate knows it, the views do not yet
	}
	cmd.SecurityID, cmd.PriceTicks = id, security.Version+1
	return security, problem{}
}

// controlPolicy is POST /risk/control/policy.
//
// It has no turn of acting: the version is the client's own, and policy holds the turn of policing.
func (x *exchange) controlPolicy() problem {
	if p := x.controlBody(); p.status != 0 {
		return p
	}
	c := x.body.policy()
	if p := x.bodyRead(); p.status != 0 {
		return p
	}
	cmd := matcher.NewCommand(matcher.PolicyControl)
	cmd.PriceTicks, cmd.Qty, cmd.LimitPx = c.version, c.maxPosition, c.maxConcentration
	if c.killSwitch {
		cmd.Side = 1
	}
	return x.policy([]matcher.Command{cmd}, func() act { return x.policyAct(&cmd) })
}

// policy sequences a policy, or the parts of a change of limits, whose version is above the one in
// force. Two requests that come at once are judged one after the other, each after the other one is
// decided; a refused one is not sequenced. The engine judges again, in two cases: an earlier policy
// is still under way although its request has given up, or a new leader has not seen an earlier
// policy yet. about is called when the request is alone: it tells the values before.
func (x *exchange) policy(cmds []matcher.Command, about func() act) problem {
	if p := x.open(); p.status != 0 {
		return p
	}
	done, p := x.alone(x.m.policing)
	if p.status != 0 {
		return p
	}
	defer done()
	inForce := x.m.Gate.PolicyVersion()
	switch version := cmds[0].PriceTicks; {
	case version <= inForce:
		return problemStale(inForce)
	case version > maxPolicyLeap && version != inForce+1:
		return problemLeap(inForce)
	}
	a := about()
	return x.control(cmds, &a)
}

// policyAct is the act of a POLICY_CONTROL.
//
// It is a kill-switch act when the switch moves, or when no limit does; else an act of limits. The
// caller is alone, so the values before are those that the command meets.
func (x *exchange) policyAct(cmd *matcher.Command) act {
	was, limits := x.m.Views.Policy(), x.m.Gate.RiskLimits()
	was.MaxPositionQty = limits[matcher.LimitPosition]
	was.MaxConcentrationNotional = limits[matcher.LimitConcentration]
	is := policyAfter(was, cmd)
	a := act{kind: note.Limits, object: byPolicy{"risk"}, old: policyValueOf(&was),
		new: policyValueOf(&is)}
	if is.KillSwitch != was.KillSwitch || is.MaxPositionQty == was.MaxPositionQty &&
		is.MaxConcentrationNotional == was.MaxConcentrationNotional {
		a.kind = note.KillSwitch
	}
	return a
}

// maxPolicyLeap is the largest version that need not be the next one. Versions have to rise, so a
// version near the largest number, sent by mistake, would leave no later policy: none could end a
// kill switch. It is above every time in nanoseconds until the year 2116.
const maxPolicyLeap = 1<<62 - 1

// problemLeap refuses a version that would leave too few.
func problemLeap(inForce int64) problem {
	return problem{status: 400, code: CodeMalformedBody, field: "policyVersion",
		detail: "field policyVersion: above " + strconv.FormatInt(maxPolicyLeap, 10) +
			" only the next version is taken; in force is " + strconv.FormatInt(inForce, 10)}
}

// problemStale refuses a policy whose version does not rise. The client reads the version in force
// from the detail and decides again.
func problemStale(inForce int64) problem {
	return problem{status: 409, code: CodeStaleVersion,
		detail: "policyVersion must be above the one in force, " + strconv.FormatInt(inForce, 10)}
}

// control sequences a control command, or several as one, behind their note: side by side, all or
// none. The gate takes them over from the recorder's events, before this answer is sent. Readiness
// is not checked: controls are the means to stop a stale or runaway state.
func (x *exchange) control(cmds []matcher.Command, a *act) problem {
	n, p := x.byHand(x.m.NeedReason)
	if p.status != 0 {
		return p
	}
	if p := x.open(); p.status != 0 {
		return p
	}
	a.fill(&n)
	now, last := x.m.Clock(), len(cmds)-1
	first, p := x.sequenceNoted(&n, len(cmds), now, func(i int, c *matcher.Command) {
		cmds[i].EventTimeMillis = now
		*c = cmds[i]
	})
	if p.status != 0 {
		return p
	}
	answer, kind := x.ticket.Answer(first+last), cmds[last].Type
	if answer.Refused() && (kind == matcher.PolicyControl || kind == matcher.LimitsControl) {
		n.LogRefused(x.m.server.log, answer.InputSeq, string(CodeStaleVersion))
		return problemStale(x.m.Gate.PolicyVersion()).under(answer.InputSeq)
	}
	mustApply(answer)
	n.Log(x.m.server.log, answer.InputSeq)
	b := append(x.begin(), `{"applied":true,"version":`...)
	b = appendInt(b, cmds[last].PriceTicks)
	b = append(b, `,"sequence":`...)
	return x.send(200, append(appendUint(b, answer.InputSeq), '}'))
}

// showControls is GET /risk/control/snapshot.
//
// The image is copied before shown waits, so all of it is durable.
func (x *exchange) showControls() problem {
	if p := x.admin(); p.status != 0 {
		return p
	}
	if p := x.noParameters(); p.status != 0 {
		return p
	}
	image := x.m.Gate.Snapshot()
	if p := x.shown(); p.status != 0 {
		return p
	}
	b, err := json.Marshal(image)
	if err != nil {
		panic("httpapi: the gate's image does not marshal: " + err.Error()) // plain types: a bug
	}
	return x.send(200, append(x.begin(), b...))
}
