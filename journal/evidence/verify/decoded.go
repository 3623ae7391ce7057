package verify

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"posttrade/matcher/strictjson"
)

// The names of the numbers in a record, as the services show them. The tests compare them with the
// engine's own.
//
// They stand here again because the package does not import the engine, which it judges.
var (
	typeNames = [...]string{1: "ORDER_NEW", 2: "ORDER_CANCEL", 3: "FORCE_FILL", 4: "PRICE_TICK",
		5: "TRADE_NEW", 6: "SNAPSHOT", 7: "ACCOUNT_CONTROL", 8: "SECURITY_CONTROL", 9: "POLICY_CONTROL",
		10: "RESTRICTION_CONTROL", 11: "ORDER_REPLACE", 12: "SWAP_BOOK", 13: "SWAPTION_BOOK",
		14: "CAPACITY_CONTROL", 15: "OPERATOR_NOTE", 16: "LIMITS_CONTROL", 17: "TOKEN_REVOKE"}
	statusNames = [...]string{"NEW", "PARTIALLY_FILLED", "FILLED", "CANCELED", "REJECTED"}
	reasonNames = [...]string{"ACCEPTED", "INVALID", "NOT_ENTITLED", "UNKNOWN_ACCOUNT",
		"ACCOUNT_DISABLED", "UNKNOWN_SECURITY", "SECURITY_DISABLED", "RESTRICTED", "KILL_SWITCH",
		"PRICE_MISSING", "PRICE_STALE", "PRICE_COLLAR", "ORDER_SIZE", "ORDER_NOTIONAL", "CREDIT_LIMIT",
		"POSITION_LIMIT", "CONCENTRATION_LIMIT", "DUPLICATE", "CONTROL_STATE_STALE", "CAPACITY",
		"INTERNAL_POLICY_ERROR", "SELF_TRADE_PREVENTED"}
)

// The types of commands that are shown with more than their numbers, the templates beside them, and
// the two numbers that decide whether a record has an id of its own. They are those of package
// matcher.
const (
	typeOrderNew  = 1
	typeCancel    = 2
	typeForceFill = 3
	typeTradeNew  = 5
	typeReplace   = 11
	typeSwap      = 12
	typeSwaption  = 13

	templateCommand = 1
	templateSymbol  = 7
	templateExtract = 8

	statusRejected  = 4
	reasonDuplicate = 17
)

// Decoded is the record as JSON for people. It is recomputed from the record whenever a proof is
// checked, so its text is part of the format of proofs. Prices are decimals; times are epoch
// milliseconds. The error says what is wrong with the record's form.
func Decoded(data []byte) ([]byte, error) {
	if err := checkRecord(data); err != nil {
		return nil, err
	}
	r := record(data)
	var m members
	if r[0] == KindFill {
		r.fill(&m)
	} else {
		r.command(&m)
	}
	return append(m, '}'), nil
}

// fill writes an execution of one side. The order's number has its upper bits in the era; an
// execution of a market trade has no order. The flags are written only where they are set.
//
// For example:
//
//	{"tradeId":"trd-1","sequence":12,"accountId":1,"securityId":1,"side":"Buy","quantity":5,
//	"price":101.5,"execTimeMillis":1700000000000,"orderId":"ord-3","aggressor":true}
func (r record) fill(m *members) {
	l := r.line()
	m.text("tradeId", "trd-"+strconv.FormatUint(l.u64(0), 10))
	m.uint("sequence", l.u64(8))
	m.uint("accountId", uint64(l.u32(36)))
	m.uint("securityId", uint64(l.u32(40)))
	m.side("side", l[52], "Buy", "Sell")
	m.int("quantity", int64(int32(l.u32(44))))
	m.decimal("price", l.i64(24))
	m.int("execTimeMillis", l.i64(16))
	if order := uint64(l.u16(56))<<32 | uint64(l.u32(32)); order != 0 {
		m.text("orderId", "ord-"+strconv.FormatUint(order, 10))
	} else {
		m.raw("orderId", []byte("null"))
	}
	for i, name := range []string{2: "aggressor", 5: "marketTrade", 6: "forced"} {
		if name != "" && l.u16(54)>>i&1 == 1 {
			m.raw(name, []byte("true"))
		}
	}
}

// command writes a command and its decision. The members in front depend on the template, those
// behind are the same for all: client order id, status, and a reason if there is one.
func (r record) command(m *members) {
	l, o := r.line(), r.outcome()
	switch l.u16(2) {
	case templateSymbol:
		m.text("type", "SYMBOL_REGISTER")
		m.uint("sequence", r.inputSeq())
		m.text("ticker", strings.TrimRight(string(l[16:48]), "\x00"))
	case templateExtract:
		m.text("type", "RISK_EXTRACT")
		m.uint("sequence", r.inputSeq())
		m.int("sessionDateEpochDay", l.i64(16))
		m.uint("priceVersion", uint64(l.u32(24)))
	default:
		m.known("type", typeNames[:], int(l[60]))
		m.uint("sequence", r.inputSeq())
		m.int("eventTimeMillis", l.i64(16))
		m.uint("accountId", uint64(l.u32(44)))
		r.terms(m)
	}
	if len(r.clientID()) > 0 {
		m.text("clientOrderId", string(r.clientID()))
	}
	m.known("status", statusNames[:], int(o.Status))
	if o.Reason != 0 {
		m.known("riskReason", reasonNames[:], int(o.Reason))
	}
}

// terms writes what a command asks for. Orders and contracts have names for their fields; controls
// are shown by the fields of the command as they are.
func (r record) terms(m *members) {
	l, o := r.line(), r.outcome()
	switch l[60] {
	case typeOrderNew, typeCancel, typeForceFill, typeTradeNew, typeReplace:
		m.uint("securityId", uint64(l.u32(48)))
		m.side("side", l[61], "Buy", "Sell")
		m.int("quantity", int64(int32(l.u32(52))))
		if l[60] != typeTradeNew {
			m.decimal("limitPrice", l.i64(24))
			m.uint("orderRef", uint64(o.OrderRef))
		}
		m.uint("flags", uint64(l.u16(62)))
	case typeSwap, typeSwaption:
		m.side("payReceive", l[61], "Receive", "Pay")
		m.int("notional", int64(int32(l.u32(52))))
		m.decimal("fixedRate", l.i64(24))
		m.text("effectiveDate", day(l.u16(40)))
		m.text("maturityDate", day(l.u16(42)))
		m.uint("terms", uint64(l.u32(48)))
	default:
		m.uint("securityId", uint64(l.u32(48)))
		m.uint("side", uint64(l[61]))
		m.int("quantity", int64(int32(l.u32(52))))
		m.int("limitPx", l.i64(24))
		m.int("priceTicks", l.i64(32))
		m.uint("orderRef", uint64(l.u32(40)))
		m.uint("flags", uint64(l.u16(62)))
	}
}

// day is an epoch day as yyyy-MM-dd.
func day(n uint16) string {
	return time.Unix(int64(n)*86_400, 0).UTC().Format(time.DateOnly)
}

// sentence says in words what a record proves. No program reads it.
func (r record) sentence() string {
	l := r.line()
	side := map[byte]string{0: "bought", 1: "sold"}
	if r[0] == KindFill {
		return fmt.Sprintf("account %d %s %d of security %d at %s, sequence %d, %s", l.u32(36),
			side[l[52]&1], int32(l.u32(44)), l.u32(40), strictjson.FormatDecimal(nil, l.i64(24)),
			r.inputSeq(), time.UnixMilli(l.i64(16)).UTC().Format(time.RFC3339Nano))
	}
	name := "SYMBOL_REGISTER"
	switch t := r.commandType(); {
	case t != 0 && int(t) < len(typeNames):
		name = typeNames[t]
	case t != 0:
		name = strconv.Itoa(int(t))
	case l.u16(2) == templateExtract:
		name = "RISK_EXTRACT"
	}
	o := r.outcome()
	text := fmt.Sprintf("%s, sequence %d", name, r.inputSeq())
	if t := r.commandType(); t != 0 {
		text += fmt.Sprintf(", account %d", l.u32(44))
	}
	if int(o.Status) < len(statusNames) {
		text += ", " + statusNames[o.Status]
	}
	if o.Reason != 0 && int(o.Reason) < len(reasonNames) {
		text += " " + reasonNames[o.Reason]
	}
	return text
}
