package lines

import (
	"bytes"
	"math"
	"strings"
	"testing"

	"posttrade/matcher"
	"posttrade/matcher/strictjson"
)

// widest is an event with records as long as any.
func widest(kind matcher.EventKind) *matcher.Event {
	ev := &matcher.Event{
		Kind: kind, Side: matcher.Sell, Reason: matcher.InternalPolicyError, InputSeq: math.MaxUint64,
		TimeMillis: math.MinInt64, Px: math.MaxInt64, TradeSeq: math.MaxUint64, OrderRef: math.MaxUint32,
		Era:       math.MaxUint16,
		AccountID: math.MaxUint32, SecurityID: 1, Qty: math.MinInt32,
	}
	if kind != matcher.EventFilled {
		ev.Flags = matcher.EventFirst
		c := matcher.NewCommand(matcher.SwaptionBook)
		c.LimitPx, c.AccountID, c.Side, c.Qty = math.MinInt64, math.MaxUint32, matcher.Sell, math.MinInt32
		*ev.Cmd() = c
	} else {
		ev.Detail().Leaves = 1
	}
	return ev
}

func TestNoEventRendersToMoreThanIsReserved(t *testing.T) {
	longest := strictjson.AppendString(nil, strings.Repeat(`"`, matcher.TickerBytes))
	r := renderer{securities: tickers{longest}}
	for kind := matcher.EventAccepted; kind <= matcher.EventContract; kind++ {
		b, n := r.render(nil, widest(kind))
		if len(b) > maxRecords || strings.Count(string(b), "\n") != n {
			t.Errorf("kind %d: %d records of %d bytes, %d are reserved", kind, n, len(b), maxRecords)
		}
		// Not the longest of each of two lines: one record with every member at its longest.
		rec := record{
			sequence: math.MaxUint64, prefix: swaptionPrefix, order: math.MaxUint64, trade: math.MaxUint64,
			account: math.MaxUint32, security: r.securities[0], side: matcher.Sell, sides: true,
			quantity: math.MinInt32,
			counts:   true, price: math.MinInt64, millis: math.MinInt64, reason: matcher.InternalPolicyError,
		}
		if one := rec.append([]byte(kindPartialFill)); 2*len(one) > maxRecords {
			t.Errorf("a record of %d bytes, %d are reserved for two", len(one), maxRecords)
		}
	}
}

// TestBookedContractsAreRendered feeds events as the booking of a contract gives
// them.
func TestBookedContractsAreRendered(t *testing.T) {
	swap := matcher.NewCommand(matcher.SwapBook)
	swap.InputSeq, swap.EventTimeMillis, swap.AccountID, swap.SecurityID = 42, 1_700_000_000_123, 7, 1
	swap.Qty, swap.LimitPx, swap.Side = 25_000_000, 41_250, matcher.Sell
	swaption := swap
	swaption.Type, swaption.Side, swaption.LimitPx = matcher.SwaptionBook, matcher.Buy, -500
	tests := []struct {
		name string
		cmd  matcher.Command
		kind matcher.EventKind
		why  matcher.RiskReason
		want string
	}{
		{"swap", swap, matcher.EventContract, 0,
			`{"kind":"trade-booked","sequence":42,"orderId":"SW-42","tradeId":null,"accountId":7,` +
				`"security":null,` +
				`"side":"Sell","quantity":25000000,"price":0.04125,"timestampMillis":1700000000123,` +
				`"riskReason":null}`},
		{"swaption", swaption, matcher.EventContract, 0,
			`{"kind":"trade-booked","sequence":42,"orderId":"SWPT-42","tradeId":null,"accountId":7,` +
				`"security":null,` +
				`"side":"Buy","quantity":25000000,"price":-0.0005,"timestampMillis":1700000000123,` +
				`"riskReason":null}`},
		{"refused", swap, matcher.EventRejected, matcher.CreditLimit,
			`{"kind":"reject","sequence":42,"orderId":null,"tradeId":null,"accountId":7,"security":null,` +
				`"side":"Sell","quantity":25000000,"price":0.04125,"timestampMillis":1700000000123,` +
				`"riskReason":"CREDIT_LIMIT"}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			ev := matcher.Event{
				Kind: tt.kind, Flags: matcher.EventFirst | matcher.EventLast, Reason: tt.why,
				InputSeq: tt.cmd.InputSeq, TimeMillis: tt.cmd.EventTimeMillis,
			}
			*ev.Cmd() = tt.cmd
			r := renderer{securities: tickers{strictjson.AppendString(nil, "AAA")}}
			if got, n := r.render(nil, &ev); string(got) != tt.want+"\n" || n != 1 {
				t.Errorf("%d records\n got %s\nwant %s", n, got, tt.want)
			}
		})
	}
}

// TestOrdersAreCalledByTheirNumbers: records of an order of a later era, and of refused commands
// about it, name the order as every other answer does.
func TestOrdersAreCalledByTheirNumbers(t *testing.T) {
	for _, tt := range []struct {
		kind matcher.EventKind
		of   matcher.CommandType
	}{
		{matcher.EventAccepted, matcher.OrderNew}, {matcher.EventReplaced, matcher.OrderReplace},
		{matcher.EventCanceled, matcher.OrderCancel}, {matcher.EventFilled, 0},
		{matcher.EventRejected, matcher.OrderNew}, {matcher.EventRejected, matcher.OrderReplace},
		{matcher.EventRejected, matcher.OrderCancel}, {matcher.EventRejected, matcher.ForceFill},
	} {
		ev := &matcher.Event{Kind: tt.kind, OrderRef: 7, Era: 3, Qty: 1}
		if tt.of != 0 {
			ev.Flags = matcher.EventFirst
			*ev.Cmd() = matcher.NewCommand(tt.of)
			ev.Cmd().OrderRef = 7
		}
		r := renderer{securities: tickers{strictjson.AppendString(nil, "AAA")}}
		if line, n := r.render(nil, ev); n == 0 || !bytes.Contains(line,
			[]byte(`"orderId":"ord-12884901895"`)) {
			t.Errorf("kind %d of a command of type %d: %s", tt.kind, tt.of, line)
		}
	}
}
