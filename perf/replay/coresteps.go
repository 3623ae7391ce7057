package replay

import (
	"context"
	"fmt"
	"slices"
	"time"

	"posttrade/app/settings"
	"posttrade/matcher"
	"posttrade/matcher/admission"
	"posttrade/matcher/desk"
	"posttrade/perf/orderflow"
)

// create asks for admission of all orders and hands in those that are admitted as one ticket, so
// that they are sequenced side by side, as a batch over HTTP.
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

// asked begins a request with the fields that all admissions share, in the command that it is
// given. A security that the gate does not know stays 0, and admission refuses it.
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
//
// An id that is no order of the views is gone, as over HTTP.
func (v *coreVenue) amend(id string, q admission.Request) (outcomeOf, error) {
	number, named := matcher.ParseOrderID(id)
	row, ok := v.core.Views.Numbered(number)
	if !named || !ok {
		return outcomeOf{verdict: gone, reason: terminal}, nil
	}
	q.About(&row)
	return v.one(q)
}

func (v *coreVenue) cancel(id string) (outcomeOf, error) {
	c := matcher.NewCommand(matcher.OrderCancel)
	return v.amend(id, admission.Request{Command: &c})
}

// replace asks for a new total quantity and limit price. Account and side of the order come from
// its row in the views, whatever the step has.
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

// price sequences a price tick as the price feed does: it is no client's request and needs no
// admission. A security that is not known has the number 0, which the engine refuses.
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

// depth reads the view of the book, which has the caller's last outcome in it. blotter.Views.Depth
// says what such a read may wait for.
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

// depthTimeout is how long a read of the book may take when it must ask the views' observer.
const depthTimeout = 10 * time.Second

func (v *coreVenue) close() error { return nil }
