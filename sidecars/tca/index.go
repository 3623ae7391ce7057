package tca

import (
	"fmt"

	"posttrade/matcher"
)

// index is what the events say about prices and arrivals, up to one command.
//
// The events of one command come together, so the state of a command never crosses a checkpoint.
type index struct {
	samples    samples
	executions executions
	// open grows and shrinks with the book. An order leaves it when it is filled or canceled.
	open map[uint32]arrival // of the orders on the book, by orderRef

	applied uint64          // the last inputSeq in it
	last    matcher.Command // that command

	// State of the command whose events are being added.
	taker uint32  // an order that this command accepted and did not rest at once, else 0
	met   arrival // the arrival of that order, or of a market trade when it was booked
}

// observe adds the events of whole commands. After an error the index is incomplete and must be
// loaded again.
//
// The same events in the same order give the same index, down to the bytes of its files.
func (x *index) observe(events []matcher.Event) error {
	var last *matcher.Command
	for i := range events {
		ev := &events[i]
		if ev.Flags&matcher.EventFirst != 0 {
			if ev.InputSeq != x.applied+1 {
				return fmt.Errorf("tca: inputSeq=%d after %d: %w", ev.InputSeq, x.applied, ErrDamaged)
			}
			x.applied, x.taker, x.met = ev.InputSeq, 0, arrival{}
			last = ev.Cmd()
		}
		switch ev.Kind {
		case matcher.EventAccepted:
			x.met = arrival{x.samples.latest(ev.SecurityID), ev.TimeMillis}
			if ev.Flags&matcher.EventRests != 0 {
				x.open[ev.OrderRef] = x.met
			} else {
				x.taker = ev.OrderRef
			}
		case matcher.EventBooked:
			x.met = arrival{x.samples.latest(ev.SecurityID), ev.TimeMillis}
		case matcher.EventRested:
			// An order that comes from a replace keeps its arrival.
			if ev.OrderRef == x.taker {
				x.open[ev.OrderRef] = x.met
			}
		case matcher.EventCanceled:
			delete(x.open, ev.OrderRef)
		case matcher.EventApplied:
			if c := ev.Cmd(); c.TemplateID == matcher.TemplateCommand && c.Type == matcher.PriceTick &&
				ev.Flags&matcher.EventLate == 0 {
				if err := x.samples.add(ev.SecurityID, ev.TimeMillis, ev.Px); err != nil {
					return err
				}
			}
		case matcher.EventFilled:
			if err := x.filled(ev); err != nil {
				return err
			}
		}
	}
	if last != nil {
		x.last = *last
	}
	return nil
}

// filled stores the arrival of a fill. Then its price takes force, unless the fill came late.
//
// A taker's arrival is that of its command (met); a maker's is the one that was stored when it came
// to the book. ErrDamaged for a maker without one: the index does not belong to these events.
func (x *index) filled(ev *matcher.Event) error {
	met := x.met
	if ev.Flags&matcher.EventMarket == 0 && ev.OrderRef != x.taker {
		var known bool
		if met, known = x.open[ev.OrderRef]; !known {
			return fmt.Errorf("tca: tradeSeq=%d orderRef=%d has no arrival: %w", ev.TradeSeq,
				ev.OrderRef, ErrDamaged)
		}
		if ev.Status.Terminal() {
			delete(x.open, ev.OrderRef)
		}
	}
	print := fingerprint(ev.AccountID, ev.SecurityID, uint8(ev.Side), int64(ev.Qty), ev.Px,
		ev.TimeMillis)
	if err := x.executions.add(ev.TradeSeq, execution{met, print}); err != nil {
		return err
	}
	if ev.Flags&matcher.EventLate != 0 {
		return nil
	}
	return x.samples.add(ev.SecurityID, ev.TimeMillis, ev.Px)
}
