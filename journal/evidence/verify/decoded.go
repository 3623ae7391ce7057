package verify

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"posttrade/matcher/strictjson"
)

// The names of the numbers in a record, as the services show them. The tests compare them with the
// engine's own.
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

// The types of commands that are shown with more than their numbers, and the templates beside them.
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

// line is a command or a fill as the journal has it: 64 bytes, little endian.
type line []byte

func (l line) u16(at int) uint16 { return binary.LittleEndian.Uint16(l[at:]) }
func (l line) u32(at int) uint32 { return binary.LittleEndian.Uint32(l[at:]) }
func (l line) u64(at int) uint64 { return binary.LittleEndian.Uint64(l[at:]) }
func (l line) i64(at int) int64  { return int64(l.u64(at)) }

// record is a record that checkRecord has accepted.
type record []byte

func (r record) line() line { return line(r[1:offsetOutcome]) }

func (r record) outcome() Outcome {
	return Outcome{OrderRef: binary.BigEndian.Uint32(r[offsetOutcome:]),
		Status: r[offsetOutcome+4], Reason: r[offsetOutcome+5]}
}

func (r record) clientID() []byte { return r[commandBytes:] }

// inputSeq is the command that the record is of.
func (r record) inputSeq() uint64 { return r.line().u64(8) }

// kind is the record's kind in a proof.
func (r record) kind() string {
	if r[0] == KindFill {
		return "fill"
	}
	return "command"
}

// commandType is 0 for templates without types.
func (r record) commandType() uint8 {
	if r.line().u16(2) != templateCommand {
		return 0
	}
	return r.line()[60]
}

// names reports that id is an id of the record: trd-N of a fill; of a command its sequence, and
// ord-N of an order, SW-N or SWPT-N of a contract. The record has the lower 32 bits of an order's
// number.
func (r record) names(id string) bool {
	number := func(prefix string) (uint64, bool) {
		digits, ok := strings.CutPrefix(id, prefix)
		n, err := strconv.ParseUint(digits, 10, 64)
		return n, ok && err == nil && strconv.FormatUint(n, 10) == digits
	}
	if r[0] == KindFill {
		n, ok := number("trd-")
		return ok && n == r.line().u64(0)
	}
	if n, ok := number(""); ok {
		return n == r.inputSeq()
	}
	o := r.outcome()
	n, ok := number("ord-")
	prefix := ""
	switch r.commandType() {
	case typeOrderNew:
		return ok && n != 0 && uint32(n) == o.OrderRef && o.Reason != reasonDuplicate
	case typeSwap:
		prefix = "SW-"
	case typeSwaption:
		prefix = "SWPT-"
	default:
		return false
	}
	n, ok = number(prefix)
	return ok && n == r.inputSeq() && o.Status != statusRejected
}

// id is the id that the record is called by when it was asked for by its sequence.
func (r record) id() string {
	if r[0] == KindFill {
		return "trd-" + strconv.FormatUint(r.line().u64(0), 10)
	}
	o := r.outcome()
	switch {
	case r.commandType() == typeOrderNew && o.OrderRef != 0 && o.Reason != reasonDuplicate:
		return "ord-" + strconv.FormatUint(uint64(o.OrderRef), 10)
	case r.commandType() == typeSwap && o.Status != statusRejected:
		return "SW-" + strconv.FormatUint(r.inputSeq(), 10)
	case r.commandType() == typeSwaption && o.Status != statusRejected:
		return "SWPT-" + strconv.FormatUint(r.inputSeq(), 10)
	}
	return strconv.FormatUint(r.inputSeq(), 10)
}

// members writes the members of a JSON object.
type members []byte

func (m *members) raw(name string, text []byte) {
	sep := byte(',')
	if len(*m) == 0 {
		sep = '{'
	}
	*m = append(append(append(*m, sep, '"'), name...), '"', ':')
	*m = append(*m, text...)
}

func (m *members) uint(name string, v uint64) { m.raw(name, strconv.AppendUint(nil, v, 10)) }
func (m *members) int(name string, v int64)   { m.raw(name, strconv.AppendInt(nil, v, 10)) }

func (m *members) decimal(name string, v int64) { m.raw(name, strictjson.FormatDecimal(nil, v)) }

func (m *members) text(name, v string) {
	quoted, err := json.Marshal(v)
	if err != nil {
		panic(err) // a string always marshals
	}
	m.raw(name, quoted)
}

// known writes the name of a number, or the number as text.
func (m *members) known(name string, names []string, v int) {
	if v < len(names) && names[v] != "" {
		m.text(name, names[v])
		return
	}
	m.text(name, strconv.Itoa(v))
}

func (m *members) side(name string, v byte, buy, sell string) {
	m.known(name, []string{buy, sell}, int(v))
}

// Decoded is the record as JSON for people. It is recomputed from the record whenever a proof is
// checked.
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

// terms writes what a command asks for.
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

// sentence says in words what a record proves.
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
