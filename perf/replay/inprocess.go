package replay

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"posttrade/app/engine"
	"posttrade/app/installation"
	"posttrade/app/settings"
	"posttrade/matcher"
	"posttrade/matcher/admission"
	"posttrade/matcher/desk"
)

// InProcess opens an engine on data.dir in this process and returns venues that give their orders
// to its desk, without HTTP. The second function stops the engine; no venue may be in use then.
//
// The engine is that of a server with these settings, without its services and sidecars. A folder
// with a journal is opened and goes on; an empty one gets a new journal. A failure of the journal
// prints its last line to stderr and ends the process.
func InProcess(c *settings.Config) (venues, func() error, error) {
	dir := c.String("data.dir")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, nil, fmt.Errorf("data.dir: %w", settings.Cause(err))
	}
	o := installation.EngineOptions(c)
	o.Fatal = installation.NewFatalStderr(os.Stderr).Failed
	k, err := engine.Open(o)
	if err != nil {
		return nil, nil, err
	}
	if err := installation.RaiseCapacities(context.Background(), c, k,
		slog.New(slog.DiscardHandler)); err != nil {
		return nil, nil, errors.Join(err, k.Stop())
	}
	decider := installation.AdmissionOf(c, k)
	return func() (venue, error) { return &coreVenue{core: k, decider: &decider}, nil }, k.Stop, nil
}

// coreVenue is one in-process caller of the desk. It admits as HTTP does, so that a replay has the
// same outcomes either way. Its callers park while they wait, so as many of them as connections
// wait for commits.
type coreVenue struct {
	// core and decider are shared by all venues of the process.
	core    *engine.Engine
	decider *admission.Decider
	// commands and asks are memory for a batch; an entry of asks points to the command of its index.
	commands []matcher.Command
	asks     []admission.Request
	// in has the indexes of the admitted among asks.
	in []int
}

// send asks for admission, hands in what is admitted, and tells the outcome of each request once
// all are durable.
//
// The verdict is known before the engine decides for those that repeat, differ or are refused at
// the gate: these are never handed in. An error says that the outcome of those handed in is open,
// but for errBusy, after which nothing was.
func (v *coreVenue) send(asks []admission.Request, results []outcomeOf) error {
	now := time.Now().UnixMilli()
	for i := range asks {
		asks[i].Command.EventTimeMillis = now
		v.decider.Prepare(&asks[i])
	}
	if verdict := v.decide(asks); verdict != admission.Admitted {
		return fmt.Errorf("%w: %s", errBusy, verdict)
	}
	v.in = v.in[:0]
	for i := range asks {
		results[i] = told(&asks[i])
		if asks[i].Verdict == admission.Admitted {
			v.in = append(v.in, i)
		}
	}
	if len(v.in) == 0 {
		return nil
	}
	t, err := v.core.Desk.Acquire(len(v.in))
	if err != nil {
		return busy(err)
	}
	defer t.Release()
	for at, i := range v.in {
		*t.Command(at) = *asks[i].Command
		t.SetClientID(at, asks[i].ClientID)
	}
	if err := t.Submit(); err != nil {
		return busy(err)
	}
	if err := t.Wait(0); err != nil {
		return err
	}
	for at, i := range v.in {
		a := t.Answer(at)
		v.decider.Settle(&asks[i], a)
		results[i] = told(&asks[i])
		if number := a.Order(); number != 0 && asks[i].Verdict != admission.Repeated {
			results[i].orderID = matcher.OrderID(number)
		}
	}
	return nil
}

// decide asks for admission, as HTTP does: of one request, or of a batch. Admitted: each has its
// own verdict. Anything else closes the door to all of them, for now.
func (v *coreVenue) decide(asks []admission.Request) admission.Verdict {
	if len(asks) > 1 {
		return v.decider.DecideAll(asks)
	}
	if verdict := v.decider.Decide(&asks[0]); verdict.Closed() {
		return verdict
	}
	return admission.Admitted
}

// told is the outcome that a verdict has, in the words of HTTP. An admitted request that the engine
// has accepted has the zero outcome, to which send adds the order's id.
func told(q *admission.Request) outcomeOf {
	switch q.Verdict {
	case admission.Repeated:
		o := outcomeOf{}
		if q.First.Kind == matcher.KeyOrder {
			o.orderID = matcher.OrderID(q.First.Ref)
		}
		if q.First.Reason != matcher.Accepted {
			o.verdict, o.reason = refused, q.First.Reason.String()
		}
		return o
	case admission.Refused:
		return outcomeOf{verdict: refused, reason: q.Reason.String()}
	case admission.Differs:
		return outcomeOf{verdict: refused, reason: matcher.Duplicate.String()}
	case admission.Ended:
		return outcomeOf{verdict: gone, reason: terminal}
	}
	return outcomeOf{}
}

// terminal is what HTTP says of an order that can no longer change.
const terminal = "ORDER_TERMINAL"

// busy turns an error after which the call may be repeated into errBusy.
//
// Any other error is returned as it is.
func busy(err error) error {
	if errors.Is(err, desk.ErrBusy) || errors.Is(err, desk.ErrFull) {
		return fmt.Errorf("%w: %w", errBusy, err)
	}
	return err
}
