package why

import (
	"fmt"
	"strconv"

	"posttrade/matcher"
)

// describe says what a command asked for, not what became of it.
//
// ticker is the name of the security of the command that is explained, which for a control that is
// named as a cause is the same security. The words are for people; no program reads them. A type
// without a case has its number.
func describe(c *matcher.Command, ticker string) string {
	on := func(bit matcher.Side, yes, no string) string {
		if c.Side&bit != 0 {
			return yes
		}
		return no
	}
	switch c.Type {
	case matcher.PolicyControl:
		text := "policy " + strconv.FormatInt(c.PriceTicks, 10) + ", kill switch " + on(1, "on", "off")
		if c.Qty > 0 {
			text += ", position " + strconv.Itoa(int(c.Qty))
		}
		if c.LimitPx > 0 {
			text += ", concentration " + decimal(c.LimitPx)
		}
		return text
	case matcher.LimitsControl:
		return describeLimit(c)
	case matcher.AccountControl:
		return "account " + strconv.FormatUint(uint64(c.AccountID), 10) + " " +
			on(matcher.SecurityEnabled, "enabled", "disabled") + by(c)
	case matcher.SecurityControl:
		return ticker + " " + on(matcher.SecurityEnabled, "enabled", "disabled") + ", " +
			on(matcher.SecurityHalted, "halted", "not halted") + by(c)
	case matcher.RestrictionControl:
		return ticker + " " + on(1, "restricted", "not restricted")
	case matcher.PriceTick:
		return ticker + " at " + decimal(c.PriceTicks)
	case matcher.CapacityControl:
		text := fmt.Sprintf("room for %d accounts, %d securities, %d contracts", c.AccountID,
			c.SecurityID, c.Qty)
		if c.OrderRef != 0 {
			text += fmt.Sprintf(", %d open and %d retained orders, %d client order ids", c.OrderRef,
				c.PriceTicks, c.LimitPx)
		}
		return text
	case matcher.OperatorNote:
		return "the note of an operator's act"
	case matcher.TokenRevoke:
		return "the tokens of a subject revoked"
	case matcher.SnapshotMark:
		return "a snapshot"
	case matcher.OrderCancel:
		return "cancel"
	case matcher.OrderNew, matcher.TradeNew, matcher.OrderReplace:
		text := "Buy "
		if c.Side == matcher.Sell {
			text = "Sell "
		}
		text += strconv.Itoa(int(c.Qty))
		if c.LimitPx > 0 {
			text += " at " + decimal(c.LimitPx)
		}
		return text
	}
	return "command of type " + strconv.Itoa(int(c.Type))
}

// describeLimit is the value of one part of a change of limits. A part with Side 1 removes the
// limit of an account.
func describeLimit(c *matcher.Command) string {
	id := matcher.LimitID(c.SecurityID)
	text := "limits " + strconv.FormatInt(c.PriceTicks, 10) + ", " + id.String()
	if c.OrderRef != 0 {
		text += " of account " + strconv.FormatUint(uint64(c.AccountID), 10)
	}
	switch {
	case c.Side == 1:
		return text + " as for all accounts"
	case id.Money():
		return text + " " + decimal(c.LimitPx)
	}
	return text + " " + strconv.FormatInt(c.LimitPx, 10)
}

// by says what a control came from: one of the feed carries the mark of the source's epoch.
func by(c *matcher.Command) string {
	if c.OrderRef == 0 {
		return ", by an operator"
	}
	return ", by the source"
}
