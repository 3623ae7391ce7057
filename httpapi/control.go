package httpapi

import (
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/valyala/fasthttp"

	"posttrade/matcher"
	"posttrade/matcher/desk"
)

// priceTick is one decoded and known price.
type priceTick struct {
	securityID uint32
	px         int64
}

// prices is POST /prices. All securities must be known before anything is sequenced.
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
		if !ok && unknown == nil {
			unknown = security
		}
		x.ticks = append(x.ticks, priceTick{id, px})
	}
	if err := x.body.end(); err != nil {
		return x.body.bodyProblem(err, len(x.ticks)-1)
	}
	if len(x.ticks) == 0 {
		return x.body.bodyProblem(errBatchSize, -1)
	}
	if unknown != nil {
		return problemSecurity(unknown)
	}
	if p := x.open(); p.status != 0 {
		return p
	}
	return x.sequencePrices()
}

// sequencePrices sends the ticks through the engine, one ticket at a time.
func (x *exchange) sequencePrices() problem {
	now, last := x.m.Clock(), uint64(0)
	for from := 0; from < len(x.ticks); from += desk.MaxBatch {
		chunk := x.ticks[from:min(len(x.ticks), from+desk.MaxBatch)]
		p := x.acquire(len(chunk))
		if p.status == 0 {
			for i, tick := range chunk {
				cmd := x.ticket.Command(i)
				*cmd = matcher.NewCommand(matcher.PriceTick)
				cmd.EventTimeMillis = x.m.Gate.Now(tick.securityID, now)
				cmd.SecurityID, cmd.PriceTicks = tick.securityID, tick.px
			}
			p = x.sequence()
		}
		if p.status != 0 {
			return p.behind(from)
		}
		for i := range chunk {
			mustApply(x.ticket.Answer(i))
		}
		last = x.ticket.Answer(len(chunk) - 1).InputSeq
		x.release()
	}
	b := append(x.begin(), `{"accepted":`...)
	b = appendUint(b, uint64(len(x.ticks)))
	b = append(b, `,"sequence":`...)
	return x.send(202, append(appendUint(b, last), '}'))
}

// behind is the problem of a request that fails after some of its commands were decided. Its
// outcome is unknown, and a status code that says otherwise would be wrong.
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
func mustApply(a *desk.Answer) {
	if a.Kind != matcher.EventApplied {
		panic(fmt.Sprintf("httpapi: the gate knows what the engine refused: sequence=%d reason=%v",
			a.InputSeq, a.Reason))
	}
}

// controlBody checks the admin claim and prepares the body for the decoder.
func (x *exchange) controlBody() problem {
	if p := x.admin(); p.status != 0 {
		return p
	}
	return x.readBody()
}

// controlAccount is POST /risk/control/account.
func (x *exchange) controlAccount() problem {
	if p := x.controlBody(); p.status != 0 {
		return p
	}
	c := x.body.accountControl()
	if p := x.bodyRead(); p.status != 0 {
		return p
	}
	account, ok := x.m.Views.Account(c.accountID)
	if !ok {
		return problemAccount
	}
	cmd := matcher.NewCommand(matcher.AccountControl)
	cmd.AccountID, cmd.PriceTicks = c.accountID, account.Version+1
	if c.enabled {
		cmd.Side = 1
	}
	return x.control(cmd)
}

// controlSecurity is POST /risk/control/security.
func (x *exchange) controlSecurity() problem {
	if p := x.controlBody(); p.status != 0 {
		return p
	}
	c := x.body.securityControl()
	if p := x.bodyRead(); p.status != 0 {
		return p
	}
	cmd := matcher.NewCommand(matcher.SecurityControl)
	if p := x.versioned(&cmd, c.security); p.status != 0 {
		return p
	}
	if c.enabled {
		cmd.Side |= matcher.SecurityEnabled
	}
	if c.halted {
		cmd.Side |= matcher.SecurityHalted
	}
	return x.control(cmd)
}

// controlRestriction is POST /risk/control/restriction.
func (x *exchange) controlRestriction() problem {
	if p := x.controlBody(); p.status != 0 {
		return p
	}
	c := x.body.restriction()
	if p := x.bodyRead(); p.status != 0 {
		return p
	}
	cmd := matcher.NewCommand(matcher.RestrictionControl)
	if p := x.versioned(&cmd, c.security); p.status != 0 {
		return p
	}
	if c.restricted {
		cmd.Side = 1
	}
	return x.control(cmd)
}

// versioned sets the security of a control and the version that follows its last one.
func (x *exchange) versioned(cmd *matcher.Command, ticker []byte) problem {
	id, ok := x.m.Gate.Security(ticker)
	if !ok {
		return problemSecurity(ticker)
	}
	security, ok := x.m.Views.Security(id)
	if !ok {
		return problemSecurity(ticker) // the gate knows it, the views do not yet
	}
	cmd.SecurityID, cmd.PriceTicks = id, security.Version+1
	return problem{}
}

// controlPolicy is POST /risk/control/policy.
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
	return x.policy([]matcher.Command{cmd})
}

// policy sequences a policy, or the parts of a change of limits, whose version is above the one in
// force. Two requests that come at once
// are judged one after the other, each after the other one is decided; a refused one is not
// sequenced. The engine judges again, in two cases: an earlier policy is still under way although
// its request has given up, or a new leader has not seen an earlier policy yet.
func (x *exchange) policy(cmds []matcher.Command) problem {
	if p := x.open(); p.status != 0 {
		return p
	}
	patience := time.NewTimer(x.m.AnswerTimeout)
	defer patience.Stop()
	select {
	case x.m.policing <- struct{}{}:
		defer func() { <-x.m.policing }()
	case <-patience.C:
		return problemInflight
	}
	if inForce := x.m.Gate.PolicyVersion(); cmds[0].PriceTicks <= inForce {
		return problemStale(inForce)
	}
	return x.control(cmds...)
}

// problemStale refuses a policy whose version does not rise.
func problemStale(inForce int64) problem {
	return problem{status: 409, code: CodeStaleVersion,
		detail: "policyVersion must be above the one in force, " + strconv.FormatInt(inForce, 10)}
}

// control sequences a control command, or several as one: side by side, all or none. The gate takes
// them over from the recorder's events, before this answer is sent. Readiness is not checked: controls are the means to stop a stale or runaway
// state.
func (x *exchange) control(cmds ...matcher.Command) problem {
	if p := x.open(); p.status != 0 {
		return p
	}
	if p := x.acquire(len(cmds)); p.status != 0 {
		return p
	}
	now := x.m.Clock()
	for i := range cmds {
		cmds[i].EventTimeMillis = now
		*x.ticket.Command(i) = cmds[i]
	}
	if p := x.sequence(); p.status != 0 {
		return p
	}
	last := len(cmds) - 1
	a, kind := x.ticket.Answer(last), cmds[last].Type
	if a.Refused() && (kind == matcher.PolicyControl || kind == matcher.LimitsControl) {
		return problemStale(x.m.Gate.PolicyVersion())
	}
	mustApply(a)
	b := append(x.begin(), `{"applied":true,"version":`...)
	b = appendInt(b, cmds[last].PriceTicks)
	b = append(b, `,"sequence":`...)
	return x.send(200, append(appendUint(b, a.InputSeq), '}'))
}

// showControls is GET /risk/control/snapshot.
func (x *exchange) showControls() problem {
	if p := x.admin(); p.status != 0 {
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
