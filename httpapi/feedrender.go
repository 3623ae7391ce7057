package httpapi

import (
	"posttrade/blotter"
	"posttrade/blotter/feed"
	"posttrade/matcher"
)

// RenderFeed appends the document of an event of the feed. It is a function of the event alone, so
// an event has the same bytes on every member and in every replay.
//
// The event's pointers are valid during the call alone; nothing of them is kept. The live stream
// renders an event once, however many readers get the bytes; a reader of older history has its own.
// docs/feeds.md describes the documents; an Order and a Contract have the same bytes as in their
// lists.
func RenderFeed(b []byte, e *feed.Event) []byte {
	switch e.Kind {
	case feed.Book:
		return appendBookEvent(b, e)
	case feed.BBO:
		return appendBBO(b, e)
	case feed.Trade:
		return appendTradeEvent(b, e)
	case feed.Fill:
		return appendOwnFill(b, e)
	case feed.Order:
		var times timeText
		return appendOrderRow(b, e.Order, e.Ticker, &times)
	case feed.Price:
		b = appendSecurityMember(append(b, '{'), e.Ticker)
		b = append(b, `,"price":`...)
		b = appendDecimal(b, e.Engine.Cmd().PriceTicks)
		return appendEventEnd(b, e)
	case feed.Contract:
		return appendContract(b, e.Contract)
	case feed.Snapshot:
		return appendBook(b, e.Ticker, e.Depth)
	default:
		return appendControl(b, e)
	}
}

// appendSecurityMember appends the member without a comma in front of it.
func appendSecurityMember(b []byte, ticker string) []byte {
	return appendString(append(b, `"security":`...), ticker)
}

// appendEventEnd appends time and sequence and closes the document.
func appendEventEnd(b []byte, e *feed.Event) []byte {
	b = append(b, `,"timestamp":`...)
	b = appendTime(b, e.Engine.TimeMillis)
	b = append(b, `,"sequence":`...)
	return append(appendUint(b, e.InputSeq), '}')
}

// appendBookEvent appends the new total of one level; a quantity of 0 says that the level is gone.
func appendBookEvent(b []byte, e *feed.Event) []byte {
	b = appendSecurityMember(append(b, '{'), e.Ticker)
	b = append(b, `,"side":`...)
	b = appendSide(b, e.Side)
	b = appendLevel(append(b, ','), &e.Level)
	b = append(b, `,"sequence":`...)
	return append(appendUint(b, e.InputSeq), '}')
}

func appendBBO(b []byte, e *feed.Event) []byte {
	b = appendSecurityMember(append(b, '{'), e.Ticker)
	b = appendBest(append(b, `,"bid":`...), &e.Bid)
	b = appendBest(append(b, `,"ask":`...), &e.Ask)
	b = append(b, `,"sequence":`...)
	return append(appendUint(b, e.InputSeq), '}')
}

// appendBest appends the best level of a side, null when the side is empty.
func appendBest(b []byte, l *blotter.Level) []byte {
	if l.Orders == 0 {
		return append(b, "null"...)
	}
	return append(appendLevel(append(b, '{'), l), '}')
}

// appendTradeEvent appends a trade as every caller may see it: no accounts and no orders. The two
// sides of a match have neighbouring numbers, the aggressor's first.
//
// There is one event for a match, that of the aggressor's side. A market trade and a forced fill
// have no other side: their counterTradeId is null.
func appendTradeEvent(b []byte, e *feed.Event) []byte {
	ev := e.Engine
	b = append(b, `{"tradeId":`...)
	b = appendTradeID(b, ev.TradeSeq)
	b = append(b, `,"tradeSeq":`...)
	b = appendUint(b, ev.TradeSeq)
	counter := uint64(0)
	if ev.Flags&matcher.EventAggressor != 0 && ev.Flags&(matcher.EventMarket|matcher.EventForced) ==
		0 {
		counter = ev.TradeSeq + 1
	}
	b = append(b, `,"counterTradeId":`...)
	b = appendTradeID(b, counter)
	b = append(b, `,"counterTradeSeq":`...)
	b = appendPresent(b, counter)
	b = appendSecurityMember(append(b, ','), e.Ticker)
	b = append(b, `,"price":`...)
	b = appendDecimal(b, ev.Px)
	b = append(b, `,"quantity":`...)
	b = appendInt(b, int64(ev.Qty))
	b = append(b, `,"aggressorSide":`...)
	b = appendSide(b, ev.Side)
	b = append(b, `,"execTimeMillis":`...)
	b = appendInt(b, ev.TimeMillis)
	return appendEventEnd(b, e)
}

// appendOwnFill appends a fill as its account sees it: the entry of the blotter and more.
func appendOwnFill(b []byte, e *feed.Event) []byte {
	f := e.Engine.Fill()
	b = appendEntryOf(b, &f, e.Ticker)
	b = append(b, `,"tradeId":`...)
	b = appendTradeID(b, f.TradeSeq)
	b = append(b, `,"aggressor":`...)
	b = appendBool(b, f.Flags&matcher.EventAggressor != 0)
	b = append(b, `,"timestamp":`...)
	return append(appendTime(b, f.TimeMillis), '}')
}

// appendControl appends what a control has set, as it is in force after it.
//
// A control that leaves a value as it is shows that value. A change of limits shows its version and
// account alone.
func appendControl(b []byte, e *feed.Event) []byte {
	cmd := e.Engine.Cmd()
	if cmd.TemplateID == matcher.TemplateSymbolRegister {
		b = append(b, `{"kind":"symbol",`...)
		b = appendSecurityMember(b, e.Ticker)
		b = append(b, `,"sequence":`...)
		return append(appendUint(b, e.InputSeq), '}')
	}
	switch cmd.Type {
	case matcher.AccountControl:
		account, _ := e.Views.Account(cmd.AccountID)
		b = append(b, `{"kind":"account","accountId":`...)
		b = appendUint(b, uint64(cmd.AccountID))
		b = appendFlag(b, "enabled", account.Enabled)
	case matcher.SecurityControl, matcher.RestrictionControl:
		security, _ := e.Views.Security(cmd.SecurityID)
		if cmd.Type == matcher.SecurityControl {
			b = append(b, `{"kind":"security",`...)
		} else {
			b = append(b, `{"kind":"restriction",`...)
		}
		b = appendSecurityMember(b, e.Ticker)
		b = appendFlag(b, "enabled", security.Enabled)
		b = appendFlag(b, "halted", security.Halted)
		b = appendFlag(b, "restricted", security.Restricted)
	case matcher.PolicyControl:
		b = appendPolicy(b, e)
	case matcher.LimitsControl:
		b = append(b, `{"kind":"limits","policyVersion":`...)
		b = appendInt(b, cmd.PriceTicks)
		b = append(b, `,"accountId":`...)
		if cmd.OrderRef == 0 {
			b = append(b, "null"...)
		} else {
			b = appendUint(b, uint64(cmd.AccountID))
		}
		return appendEventEnd(b, e)
	case matcher.CapacityControl:
		b = append(b, `{"kind":"capacity","accounts":`...)
		b = appendUint(b, uint64(cmd.AccountID))
		b = append(b, `,"securities":`...)
		b = appendUint(b, uint64(cmd.SecurityID))
		b = append(b, `,"contracts":`...)
		b = appendInt(b, int64(cmd.Qty))
		if cmd.OrderRef != 0 {
			b = append(b, `,"openOrders":`...)
			b = appendUint(b, uint64(cmd.OrderRef))
			b = append(b, `,"retainedOrders":`...)
			b = appendInt(b, cmd.PriceTicks)
			b = append(b, `,"keys":`...)
			b = appendInt(b, cmd.LimitPx)
		}
		return appendEventEnd(b, e)
	default:
		b = append(b, `{"kind":"other","type":`...)
		b = appendUint(b, uint64(cmd.Type))
		return appendEventEnd(b, e)
	}
	b = append(b, `,"version":`...)
	b = appendInt(b, cmd.PriceTicks)
	return appendEventEnd(b, e)
}

// appendPolicy appends the policy in force, without time and sequence.
func appendPolicy(b []byte, e *feed.Event) []byte {
	policy := e.Views.Policy()
	b = append(b, `{"kind":"policy","policyVersion":`...)
	b = appendInt(b, policy.Version)
	b = appendFlag(b, "killSwitch", policy.KillSwitch)
	b = append(b, `,"maxPositionQuantity":`...)
	b = appendInt(b, policy.MaxPositionQty)
	b = append(b, `,"maxConcentrationNotional":`...)
	return appendDecimal(b, policy.MaxConcentrationNotional)
}

// appendFlag appends one more boolean member, with its comma.
func appendFlag(b []byte, name string, value bool) []byte {
	b = append(append(append(b, `,"`...), name...), `":`...)
	return appendBool(b, value)
}

func appendBool(b []byte, value bool) []byte {
	if value {
		return append(b, "true"...)
	}
	return append(b, "false"...)
}
