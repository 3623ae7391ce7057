package whatif

import (
	"encoding/json"

	"posttrade/matcher"
	"posttrade/matcher/strictjson"
)

// Decision is what was decided on an order: ACCEPTED, REJECTED, or CANCELED for one that its own
// command or another order's ended; OPEN for one that was left alone.
//
// It is written as JSON in the lines of posttrade what-if --json.
type Decision struct {
	// Decision is ACCEPTED, REJECTED, CANCELED or OPEN
	Decision string `json:"decision"`
	// Reason is the reject code, nil where there is none: an acceptance, or an end that the owner
	// asked for or time in force brought.
	Reason *string `json:"reason"`
}

// Execution is a trade's price and quantity.
type Execution struct {
	// Price is an exact decimal number: as a float, JSON readers could get another one.
	Price    json.RawMessage `json:"price"`
	Quantity int32           `json:"quantity"`
}

// Difference is one thing that comes out differently: an order (Before and After), or a trade
// (Change is appeared, vanished or changed).
//
// The fields are those of the JSON lines of posttrade what-if --json; docs/time.md describes them.
//
// An order that the changes have refused, and its trade; a line each, broken here:
//
//	{"kind":"order","sequence":7,"command":"order","orderId":"ord-3","accountId":1,
//	"security":"AAPL","before":{"decision":"ACCEPTED","reason":null},
//	"after":{"decision":"REJECTED","reason":"PRICE_COLLAR"}}
//
//	{"kind":"trade","sequence":7,"command":"order","orderId":"ord-3","accountId":1,
//	"security":"AAPL","change":"vanished","counterOrderId":"ord-2",
//	"was":{"price":101.5,"quantity":5}}
type Difference struct {
	// Kind is "order" or "trade".
	Kind string `json:"kind"`
	// Sequence is that of the command in the history at which it comes out differently.
	Sequence uint64 `json:"sequence"`
	Command  string `json:"command"` // what was sent: order, replace, cancel, ...
	// OrderID is the order that was decided, or the order whose side stands for the trade; nil for a
	// market trade and for a command that is about no order. It is "ord-" and the history's number.
	OrderID *string `json:"orderId"`
	// AccountID and Security are those of the order or of the fill; of the command where it is about
	// no order. A control may have none.
	AccountID uint32 `json:"accountId"`
	Security  string `json:"security,omitempty"`
	// Before and After are set for an order, nil for a trade.
	Before *Decision `json:"before,omitempty"`
	After  *Decision `json:"after,omitempty"`
	// Change and what follows are of a trade. Was is nil for one that appeared, Is for one that
	// vanished.
	Change         string     `json:"change,omitempty"`
	CounterOrderID *string    `json:"counterOrderId,omitempty"`
	Was            *Execution `json:"was,omitempty"`
	Is             *Execution `json:"is,omitempty"`
}

// sentAs names the kind of a command, as Difference.Command carries it. "control" is any other
// command of template 1, "other" a symbol or a risk extract.
func sentAs(c *matcher.Command) string {
	if c.TemplateID != matcher.TemplateCommand {
		return "other"
	}
	switch c.Type {
	case matcher.OrderNew:
		return "order"
	case matcher.OrderReplace:
		return "replace"
	case matcher.OrderCancel:
		return "cancel"
	case matcher.TradeNew:
		return "market-trade"
	case matcher.ForceFill:
		return "force-fill"
	case matcher.SwapBook:
		return "swap"
	case matcher.SwaptionBook:
		return "swaption"
	}
	return "control"
}

// decided is what a command's events say about an order: its own, or another that it ended. An
// order that its own command both accepted and ended, such as one with time in force IOC, is
// CANCELED.
func decided(events []matcher.Event, number uint64, own bool) (d Decision) {
	d.Decision = "OPEN"
	if own {
		d.Decision = "ACCEPTED"
		if events[0].Kind == matcher.EventRejected {
			d.Decision, d.Reason = "REJECTED", reasonOf(events[0].Reason)
		}
	}
	for i := range events {
		// A cancel's own event is its acceptance.
		if ev := &events[i]; ev.Kind == matcher.EventCanceled && ev.Order() == number &&
			ev.Flags&matcher.EventFirst == 0 {
			d = Decision{"CANCELED", reasonOf(ev.Reason)}
		}
	}
	return d
}

// reasonOf is nil where there is no reason: it becomes null in JSON.
func reasonOf(r matcher.RiskReason) *string {
	if r == matcher.Accepted {
		return nil
	}
	name := r.String()
	return &name
}

func same(a, b Decision) bool {
	return a.Decision == b.Decision && (a.Reason == nil) == (b.Reason == nil) &&
		(a.Reason == nil || *a.Reason == *b.Reason)
}

// orderID is the order's id as clients know it, nil for no order.
func orderID(number uint64) *string {
	if number == 0 {
		return nil
	}
	id := matcher.OrderID(number)
	return &id
}

// trade reports the one event of a trade that stands for it: of the two fills of a match that of
// the incoming side. Otherwise every match would be reported twice.
func trade(ev *matcher.Event) bool {
	return ev.Kind == matcher.EventFilled &&
		ev.Flags&(matcher.EventAggressor|matcher.EventMarket|matcher.EventForced) != 0
}

func execution(ev *matcher.Event) *Execution {
	if ev == nil {
		return nil
	}
	return &Execution{json.RawMessage(strictjson.FormatDecimal(nil, ev.Px)), ev.Qty}
}
