package replay

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"posttrade/app/engine"
	"posttrade/app/installation"
	"posttrade/app/settings"
	"posttrade/matcher"
	"posttrade/matcher/admission"
	"posttrade/matcher/desk"
	"posttrade/perf/orderflow"
)

// InProcess opens an engine on data.dir in this process and returns venues that give their
// orders to its desk, without HTTP.
func InProcess(c *settings.Config) (venues, func() error, error) {
	dir := c.String("data.dir")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, nil, fmt.Errorf("data.dir: %w", settings.Cause(err))
	}
	o := installation.EngineOptions(c)
	o.Fatal = installation.NewLastWords(os.Stderr).Failed
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

// coreVenue is one in-process caller of the desk.
type coreVenue struct {
	core     *engine.Engine
	decider  *admission.Decider
	commands []matcher.Command
	asks     []admission.Request
	in       []int // the places of the admitted among asks
}

// depthTimeout is how long a read of the book may take.
const depthTimeout = 10 * time.Second

// send asks for admission, hands in what is admitted, and tells the outcome of each request once
// all are durable.
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
// own verdict.
func (v *coreVenue) decide(asks []admission.Request) admission.Verdict {
	if len(asks) > 1 {
		return v.decider.DecideAll(asks)
	}
	if verdict := v.decider.Decide(&asks[0]); verdict.Closed() {
		return verdict
	}
	return admission.Admitted
}

// told is the outcome that a verdict has, in the words of HTTP.
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
func busy(err error) error {
	if errors.Is(err, desk.ErrBusy) || errors.Is(err, desk.ErrFull) {
		return fmt.Errorf("%w: %w", errBusy, err)
	}
	return err
}

func (v *coreVenue) create(steps []orderflow.Step, results []outcomeOf) error {
	v.commands = slices.Grow(v.commands[:0], len(steps))[:len(steps)]
	v.asks = v.asks[:0]
	for i := range steps {
		s, c := &steps[i], &v.commands[i]
		v.asks = append(v.asks, v.asked(c, matcher.OrderNew, s))
		if s.Type == orderflow.Limit {
			c.LimitPx = s.LimitPx
		}
		c.Flags = [...]uint16{
			orderflow.GTC: 0, orderflow.IOC: matcher.FlagIOC,
			orderflow.FOK: matcher.FlagFOK, orderflow.PostOnly: matcher.FlagPostOnly,
		}[s.TimeInForce]
	}
	return v.send(v.asks, results)
}

// asked begins a request with the fields that all admissions share.
func (v *coreVenue) asked(c *matcher.Command, kind matcher.CommandType,
	s *orderflow.Step) admission.Request {
	*c = matcher.NewCommand(kind)
	c.AccountID, c.Side, c.Qty = s.AccountID, s.Side, s.Quantity
	q := admission.Request{Command: c, ClientID: []byte(s.ClientOrderID)}
	if s.Security != "" {
		q.Ticker = []byte(s.Security)
		c.SecurityID = v.decider.Security(q.Ticker)
	}
	return q
}

// one sends a single request.
func (v *coreVenue) one(q admission.Request) (outcomeOf, error) {
	var results [1]outcomeOf
	err := v.send([]admission.Request{q}, results[:])
	return results[0], err
}

// amend sends a request about the order that an id names.
func (v *coreVenue) amend(id string, q admission.Request) (outcomeOf, error) {
	number, err := strconv.ParseUint(strings.TrimPrefix(id, "ord-"), 10, 64)
	row, ok := v.core.Views.Numbered(number)
	if err != nil || !ok {
		return outcomeOf{verdict: gone, reason: terminal}, nil
	}
	q.About(&row)
	return v.one(q)
}

func (v *coreVenue) cancel(id string) (outcomeOf, error) {
	c := matcher.NewCommand(matcher.OrderCancel)
	return v.amend(id, admission.Request{Command: &c})
}

func (v *coreVenue) replace(id string, step *orderflow.Step) (outcomeOf, error) {
	var c matcher.Command
	q := v.asked(&c, matcher.OrderReplace, step)
	c.LimitPx = step.LimitPx
	return v.amend(id, q)
}

func (v *coreVenue) trade(step *orderflow.Step) (outcomeOf, error) {
	var c matcher.Command
	return v.one(v.asked(&c, matcher.TradeNew, step))
}

func (v *coreVenue) price(step *orderflow.Step) (o outcomeOf, err error) {
	err = desk.SubmitUntil(context.Background(), v.core.Desk, 1,
		func(_ int, c *matcher.Command) error {
			*c = matcher.NewCommand(matcher.PriceTick)
			c.SecurityID, _ = v.core.Gate.Security([]byte(step.Security))
			c.EventTimeMillis, c.PriceTicks = time.Now().UnixMilli(), step.LimitPx
			return nil
		}, func(a *desk.Answer) error {
			if a.Refused() {
				o = outcomeOf{verdict: refused, reason: a.Reason.String()}
			}
			return nil
		})
	return o, err
}

func (v *coreVenue) depth(security string, levels int) (orderflow.Depth, error) {
	id, ok := v.core.Gate.Security([]byte(security))
	if !ok {
		return orderflow.Depth{}, fmt.Errorf("unknown security %s", settings.Printable(security))
	}
	book, err := v.core.Views.Depth(id, levels, depthTimeout)
	if err != nil {
		return orderflow.Depth{}, err
	}
	var d orderflow.Depth
	for _, l := range book.Bids {
		d.Bids = append(d.Bids, orderflow.Level{Px: l.Px, Qty: l.Qty})
	}
	for _, l := range book.Asks {
		d.Asks = append(d.Asks, orderflow.Level{Px: l.Px, Qty: l.Qty})
	}
	return d, nil
}

func (v *coreVenue) close() error { return nil }
