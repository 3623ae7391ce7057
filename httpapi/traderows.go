package httpapi

import (
	"posttrade/matcher"
	"posttrade/sidecars/store"
)

// appendTradeRow appends the document of a trade.
//
// settlementDate is null when the row was edited and holds no date.
func appendTradeRow(b []byte, t *store.Trade) []byte {
	b = appendTradeTerms(b, t)
	b = append(b, `,"status":`...)
	b = appendString(b, t.Status.String())
	b = append(b, `,"settlementDate":`...)
	b = appendDate(b, t.SettlementDate)
	b = appendTradeOrigin(b, t)
	b = append(b, `,"updatedAt":`...)
	return append(appendTime(b, t.UpdatedAt), '}')
}

// appendTradeTerms appends the members of a trade's document up to the price.
//
// It opens the document; the caller closes it.
func appendTradeTerms(b []byte, t *store.Trade) []byte {
	b = append(b, `{"id":`...)
	b = appendString(b, t.ID)
	b = append(b, `,"tradeSeq":`...)
	if t.External() { // its trade_seq is no number of the journal
		b = append(b, "null"...)
	} else {
		b = appendUint(b, t.Seq)
	}
	return appendTerms(append(b, ','), t.AccountID, t.Security, t.Side, t.Quantity, t.Price)
}

// appendTerms appends the members of what a trade is about.
//
// The blotter, the rows and the sides of a break share these members. quantity is in whole units,
// price in millionths.
func appendTerms(b []byte, account uint32, security string, side matcher.Side,
	quantity, price int64) []byte {
	b = append(b, `"accountId":`...)
	b = appendUint(b, uint64(account))
	b = append(b, `,"security":`...)
	b = appendString(b, security)
	b = append(b, `,"side":`...)
	b = appendSide(b, side)
	b = append(b, `,"quantity":`...)
	b = appendInt(b, quantity)
	b = append(b, `,"price":`...)
	return appendDecimal(b, price)
}

// appendDate appends a date, null for none.
func appendDate(b []byte, date store.Date) []byte {
	if date == store.NoDate {
		return append(b, "null"...)
	}
	return appendString(b, date.String())
}

// appendTradeOrigin appends when and by which order a trade was executed.
func appendTradeOrigin(b []byte, t *store.Trade) []byte {
	b = append(b, `,"timestamp":`...)
	b = appendTime(b, t.ExecutedAt)
	b = append(b, `,"orderId":`...)
	return appendOptional(b, []byte(t.OrderID))
}
