package journal

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"strconv"

	"posttrade/matcher"
)

// typeNames are the names of template 1 types in exports.
var typeNames = [...]string{
	matcher.OrderNew: "ORDER_NEW", matcher.OrderCancel: "ORDER_CANCEL", matcher.ForceFill: "FORCE_FILL",
	matcher.PriceTick: "PRICE_TICK", matcher.TradeNew: "TRADE_NEW", matcher.SnapshotMark: "SNAPSHOT",
	matcher.AccountControl: "ACCOUNT_CONTROL", matcher.SecurityControl: "SECURITY_CONTROL",
	matcher.PolicyControl: "POLICY_CONTROL", matcher.RestrictionControl: "RESTRICTION_CONTROL",
	matcher.OrderReplace: "ORDER_REPLACE", matcher.SwapBook: "SWAP_BOOK", matcher.SwaptionBook: "SWAPTION_BOOK",
}

// exportCommand appends one command as a JSON object and a newline. The fields
// are those of the record, as sequenced, and clientOrderId when there is one;
// nothing of what was decided:
//
//	{"sequence":1,"type":"ORDER_NEW","eventTimeMillis":0,"accountId":1,"securityId":1,"side":0,
//	 "quantity":100,"limitPx":0,"priceTicks":0,"orderRef":0,"leaderEpoch":0,"flags":0,"clientOrderId":"a"}
//	{"sequence":2,"type":"SYMBOL_REGISTER","ticker":"ABC"}
//	{"sequence":3,"type":"RISK_EXTRACT","sessionDateEpochDay":20000,"priceVersion":1}
//
// A type that this build does not know is written as its number in quotes.
func exportCommand(b []byte, c *matcher.Command, id []byte) []byte {
	b = strconv.AppendUint(append(b, `{"sequence":`...), c.InputSeq, 10)
	switch c.TemplateID {
	case matcher.TemplateSymbolRegister:
		raw := c.Bytes()[16 : 16+matcher.MaxTicker]
		b = appendString(append(b, `,"type":"SYMBOL_REGISTER","ticker":`...), bytes.TrimRight(raw, "\x00"))
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
		b = appendInt(b, "securityId", int64(c.SecurityID))
		b = appendInt(b, "side", int64(c.Side))
		b = appendInt(b, "quantity", int64(c.Qty))
		b = appendInt(b, "limitPx", c.LimitPx)
		b = appendInt(b, "priceTicks", c.PriceTicks)
		b = appendInt(b, "orderRef", int64(c.OrderRef))
		b = appendInt(b, "leaderEpoch", int64(c.LeaderEpoch))
		b = appendInt(b, "flags", int64(c.Flags))
	}
	if len(id) > 0 {
		b = appendString(append(b, `,"clientOrderId":`...), id)
	}
	return append(b, "}\n"...)
}

func appendInt(b []byte, name string, v int64) []byte {
	b = append(append(append(b, ',', '"'), name...), '"', ':')
	return strconv.AppendInt(b, v, 10)
}

// appendString appends s as a JSON string. A string always marshals.
func appendString(b, s []byte) []byte {
	quoted, err := json.Marshal(string(s))
	if err != nil {
		panic(err)
	}
	return append(b, quoted...)
}

func hashOf(genesis []byte) [32]byte { return sha256.Sum256(genesis) }
