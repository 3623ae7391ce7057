package why

import (
	"fmt"
	"strings"

	"posttrade/matcher"
)

// refusedText is the sentence about a refusal whose check is known. It says the same as the members
// of the explanation, in words; the amounts are exact. Reasons without a case are limits: the
// observed value, what it is made of, and the most that is allowed.
func (q *inquiry) refusedText(reason matcher.RiskReason) string {
	j := &q.judged
	head := fmt.Sprintf("%s was refused with %s: ", capital(q.what()), reason)
	switch reason {
	case matcher.KillSwitch:
		return head + "the kill switch was on."
	case matcher.UnknownAccount:
		return head + fmt.Sprintf("account %d was not known.", q.cmd.AccountID)
	case matcher.AccountDisabled:
		return head + fmt.Sprintf("account %d was disabled.", q.cmd.AccountID)
	case matcher.UnknownSecurity:
		return head + "no security of that ticker was known to trading."
	case matcher.SecurityDisabled, matcher.Restricted:
		return head + fmt.Sprintf("%s was %s.", q.ticker, j.Observed.Word)
	case matcher.PriceMissing:
		return head + q.ticker + " had no market price, and the book had no order to price it."
	case matcher.PriceStale:
		return head + fmt.Sprintf("the last price of %s was %s old, and %s is the most.", q.ticker,
			say(j.Observed), say(j.Limit))
	case matcher.PriceCollar:
		return head + fmt.Sprintf("%s is %s from the market price %s, and %s are allowed.",
			decimal(q.cmd.LimitPx), say(j.Observed), decimal(q.before.security.MarketPx), say(j.Limit))
	case matcher.Duplicate:
		return head + fmt.Sprintf("its client order id had been used at sequence %d.",
			q.before.key.InputSeq)
	case matcher.Invalid:
		return head + q.invalidText()
	}
	subject := subjects[reason]
	if reason == matcher.Capacity {
		subject = "the number of " + capacityLimits[j.Rule].what
	}
	return head + fmt.Sprintf("%s would be %s%s, and %s is the most.", subject,
		say(j.Observed), q.partsText(), say(j.Limit))
}

// subjects name what a limit bounds; CAPACITY has a subject for each room.
//
// A reason that has no case in refusedText has its subject here.
var subjects = map[matcher.RiskReason]string{
	matcher.OrderSize:          "its quantity",
	matcher.OrderNotional:      "its value",
	matcher.CreditLimit:        "the credit in use, with all open orders on this side executed,",
	matcher.PositionLimit:      "the position, with all open orders on this side executed,",
	matcher.ConcentrationLimit: "the position's value, with all open orders on this side executed,",
}

// invalidText says which term is wrong. Rules without a case read as "rule is A, and must be B".
func (q *inquiry) invalidText() string {
	j := &q.judged
	switch j.Rule {
	case "tick-size":
		return fmt.Sprintf("%s is not a multiple of the tick, %s.", say(j.Observed), say(j.Limit))
	case "post-only":
		return fmt.Sprintf("it is POST_ONLY and would trade at once with the best price, %s.",
			say(j.Limit))
	case "order-open":
		return "the order was " + j.Observed.Word + "."
	case "order-known":
		return "the engine keeps no such order."
	case "order-owner":
		return "the order belongs to another account."
	case "":
		return "the engine cannot carry it out."
	}
	return fmt.Sprintf("%s is %s, and must be %s.", strings.ReplaceAll(j.Rule, "-", " "),
		say(j.Observed), say(j.Limit))
}

// partsText lists what an observed value is made of, in brackets: the terms of a sum, or price and
// quantity of a product. It is empty where the value stands alone.
func (q *inquiry) partsText() string {
	var parts []string
	for _, p := range q.judged.Parts {
		parts = append(parts, p.What+" "+say(p.Measure))
	}
	if len(parts) == 0 {
		return ""
	}
	return " (" + strings.Join(parts, ", ") + ")"
}

// acceptedText is the sentence about what was not refused: for an order also its place in the
// queue, what it has executed, and what cancelled the rest.
func (q *inquiry) acceptedText() string {
	x := q.x
	if q.number == 0 {
		if x.ContractID != nil {
			return fmt.Sprintf("%s was booked as %s: every check passed.", capital(q.what()), *x.ContractID)
		}
		return fmt.Sprintf("%s was carried out: every check passed.", capital(q.what()))
	}
	text := fmt.Sprintf("%s was accepted", capital(q.what()))
	if a := x.QueueAhead; a != nil {
		text += " and rested " + a.text()
		if now := x.QueueAheadNow; now != nil && *now == *a {
			text += ", where it still is"
		} else if now != nil {
			text += "; it now is " + now.text()
		}
	}
	switch {
	case x.Executed > 0:
		text += fmt.Sprintf("; %d of it executed in %s", x.Executed, count(x.Fills, "fill"))
	case x.Decision != "CANCELED":
		text += "; nothing of it has executed"
	}
	if x.Decision == "CANCELED" {
		text += "; it was cancelled: " + q.canceled
	}
	return text + "."
}

// text says where in the queue an order is: "behind 2 orders for 70", where 70 is their quantity.
func (q *Queue) text() string {
	if q.Orders == 0 {
		return "at the front of its queue"
	}
	return fmt.Sprintf("behind %s for %d", count(q.Orders, "order"), q.Quantity)
}

// count is a number of things; the plural of what ends in s.
func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// capital begins a sentence, unless it begins with an id, which must stay as clients know it.
func capital(s string) string {
	if strings.HasPrefix(s, "ord-") {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}

// say is a measure in a sentence: the sentence itself says whether it counts money or units. Only
// basis points and milliseconds keep their unit, because no sentence names it.
func say(m matcher.Measure) string {
	if m.Value == nil || m.Unit == matcher.UnitBps || m.Unit == matcher.UnitMillis {
		return m.String()
	}
	return m.Decimal()
}
