package lines

import (
	"strconv"

	"posttrade/matcher"
	"posttrade/matcher/strictjson"
)

// The beginnings of a line, with its kind.
const (
	kindAccept      = `{"kind":"accept"`
	kindReject      = `{"kind":"reject"`
	kindPartialFill = `{"kind":"partial-fill"`
	kindFill        = `{"kind":"fill"`
	kindCancel      = `{"kind":"cancel"`
	kindTradeBooked = `{"kind":"trade-booked"`
)

// What stands before the number of an id, the opening quote included.
const (
	orderPrefix    = `"ord-`
	swapPrefix     = `"SW-`
	swaptionPrefix = `"SWPT-`
)

// maxRecords bounds what one event renders to: two records of at most 325 bytes
// beside the ticker, of which each character may take two.
const maxRecords = 2 * (325 + 2*matcher.TickerBytes)

// null is how a member that does not apply is written. It is never changed.
var null = []byte("null")

// record is one line before it is text. A member that does not apply is null in the line: where 0
// is no possible value, 0 says so; otherwise a bool beside it does.
type record struct {
	// sequence is that of the command; the records of a command share it
	sequence uint64
	// prefix is what stands before the number of the order id, the opening quote included.
	prefix  string
	order   uint64 // 0 = null
	trade   uint64 // 0 = null
	account uint32
	// security is JSON text, quotes included
	security []byte // JSON text
	side     matcher.Side
	sides    bool // false: side is null
	quantity int32
	counts   bool  // false: quantity is null
	price    int64 // x 1e6, 0 = null
	millis   int64
	reason   matcher.RiskReason // 0 = null
}

// renderer turns events into lines. It needs the events of a command in their order: only the first
// one says what the command was.
type renderer struct {
	securities tickers
	kind       matcher.CommandType // of the command that is passing by; 0 for templates 7 and 8
}

// render appends the records of one event and returns how many there are.
//
// Most events give one record, an executed fill of an order gives two, and rests, controls, ticks
// and markers give none. It appends to b and allocates only when b has to grow.
func (r *renderer) render(b []byte, ev *matcher.Event) ([]byte, int) {
	if ev.Flags&matcher.EventFirst != 0 {
		if r.kind = 0; ev.Cmd().TemplateID == matcher.TemplateCommand {
			r.kind = ev.Cmd().Type
		}
		switch r.kind {
		case 0:
			if ev.Kind == matcher.EventApplied {
				r.securities.register(ev)
			}
			return b, 0
		case matcher.SwapBook, matcher.SwaptionBook:
			return r.contract(b, ev), 1
		}
	}
	switch ev.Kind {
	case matcher.EventAccepted, matcher.EventReplaced:
		rec := r.about(ev)
		return rec.append(append(b, kindAccept...)), 1
	case matcher.EventCanceled:
		rec := r.about(ev)
		rec.reason = ev.Reason
		return rec.append(append(b, kindCancel...)), 1
	case matcher.EventFilled:
		return r.execution(b, ev)
	case matcher.EventRejected:
		return r.refusal(b, ev)
	}
	return b, 0
}

// about gives what a statement about an order or an execution says.
//
// The price of a market order is 0 or less in the event, and null in the line.
func (r *renderer) about(ev *matcher.Event) record {
	return record{
		sequence: ev.InputSeq, prefix: orderPrefix, order: ev.Order(), trade: ev.TradeSeq,
		account: ev.AccountID, security: r.securities.text(ev.SecurityID), side: ev.Side, sides: true,
		quantity: ev.Qty, counts: true, price: max(ev.Px, 0), millis: ev.TimeMillis,
	}
}

// execution renders one executed fill: what happened to the order, if there is one, and the trade
// that was booked.
//
// Both lines have the same members behind the kind, so the second one copies the first's text.
func (r *renderer) execution(b []byte, ev *matcher.Event) ([]byte, int) {
	rec := r.about(ev)
	if ev.Flags&matcher.EventMarket != 0 {
		return rec.append(append(b, kindTradeBooked...)), 1
	}
	kind := kindPartialFill
	if ev.Detail().Leaves == 0 {
		kind = kindFill
	}
	tail := len(b) + len(kind)
	b = rec.append(append(b, kind...))
	end := len(b)
	return append(append(b, kindTradeBooked...), b[tail:end]...), 2
}

// refusal renders a command that was refused; doc.go of package audit has the table. What was asked
// is read from the command. A type without a case here gives no record.
func (r *renderer) refusal(b []byte, ev *matcher.Event) ([]byte, int) {
	cmd := ev.Cmd()
	rec := record{
		sequence: ev.InputSeq, prefix: orderPrefix, account: cmd.AccountID,
		security: r.securities.text(cmd.SecurityID), millis: ev.TimeMillis, reason: ev.Reason,
	}
	switch r.kind {
	case matcher.OrderNew:
		// The command's own reference is the gate's verdict; a DUPLICATE's event names the first order.
		rec.order, rec.price = ev.Order(), cmd.LimitPx
		rec.side, rec.sides, rec.quantity, rec.counts = cmd.Side, true, cmd.Qty, true
	case matcher.OrderReplace:
		rec.order, rec.price = ev.Named(), cmd.LimitPx
		rec.side, rec.sides, rec.quantity, rec.counts = cmd.Side, true, cmd.Qty, true
	case matcher.OrderCancel:
		rec.order = ev.Named()
	case matcher.ForceFill:
		rec.order, rec.price = ev.Named(), cmd.LimitPx
		rec.quantity, rec.counts = cmd.Qty, true
	case matcher.TradeNew:
		rec.side, rec.sides, rec.quantity, rec.counts = cmd.Side, true, cmd.Qty, true
	default: // a control or a tick
		return b, 0
	}
	rec.price = max(rec.price, 0)
	return rec.append(append(b, kindReject...)), 1
}

// contract renders the booking of an OTC contract. The contract's id is made of its sequence. The
// fields of the command have other meanings than those of an order.
func (r *renderer) contract(b []byte, ev *matcher.Event) []byte {
	cmd := ev.Cmd()
	rec := record{
		sequence: ev.InputSeq, account: cmd.AccountID, security: null, side: cmd.Side, sides: true,
		quantity: cmd.Qty, counts: true, price: cmd.LimitPx, millis: ev.TimeMillis,
	}
	if ev.Kind == matcher.EventRejected {
		rec.reason = ev.Reason
		return rec.append(append(b, kindReject...))
	}
	rec.order, rec.prefix = ev.InputSeq, swapPrefix
	if cmd.Type == matcher.SwaptionBook {
		rec.prefix = swaptionPrefix
	}
	return rec.append(append(b, kindTradeBooked...))
}

// append writes all members behind the kind, and the newline. The order of the members is part of
// the format: the SHA-256 of a report depends on it. A whole line, broken here in two:
//
//	{"kind":"accept","sequence":7,"orderId":"ord-3","tradeId":null,"accountId":1,"security":"AAPL",
//	"side":"Buy","quantity":10,"price":101.5,"timestampMillis":1700000000000,"riskReason":null}
func (rec *record) append(b []byte) []byte {
	b = strconv.AppendUint(append(b, `,"sequence":`...), rec.sequence, 10)
	b = append(b, `,"orderId":`...)
	if rec.order != 0 {
		b = append(strconv.AppendUint(append(b, rec.prefix...), rec.order, 10), '"')
	} else {
		b = append(b, null...)
	}
	if rec.trade != 0 {
		b = append(strconv.AppendUint(append(b, `,"tradeId":"trd-`...), rec.trade, 10), '"')
	} else {
		b = append(b, `,"tradeId":null`...)
	}
	b = strconv.AppendUint(append(b, `,"accountId":`...), uint64(rec.account), 10)
	b = append(append(b, `,"security":`...), rec.security...)
	switch {
	case !rec.sides:
		b = append(b, `,"side":null`...)
	case rec.side == matcher.Buy:
		b = append(b, `,"side":"Buy"`...)
	default:
		b = append(b, `,"side":"Sell"`...)
	}
	b = append(b, `,"quantity":`...)
	if rec.counts {
		b = strconv.AppendInt(b, int64(rec.quantity), 10)
	} else {
		b = append(b, null...)
	}
	b = append(b, `,"price":`...)
	if rec.price != 0 {
		b = strictjson.FormatDecimal(b, rec.price)
	} else {
		b = append(b, null...)
	}
	b = strconv.AppendInt(append(b, `,"timestampMillis":`...), rec.millis, 10)
	if rec.reason != matcher.Accepted {
		b = append(append(b, `,"riskReason":"`...), rec.reason.String()...)
		return append(b, "\"}\n"...)
	}
	return append(b, `,"riskReason":null}`+"\n"...)
}
