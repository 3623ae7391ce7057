package session

import (
	"testing"

	"posttrade/matcher"
	"posttrade/matcher/session/client"
	"posttrade/matcher/session/wire"
	"posttrade/ring/must"
)

// A buyer meets a seller over two sessions: answers, fills and numbers are right.
func TestOrdersTradeOverSessions(t *testing.T) {
	r := newRig(t)
	seller, buyer := r.dial("", client.Options{}), r.dial("", client.Options{})
	rested := ask(t, seller,
		seller.Order(11, &client.NewOrder{Account: 1, Security: aaa, Side: matcher.Sell, Qty: 10,
			LimitPx: 100_000_000}, "s-1"))
	want := wire.Record{
		Kind: wire.Answer, What: uint8(matcher.OrderNew), Side: matcher.Sell, Flags: wire.FlagRests,
		Correlation: 11,
		InputSeq:    1, TimeMillis: testTime, Px: 100_000_000, OrderRef: 1, AccountID: 1, SecurityID: aaa,
		Qty: 10, Leaves: 10,
	}
	if rested != want {
		t.Errorf("rested\n got %+v\nwant %+v", rested, want)
	}
	got := ask(t, buyer, buyer.Order(22,
		&client.NewOrder{Account: 2, Security: aaa, Side: matcher.Buy, Qty: 4, LimitPx: 101_000_000}, ""))
	want = wire.Record{
		Kind: wire.Answer, What: uint8(matcher.OrderNew), Status: matcher.StatusFilled, Correlation: 22,
		InputSeq: 2, TimeMillis: testTime, Px: 101_000_000, LastPx: 100_000_000, TradeSeq: 2, OrderRef: 2,
		AccountID: 2, SecurityID: aaa, Qty: 4, LastQty: 4, Fills: 1,
	}
	if want.TradeSeq = got.TradeSeq; got != want || got.TradeSeq == 0 {
		t.Errorf("bought\n got %+v\nwant %+v", got, want)
	}
	fill := next(t, buyer)
	want = wire.Record{
		Kind: wire.Fill, What: uint8(matcher.OrderNew), Status: matcher.StatusFilled,
		Flags: wire.FlagAggressor, Correlation: 22,
		InputSeq: 2, TimeMillis: testTime, Px: 100_000_000, TradeSeq: got.TradeSeq, OrderRef: 2,
		AccountID: 2, SecurityID: aaa, Qty: 4, Leaves: wire.Unstated,
	}
	if fill != want {
		t.Errorf("fill\n got %+v\nwant %+v", fill, want)
	}
	canceled := ask(t, seller, seller.Cancel(12, 1, 1))
	if canceled.Code != wire.Decided || canceled.Status != matcher.StatusCanceled ||
		canceled.Leaves != 6 || canceled.Correlation != 12 {
		t.Errorf("canceled %+v", canceled)
	}
}

// A client knows how many of its commands are unanswered: each has one answer, whatever its
// outcome, and fills do not count as answers.
func TestClientCountsWhatIsOnItsWay(t *testing.T) {
	r := newRig(t)
	c := r.dial("", client.Options{})
	o := client.NewOrder{Account: 1, Security: aaa, Side: matcher.Sell, Qty: 10, LimitPx: 100_000_000}
	send := func(err error) {
		t.Helper()
		must.OK(t, err)
	}
	send(c.Order(1, &o, ""))
	if n := c.InFlight(); n != 0 {
		t.Errorf("%d before the flush", n)
	}
	o.Account, o.Side = 2, matcher.Buy
	send(c.Order(2, &o, ""))            // is filled
	send(c.Cancel(3, 1, 1<<31))         // no such order
	send(c.Replace(4, 1, 1, -1, 0, "")) // malformed
	c.Flush()
	for left := 4; left > 0; left-- {
		if n := c.InFlight(); n != left {
			t.Errorf("%d in flight, want %d", n, left)
		}
		for next(t, c).Kind != wire.Answer {
		}
	}
	for records := make([]wire.Record, 8); c.Poll(records) > 0; {
	}
	if n := c.InFlight(); n != 0 {
		t.Errorf("%d in flight when all are answered", n)
	}
}
