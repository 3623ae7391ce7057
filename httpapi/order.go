//perf:hot

package httpapi

import (
	"posttrade/blotter"
	"posttrade/matcher"
	"posttrade/matcher/desk"
)

// appendOrderID appends an order's id, null for none.
func appendOrderID(b []byte, number uint64) []byte {
	if number == 0 {
		return append(b, "null"...)
	}
	return append(matcher.AppendOrderID(append(b, '"'), number), '"')
}

// appendTradeID appends a trade's id, null for none.
func appendTradeID(b []byte, tradeSeq uint64) []byte {
	if tradeSeq == 0 {
		return append(b, "null"...)
	}
	return append(matcher.AppendTradeID(append(b, '"'), tradeSeq), '"')
}

// appendOptional appends text as a string, null when it is empty.
func appendOptional(b []byte, text []byte) []byte {
	if len(text) == 0 {
		return append(b, "null"...)
	}
	return appendString(b, text)
}

// appendPresent appends a number, null for 0.
func appendPresent(b []byte, n uint64) []byte {
	if n == 0 {
		return append(b, "null"...)
	}
	return appendUint(b, n)
}

// appendPrice appends a price in millionths, null for 0 or less.
//
// 0 stands for a price that is not there: no price of this engine is 0.
func appendPrice(b []byte, px int64) []byte {
	if px <= 0 {
		return append(b, "null"...)
	}
	return appendDecimal(b, px)
}

// appendSide appends the word of a side, in the one spelling that answers have.
func appendSide(b []byte, side matcher.Side) []byte {
	if side == matcher.Sell {
		return append(b, `"Sell"`...)
	}
	return append(b, `"Buy"`...)
}

// appendReason appends a refusal's name, null for none.
func appendReason(b []byte, reason matcher.RiskReason) []byte {
	if reason == matcher.Accepted {
		return append(b, "null"...)
	}
	b = append(b, '"')
	return append(append(b, reason.String()...), '"')
}

// orderState is the content of an Order document, whatever its source.
//
// There are three sources: a decision that was just made, a row of the views, and a request that
// was refused before the engine. The zero value of a member is null in the document where it means
// "none".
type orderState struct {
	// clientID and security are borrowed until append returns.
	clientID, security []byte
	ticker             string // used instead of security
	// inputSeq is that of the command that made the order, 0 for none. Prices are in millionths, times
	// in epoch milliseconds.
	inputSeq         uint64
	limitPx, lastPx  int64
	created, updated int64
	number           uint64 // the order's, 0 for none
	accountID        uint32
	qty, leaves      int32
	lastQty          int32
	side             matcher.Side
	kind             blotter.OrderType
	tif              blotter.TimeInForce
	status           matcher.OrderStatus
	reason           matcher.RiskReason
}

// append renders the Order document without its closing brace. The caller owns text and reuses it
// from one document to the next.
//
// It allocates nothing when b has room.
func (o *orderState) append(b []byte, text *timeText) []byte {
	b = append(b, `{"orderId":`...)
	b = appendOrderID(b, o.number)
	b = append(b, `,"clientOrderId":`...)
	b = appendOptional(b, o.clientID)
	b = append(b, `,"accountId":`...)
	b = appendUint(b, uint64(o.accountID))
	b = append(b, `,"security":`...)
	switch {
	case o.ticker != "":
		b = appendString(b, o.ticker)
	default:
		b = appendOptional(b, o.security)
	}
	b = append(b, termsText[o.side&1][o.kind&1][o.tif&3]...)
	b = appendInt(b, int64(o.qty))
	b = append(b, `,"remainingQuantity":`...)
	b = appendInt(b, int64(o.leaves))
	b = append(b, `,"limitPrice":`...)
	b = appendPrice(b, o.limitPx)
	b = append(b, `,"status":"`...)
	b = append(b, o.status.String()...)
	b = o.appendOutcome(b)
	b = text.append(b, o.created, o.updated)
	return appendPresent(b, o.inputSeq)
}

// appendOutcome appends the members after the status, up to the time of creation.
func (o *orderState) appendOutcome(b []byte) []byte {
	switch plain := o.reason == matcher.Accepted; {
	case plain && o.lastPx <= 0 && o.lastQty == 0:
		return append(b,
			`","riskReason":null,"lastExecutionPrice":null,"lastFillQuantity":null,"createdAt":`...)
	case plain:
		b = append(b, `","riskReason":null,"lastExecutionPrice":`...)
	default:
		b = append(b, `","riskReason":`...)
		b = appendReason(b, o.reason)
		b = append(b, `,"lastExecutionPrice":`...)
	}
	b = appendPrice(b, o.lastPx)
	b = append(b, `,"lastFillQuantity":`...)
	b = appendPresent(b, uint64(o.lastQty))
	return append(b, `,"createdAt":`...)
}

// termsText is the text of the members from side to quantity, by side, type and time in force.
//
// It is constant: one append in place of several. The indexes are masked in append, so that a value
// out of range cannot panic there.
var termsText = func() (t [2][2][4]string) {
	for side, name := range []string{"Buy", "Sell"} {
		for kind := range t[side] {
			for tif := range t[side][kind] {
				t[side][kind][tif] = `,"side":"` + name + `","type":"` + blotter.OrderType(kind).String() +
					`","timeInForce":"` + blotter.TimeInForce(tif).String() + `","quantity":`
			}
		}
	}
	return t
}()

// terms sets the members that come from the request itself.
func (o *orderState) terms(r *orderRequest) {
	o.clientID, o.security = r.clientID, r.security
	o.accountID, o.side, o.qty, o.limitPx = r.accountID, r.side, r.qty, r.limitPx
	o.tif = timeInForce(r.flags)
	if r.market {
		o.kind = blotter.Market
	}
}

// timeInForce is what the flags of a record say: the reverse of decoder.timeInForce.
func timeInForce(flags uint16) blotter.TimeInForce {
	switch flags {
	case matcher.FlagIOC:
		return blotter.IOC
	case matcher.FlagFOK:
		return blotter.FOK
	case matcher.FlagPostOnly:
		return blotter.PostOnly
	}
	return blotter.GTC
}

// appendAnswer appends the Order of a fresh decision, with its fills.
//
// Created and updated are both the command's time: nothing has changed the order since. a must be
// read before its ticket is released.
func appendAnswer(b []byte, r *orderRequest, a *desk.Answer, text *timeText) []byte {
	o := orderState{
		number: a.Order(), inputSeq: a.InputSeq, leaves: a.Leaves, status: a.Status, reason: a.Reason,
		lastPx: a.LastPx, lastQty: a.LastQty, created: a.TimeMillis, updated: a.TimeMillis,
	}
	o.terms(r)
	b = o.append(b, text)
	if len(a.Fills) == 0 {
		return append(b, `,"fills":[]}`...)
	}
	b = append(b, `,"fills":[`...)
	for i := range a.Fills {
		if i > 0 {
			b = append(b, ',')
		}
		f := &a.Fills[i]
		b = appendFill(b, f.TradeSeq, f.Px, f.Qty)
	}
	return append(b, ']', '}')
}

// appendFill appends one fill of an order, with the price that it was executed at. tradeSeq 0 is
// null.
func appendFill(b []byte, tradeSeq uint64, px int64, qty int32) []byte {
	if tradeSeq == 0 {
		b = append(b, `{"tradeId":null,"price":`...)
	} else {
		b = append(b, `{"tradeId":"trd-`...)
		b = appendUint(b, tradeSeq)
		b = append(b, `","price":`...)
	}
	b = appendDecimal(b, px)
	b = append(b, `,"quantity":`...)
	b = appendInt(b, int64(qty))
	return append(b, '}')
}

// appendFills appends the member fills: the fills of one order among the fills of a command.
//
// One command may fill several orders, and ref says whose fills are asked for. The closing brace of
// the document is the caller's.
func appendFills(b []byte, ref uint32, fills []matcher.Fill) []byte {
	b = append(b, `,"fills":[`...)
	first := true
	for i := range fills {
		f := &fills[i]
		if f.OrderRef != ref {
			continue
		}
		if !first {
			b = append(b, ',')
		}
		first = false
		b = appendFill(b, f.TradeSeq, f.Px, f.Qty)
	}
	return append(b, ']')
}

// appendRow appends the Order document of a row, closed.
func (x *exchange) appendRow(b []byte, row *blotter.OrderRow) []byte {
	return appendOrderRow(b, row, x.m.Gate.Ticker(row.SecurityID), &x.times)
}

// appendOrderRow appends the Order document of a row.
//
// ticker names the row's security. The feed uses it with names as of the event.
func appendOrderRow(b []byte, row *blotter.OrderRow, ticker string, times *timeText) []byte {
	o := orderState{
		number: row.Number(), inputSeq: row.InputSeq, clientID: row.ClientID(), accountID: row.AccountID,
		ticker: ticker, side: row.Side, kind: row.Type,
		tif: row.TimeInForce, qty: row.Qty, leaves: row.Leaves, limitPx: row.LimitPx,
		status: row.Status, reason: row.Reason, lastPx: row.LastPx, lastQty: row.LastQty,
		created: row.CreatedMillis, updated: row.UpdatedMillis,
	}
	return append(o.append(b, times), '}')
}

// appendTerms appends the members that every answer to an admission repeats.
func (r *orderRequest) appendTerms(b []byte) []byte {
	b = append(b, `,"clientOrderId":`...)
	b = appendOptional(b, r.clientID)
	b = append(b, `,"accountId":`...)
	b = appendUint(b, uint64(r.accountID))
	b = append(b, `,"security":`...)
	b = appendString(b, r.security)
	b = append(b, `,"side":`...)
	b = appendSide(b, r.side)
	b = append(b, `,"quantity":`...)
	return appendInt(b, int64(r.qty))
}

// appendForgotten appends what is still known of an accepted order that has left the views: its
// terms, its id and its sequence. Only terminal orders leave the views. Its final status and time
// are null.
func appendForgotten(b []byte, r *orderRequest, key *blotter.KeyRow) []byte {
	b = append(b, `{"orderId":`...)
	b = appendOrderID(b, key.Ref)
	b = r.appendTerms(b)
	b = append(b, `,"limitPrice":`...)
	b = appendPrice(b, r.limitPx)
	b = append(b, `,"status":null,"sequence":`...)
	return append(appendUint(b, key.InputSeq), '}')
}

// appendTrade appends the answer to a market trade. tradeSeq 0: the fill cannot be read, and what
// only it has is null.
func appendTrade(b []byte, r *orderRequest, tradeSeq uint64, px int64, inputSeq uint64,
	millis int64) []byte {
	b = append(b, `{"tradeId":`...)
	b = appendTradeID(b, tradeSeq)
	b = append(b, `,"sequence":`...)
	b = appendUint(b, inputSeq)
	b = append(b, `,"price":`...)
	b = appendPrice(b, px)
	b = r.appendTerms(b)
	b = append(b, `,"executedAt":`...)
	if tradeSeq == 0 {
		return append(b, "null}"...)
	}
	return append(appendTime(b, millis), '}')
}

// appendConflict appends the Order of a batch item whose key is known with different terms. For a
// single order the answer is problemTerms.
func (x *exchange) appendConflict(b []byte, r *orderRequest, inputSeq uint64, millis int64) []byte {
	b = x.appendRefusedItem(b, r, matcher.Duplicate, inputSeq, 0, millis)
	b = append(b[:len(b)-1], `,"code":"`...)
	b = append(b, problemTerms.code...)
	b = append(b, `","httpStatus":`...)
	return append(appendUint(b, uint64(problemTerms.status)), '}')
}

// appendRefusedItem appends the Order of a batch item that the gate refused and that was not
// sequenced, of one that has a key that is known with different terms, or of one that was refused
// before under its number.
func (x *exchange) appendRefusedItem(b []byte, r *orderRequest, reason matcher.RiskReason,
	inputSeq, number uint64, millis int64) []byte {
	o := orderState{inputSeq: inputSeq, number: number, leaves: r.qty,
		status: matcher.StatusRejected, reason: reason, created: millis, updated: millis}
	o.terms(r)
	return append(o.append(b, &x.times), `,"fills":[]}`...)
}
