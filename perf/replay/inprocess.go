package replay

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"posttrade/app/engine"
	"posttrade/app/installation"
	"posttrade/app/settings"
	"posttrade/blotter"
	"posttrade/matcher"
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
	if err := installation.SameLimits(c, k.Genesis); err != nil {
		return nil, nil, errors.Join(err, k.Stop())
	}
	return func() (venue, error) { return &coreVenue{core: k}, nil }, k.Stop, nil
}

// coreVenue is one in-process caller of the desk.
type coreVenue struct{ core *engine.Engine }

// depthTimeout is how long a read of the book may take.
const depthTimeout = 10 * time.Second

// send hands n commands in. Once all are durable, it calls each with every answer.
func (v *coreVenue) send(n int, fill func(i int, c *matcher.Command) (clientID string),
	each func(i int, a *desk.Answer)) error {
	t, err := v.core.Desk.Acquire(n)
	if err != nil {
		return busy(err)
	}
	defer t.Release()
	for i := range n {
		c := t.Command(i)
		id := fill(i, c)
		if id != "" {
			t.SetClientID(i, []byte(id))
		}
		c.EventTimeMillis = time.Now().UnixMilli()
		v.screen(c)
	}
	if err := t.SubmitAndDrive(); err != nil {
		return busy(err)
	}
	if err := t.Wait(0); err != nil {
		return err
	}
	for i := range n {
		each(i, t.Answer(i))
	}
	return nil
}

// screen puts the gate's refusal into the command, where the engine looks for it. It skips a
// replace: there OrderRef is the order, and the engine itself finds the refusal.
func (v *coreVenue) screen(c *matcher.Command) {
	if c.Type != matcher.OrderNew && c.Type != matcher.TradeNew {
		return
	}
	if reason := v.core.Gate.Screen(c); reason != matcher.Accepted {
		c.OrderRef = uint32(reason)
	}
}

// busy turns an error after which the call may be repeated into errBusy.
func busy(err error) error {
	if errors.Is(err, desk.ErrBusy) || errors.Is(err, desk.ErrFull) {
		return fmt.Errorf("%w: %w", errBusy, err)
	}
	return err
}

func (v *coreVenue) create(steps []orderflow.Step, results []outcomeOf) error {
	return v.send(len(steps), func(i int, c *matcher.Command) string {
		s := &steps[i]
		*c = matcher.NewCommand(matcher.OrderNew)
		v.terms(c, s)
		if s.Type == orderflow.Limit {
			c.LimitPx = s.LimitPx
		}
		c.Flags = [...]uint16{
			orderflow.GTC: 0, orderflow.IOC: matcher.FlagIOC,
			orderflow.FOK: matcher.FlagFOK, orderflow.PostOnly: matcher.FlagPostOnly,
		}[s.TimeInForce]
		return s.ClientOrderID
	}, func(i int, a *desk.Answer) { results[i] = outcomeOfAnswer(a) })
}

// terms sets the fields that orders and market trades share.
func (v *coreVenue) terms(c *matcher.Command, s *orderflow.Step) {
	c.AccountID, c.Side, c.Qty = s.AccountID, s.Side, s.Quantity
	// an unknown security is 0, and the engine refuses it
	c.SecurityID, _ = v.core.Gate.Security([]byte(s.Security))
	c.PriceTicks = int64(v.core.Views.ClientKey().Of(s.AccountID, []byte(s.ClientOrderID)))
}

func outcomeOfAnswer(a *desk.Answer) outcomeOf {
	o := outcomeOf{}
	if a.OrderRef != 0 {
		o.orderID = "ord-" + strconv.FormatUint(a.Order(), 10)
	}
	if a.Refused() {
		o.verdict, o.reason = refused, a.Reason.String()
	}
	return o
}

// one sends a single command.
func (v *coreVenue) one(c matcher.Command, clientID string) (o outcomeOf, err error) {
	err = v.send(1, func(_ int, slot *matcher.Command) string { *slot = c; return clientID },
		func(_ int, a *desk.Answer) { o = outcomeOfAnswer(a) })
	return o, err
}

// find returns the order that an id names, false when it is unknown or final.
func (v *coreVenue) find(orderID string) (row blotter.OrderRow, ok bool) {
	number, err := strconv.ParseUint(strings.TrimPrefix(orderID, "ord-"), 10, 64)
	if err != nil {
		return row, false
	}
	row, ok = v.core.Views.Numbered(number)
	return row, ok && row.Open()
}

func (v *coreVenue) cancel(orderID string) (outcomeOf, error) {
	row, ok := v.find(orderID)
	if !ok {
		return outcomeOf{verdict: gone, reason: "ORDER_TERMINAL"}, nil
	}
	c := matcher.NewCommand(matcher.OrderCancel)
	c.OrderRef, c.AccountID, c.SecurityID, c.Side = row.Ref, row.AccountID, row.SecurityID, row.Side
	return v.amended(v.one(c, ""))
}

func (v *coreVenue) replace(orderID string, step *orderflow.Step) (outcomeOf, error) {
	row, ok := v.find(orderID)
	if !ok {
		return outcomeOf{verdict: gone, reason: "ORDER_TERMINAL"}, nil
	}
	c := matcher.NewCommand(matcher.OrderReplace)
	c.OrderRef, c.AccountID, c.SecurityID, c.Side = row.Ref, row.AccountID, row.SecurityID, row.Side
	c.Qty, c.LimitPx = step.Quantity, step.LimitPx
	c.PriceTicks = int64(v.core.Views.ClientKey().Of(row.AccountID, []byte(step.ClientOrderID)))
	return v.amended(v.one(c, step.ClientOrderID))
}

// amended says that an order was gone when the engine found nothing to change.
func (v *coreVenue) amended(o outcomeOf, err error) (outcomeOf, error) {
	if o.verdict == refused && o.reason == matcher.Invalid.String() {
		o.verdict = gone
	}
	return o, err
}

func (v *coreVenue) trade(step *orderflow.Step) (outcomeOf, error) {
	c := matcher.NewCommand(matcher.TradeNew)
	v.terms(&c, step)
	return v.one(c, step.ClientOrderID)
}

func (v *coreVenue) price(step *orderflow.Step) (outcomeOf, error) {
	c := matcher.NewCommand(matcher.PriceTick)
	c.SecurityID, _ = v.core.Gate.Security([]byte(step.Security))
	c.PriceTicks = step.LimitPx
	return v.one(c, "")
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
