package inspect

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"posttrade/matcher"
	"posttrade/matcher/strictjson"
)

// commandNames are the words for commands in the output of step. A type without a word is shown
// with its number.
var commandNames = map[matcher.CommandType]string{
	matcher.OrderNew: "order", matcher.OrderCancel: "cancel", matcher.OrderReplace: "replace",
	matcher.ForceFill: "force fill", matcher.PriceTick: "price", matcher.TradeNew: "market trade",
	matcher.SnapshotMark: "snapshot mark", matcher.AccountControl: "account control",
	matcher.SecurityControl: "security control", matcher.PolicyControl: "policy",
	matcher.RestrictionControl: "restriction", matcher.SwapBook: "swap",
	matcher.SwaptionBook: "swaption", matcher.CapacityControl: "capacity",
	matcher.OperatorNote: "note", matcher.LimitsControl: "limit",
	matcher.TokenRevoke: "token revocation",
}

// commandText is one line about a command.
//
// Its form is for people: sequence, time in UTC, name, then what is particular to the type. It may
// change from release to release; programs read the JSON of the endpoints.
func commandText(c *matcher.Command, ticker func(uint32) string) string {
	switch c.TemplateID {
	case matcher.TemplateSymbolRegister:
		name, _ := c.Symbol()
		return fmt.Sprintf("%d  symbol %s", c.InputSeq, name)
	case matcher.TemplateCommand:
	default:
		return fmt.Sprintf("%d  marker", c.InputSeq)
	}
	name := commandNames[c.Type]
	if name == "" {
		name = "command of type " + strconv.Itoa(int(c.Type))
	}
	text := fmt.Sprintf("%d  %s  %s", c.InputSeq,
		time.UnixMilli(c.EventTimeMillis).UTC().Format("2006-01-02 15:04:05.000"), name)
	if c.AccountID != 0 && c.Type != matcher.OperatorNote {
		text += fmt.Sprintf("  account %d", c.AccountID)
	}
	switch c.Type {
	case matcher.OrderNew, matcher.OrderReplace, matcher.TradeNew:
		side := "Buy"
		if c.Side == matcher.Sell {
			side = "Sell"
		}
		text += fmt.Sprintf("  %s %d %s", side, c.Qty, ticker(c.SecurityID))
		if c.LimitPx > 0 {
			text += " at " + price(c.LimitPx)
		} else if c.Type == matcher.OrderNew {
			text += " at the market"
		}
	case matcher.PriceTick:
		text += fmt.Sprintf("  %s %s", ticker(c.SecurityID), price(c.PriceTicks))
	case matcher.SecurityControl, matcher.RestrictionControl:
		text += fmt.Sprintf("  %s  state %d", ticker(c.SecurityID), c.Side)
	case matcher.AccountControl, matcher.PolicyControl:
		text += fmt.Sprintf("  state %d  version %d", c.Side, c.PriceTicks)
	case matcher.OperatorNote:
		text += fmt.Sprintf("  part %d of %d", c.OrderRef+1, c.Qty)
	case matcher.LimitsControl:
		text += "  " + limitText(c)
	case matcher.SwapBook, matcher.SwaptionBook:
		text += fmt.Sprintf("  notional %d at %s", c.Qty, price(c.LimitPx))
	}
	return text
}

// limitText is what one part of a change of limits sets.
//
// Side 1 takes an account's own limit away again. Money is shown in currency units.
//
// PriceTicks is the version of the policy that the change makes.
func limitText(c *matcher.Command) string {
	id := matcher.LimitID(c.SecurityID)
	value := strconv.FormatInt(c.LimitPx, 10)
	switch {
	case c.Side == 1:
		value = "that of all accounts"
	case id.Money():
		value = price(c.LimitPx)
	}
	return fmt.Sprintf("%s = %s  version %d", id, value, c.PriceTicks)
}

// price writes millionths of a currency unit as a decimal number.
func price(px int64) string { return string(strictjson.FormatDecimal(nil, px)) }

// eventText is what an event says, empty for one that says no more than its command.
//
// ticker gives the name of a security's number. An order is named only when the event is about
// one.
func eventText(ev *matcher.Event, ticker func(uint32) string) string {
	id := ""
	if n := ev.Order(); n != 0 && (ev.Flags&matcher.EventFirst == 0 || ev.Cmd().AboutOrder()) {
		id = matcher.OrderID(n)
	}
	switch ev.Kind {
	case matcher.EventAccepted:
		return id + " accepted"
	case matcher.EventRejected:
		return strings.TrimSpace(id + " refused: " + ev.Reason.String())
	case matcher.EventFilled:
		side := "bought"
		if ev.Side == matcher.Sell {
			side = "sold"
		}
		d := ev.Detail()
		text := fmt.Sprintf("%s: account %d %s %d %s at %s, position %d",
			matcher.TradeID(ev.TradeSeq), ev.AccountID,
			side, ev.Qty, ticker(ev.SecurityID), price(ev.Px), d.PositionQty)
		if id != "" {
			text += fmt.Sprintf(", %s has %d left", id, d.Leaves)
		}
		return text
	case matcher.EventCanceled:
		text := fmt.Sprintf("%s cancelled, %d not executed", id, ev.Qty)
		if ev.Reason != matcher.Accepted {
			text += ": " + ev.Reason.String()
		}
		return text
	case matcher.EventReplaced:
		return fmt.Sprintf("%s replaced: %d at %s", id, ev.Qty, price(ev.Px))
	case matcher.EventRested:
		return fmt.Sprintf("%s rests with %d", id, ev.Qty)
	case matcher.EventContract:
		return "booked as " + matcher.ContractID(ev.Cmd().Type == matcher.SwaptionBook, ev.InputSeq)
	case matcher.EventApplied, matcher.EventLimits:
		return "applied"
	}
	return ""
}
