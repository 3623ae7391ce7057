package journal

import (
	"bytes"
	"crypto/sha256"
	"strconv"
	"time"

	"posttrade/matcher"
	"posttrade/matcher/strictjson"
)

// typeNames are the names of template 1 types in exports.
var typeNames = [...]string{
	matcher.OrderNew: "ORDER_NEW", matcher.OrderCancel: "ORDER_CANCEL",
	matcher.ForceFill: "FORCE_FILL",
	matcher.PriceTick: "PRICE_TICK", matcher.TradeNew: "TRADE_NEW", matcher.SnapshotMark: "SNAPSHOT",
	matcher.AccountControl: "ACCOUNT_CONTROL", matcher.SecurityControl: "SECURITY_CONTROL",
	matcher.CapacityControl: "CAPACITY_CONTROL", matcher.OperatorNote: "OPERATOR_NOTE",
	matcher.LimitsControl: "LIMITS_CONTROL", matcher.TokenRevoke: "TOKEN_REVOKE",
	matcher.PolicyControl: "POLICY_CONTROL", matcher.RestrictionControl: "RESTRICTION_CONTROL",
	matcher.OrderReplace: "ORDER_REPLACE", matcher.SwapBook: "SWAP_BOOK",
	matcher.SwaptionBook: "SWAPTION_BOOK",
}

// exportCommand appends one command as a JSON object and a newline. The fields are those of the
// record, as sequenced, and clientOrderId when there is one (text of a part of a note). Decisions
// are not part of it:
//
//	{"sequence":1,"type":"ORDER_NEW","eventTimeMillis":0,"accountId":1,"securityId":1,"side":0,
//	 "quantity":100,"limitPx":0,"priceTicks":0,"orderRef":0,"leaderEpoch":0,"flags":0,
//	 "clientOrderId":"a"}
//	{"sequence":2,"type":"SYMBOL_REGISTER","ticker":"ABC"}
//	{"sequence":3,"type":"RISK_EXTRACT","sessionDateEpochDay":20000,"priceVersion":1}
//	{"sequence":4,"type":"SWAPTION_BOOK","eventTimeMillis":0,"accountId":1,"payReceive":"Receive",
//	 "notional":25000000,"fixedRateTicks":41250,"effectiveDate":"2026-01-05",
//	 "maturityDate":"2031-01-05","conventions":"USD-SOFR-1Y-ACT360",
//	 "expiryDate":"2025-12-30","exerciseStyle":"Bermudan","priceTicks":0,"leaderEpoch":0,"flags":0}
//
// A SWAP_BOOK has the same fields without the option's two. A type, a convention or a style that
// this build does not know is its number in quotes.
//
// Times are milliseconds since 1970, and prices millionths; a number that is no price has the same
// field name, as the record uses the field.
func exportCommand(b []byte, c *matcher.Command, id []byte) []byte {
	b = strconv.AppendUint(append(b, `{"sequence":`...), c.InputSeq, 10)
	switch c.TemplateID {
	case matcher.TemplateSymbolRegister:
		raw := c.Bytes()[16 : 16+matcher.TickerBytes]
		b = strictjson.AppendString(append(b, `,"type":"SYMBOL_REGISTER","ticker":`...),
			bytes.TrimRight(raw, "\x00"))
	case matcher.TemplateRiskExtract:
		b = appendInt(append(b, `,"type":"RISK_EXTRACT"`...), "sessionDateEpochDay", c.EventTimeMillis)
		b = appendInt(b, "priceVersion", int64(uint32(c.LimitPx)))
	default:
		name := strconv.Itoa(int(c.Type))
		if int(c.Type) < len(typeNames) && typeNames[c.Type] != "" {
			name = typeNames[c.Type]
		}
		b = append(append(append(b, `,"type":"`...), name...), '"')
		b = appendInt(b, "eventTimeMillis", c.EventTimeMillis)
		b = appendInt(b, "accountId", int64(c.AccountID))
		if terms, ok := c.ContractTerms(); ok {
			b = appendTerms(b, &terms, false)
			b = appendInt(b, "priceTicks", c.PriceTicks)
			b = appendInt(b, "leaderEpoch", int64(c.LeaderEpoch))
			b = appendInt(b, "flags", int64(c.Flags))
			break
		}
		b = appendInt(b, "securityId", int64(c.SecurityID))
		b = appendInt(b, "side", int64(c.Side))
		b = appendInt(b, "quantity", int64(c.Qty))
		b = appendInt(b, "limitPx", c.LimitPx)
		b = appendInt(b, "priceTicks", c.PriceTicks)
		b = appendInt(b, "orderRef", int64(c.OrderRef))
		b = appendInt(b, "leaderEpoch", int64(c.LeaderEpoch))
		b = appendInt(b, "flags", int64(c.Flags))
	}
	switch {
	case len(id) == 0:
	case c.TemplateID == matcher.TemplateCommand && c.Type == matcher.OperatorNote:
		b = strictjson.AppendString(append(b, `,"text":`...), id)
	default:
		b = strictjson.AppendString(append(b, `,"clientOrderId":`...), id)
	}
	return append(b, "}\n"...)
}

// appendTerms appends the terms of a contract that a booking's record packs into few words. The
// rate is a decimal number, or the record's millionths.
func appendTerms(b []byte, t *matcher.ContractTerms, decimal bool) []byte {
	direction := "Receive"
	if t.Side == matcher.Sell {
		direction = "Pay"
	}
	b = appendText(b, "payReceive", direction)
	b = appendInt(b, "notional", int64(t.Notional))
	if decimal {
		b = appendPrice(b, "fixedRate", t.FixedRate)
	} else {
		b = appendInt(b, "fixedRateTicks", t.FixedRate)
	}
	b = appendText(b, "effectiveDate", dayText(int64(t.Effective)))
	b = appendText(b, "maturityDate", dayText(int64(t.Maturity)))
	name := strconv.FormatUint(uint64(t.Convention), 10)
	if known, ok := matcher.ConventionAt(t.Convention); ok {
		name = known.Name
	}
	b = appendText(b, "conventions", name)
	if !t.Swaption {
		return b
	}
	style := strconv.Itoa(int(t.Style))
	if t.Style.Known() {
		style = t.Style.String()
	}
	return appendText(appendText(b, "expiryDate", dayText(int64(t.Expiry))), "exerciseStyle", style)
}

// dayText is an epoch day as yyyy-MM-dd.
func dayText(day int64) string {
	return time.Unix(day*86_400, 0).UTC().Format(time.DateOnly)
}

// appendText appends a member with a value that needs no escaping.
func appendText(b []byte, name, value string) []byte {
	b = append(append(append(b, ',', '"'), name...), `":"`...)
	return append(append(b, value...), '"')
}

func appendInt(b []byte, name string, v int64) []byte {
	b = append(append(append(b, ',', '"'), name...), '"', ':')
	return strconv.AppendInt(b, v, 10)
}

func hashOf(genesis []byte) [32]byte { return sha256.Sum256(genesis) }
