package session

import (
	"errors"
	"testing"

	"posttrade/matcher"
	"posttrade/matcher/desk"
	"posttrade/matcher/session/client"
	"posttrade/matcher/session/wire"
	"posttrade/ring/must"
)

// send is ask for a command.
func send(t testing.TB, c *client.Client, correlation uint64, cmd matcher.Command,
	id string) wire.Record {
	t.Helper()
	return ask(t, c, c.Send(correlation, &cmd, id))
}

// The keys of a booking and a trade are remembered too, and a booking's id is its sequence.
func TestBookingsAndTrades(t *testing.T) {
	r := newRig(t)
	c := r.dial("", client.Options{})
	booked := send(t, c, 1, swap(), "swap")
	if booked.Code != wire.Decided || booked.Reason != matcher.Accepted || booked.InputSeq != 1 {
		t.Fatalf("booked: %+v", booked)
	}
	if row, ok := r.views.Contract(1); !ok || row.AccountID != 1 {
		t.Errorf("contract %+v", row)
	}
	if got := send(t, c, 2, swap(), "swap"); got.InputSeq != 1 || got.Flags != wire.FlagDuplicate ||
		got.Reason != matcher.Accepted {
		t.Errorf("booked again: %+v", got)
	}
	other := with(swap(), func(c *matcher.Command) { c.Qty++ })
	if got := send(t, c, 3, other, "swap"); got.Code != wire.Conflict {
		t.Errorf("booked with other terms: %+v", got)
	}
	r.tick(aaa, 100_000_000)
	trade := typed(matcher.TradeNew,
		func(c *matcher.Command) { c.AccountID, c.SecurityID, c.Qty = 1, aaa, 5 })
	traded := send(t, c, 4, trade, "trade")
	fill := next(t, c)
	if traded.Code != wire.Decided || traded.Fills != 1 || traded.Flags != wire.FlagMarket ||
		fill.Kind != wire.Fill ||
		fill.Px != 100_000_000 || fill.Qty != 5 || fill.Flags != wire.FlagMarket ||
		fill.TradeSeq != traded.TradeSeq {
		t.Errorf("traded %+v, %+v", traded, fill)
	}
	want := traded
	want.Correlation, want.Flags = 5, wire.FlagDuplicate|wire.FlagMarket
	want.Fills, want.TradeSeq, want.Px, want.LastPx, want.LastQty = 0, 0, 0, 0, 0
	if got := send(t, c, 5, trade, "trade"); got != want || got.Status != matcher.StatusFilled {
		t.Errorf("traded again\n got %+v\nwant %+v", got, want)
	}
}

// When a market order reaches the price beyond which it may not go, its sender and the drop copy
// are told.
func TestMarketOrderSaysWhatEndedIt(t *testing.T) {
	r := newRig(t)
	c, copies := r.dial("", client.Options{}), r.dial("", client.Options{Role: wire.DropCopy})
	r.tick(aaa, 1_000_000)
	for n := range uint64(2) { // an order may have a value of 1e9, and there is no collar
		send(t, c, n, with(order(), func(c *matcher.Command) {
			c.AccountID, c.Side, c.Qty, c.LimitPx = 2, matcher.Sell, 9_000, 100_000*matcher.PriceScale
		}), "")
	}
	market := with(order(), func(c *matcher.Command) {
		c.Qty, c.LimitPx = 18_000, 0
		c.Version = matcher.OldestVersion // an older client: it does not select older rules
	})
	for _, flags := range []uint16{0, wire.FlagDuplicate} {
		got := send(t, c, 3, market, "m")
		if got.Status != matcher.StatusCanceled || got.Reason != matcher.OrderNotional ||
			got.Leaves != 18_000 ||
			got.Fills != 0 || got.Flags != flags {
			t.Fatalf("answer %+v", got)
		}
	}
	for {
		if got := next(t, copies); got.What == uint8(matcher.EventCanceled) {
			if got.Reason != matcher.OrderNotional || got.Status != matcher.StatusCanceled ||
				got.Qty != 18_000 {
				t.Errorf("copy %+v", got)
			}
			break
		}
	}
}

// Only the views use the mark of a late price: a reader's flags stay the same.
func TestCopiesDoNotCarryTheMarkOfALatePrice(t *testing.T) {
	ev := matcher.Event{Kind: matcher.EventFilled, Flags: matcher.EventAggressor | matcher.EventLate}
	if copied, traded := copyOf(&ev),
		tradeOf(&ev); copied.Flags != wire.FlagAggressor || traded.Flags != wire.FlagAggressor {
		t.Errorf("flags %#x and %#x", copied.Flags, traded.Flags)
	}
}

// tick sets the price of a security through the desk.
func (r *rig) tick(security uint32, px int64) {
	r.t.Helper()
	r.submit(typed(matcher.PriceTick, func(c *matcher.Command) {
		c.EventTimeMillis, c.SecurityID, c.PriceTicks = testTime, security, px
	}))
}

// submit hands a command in through the desk, as operators and control feeds do.
func (r *rig) submit(c matcher.Command) {
	r.t.Helper()
	ticket := must.Get(r.desk.Acquire(1))(r.t)
	*ticket.Command(0) = c
	must.OK(r.t, errors.Join(ticket.Submit(), ticket.Wait(0)))
	ticket.Release()
}

// Replaced orders keep or lose their place, and a post-only order stays post-only.
func TestReplaces(t *testing.T) {
	r := newRig(t)
	c := r.dial("", client.Options{})
	sell := with(order(), func(c *matcher.Command) { c.Side, c.LimitPx = matcher.Sell, 110_000_000 })
	send(t, c, 1, sell, "")
	ref := send(t, c, 2, with(order(), func(c *matcher.Command) { c.Flags = matcher.FlagPostOnly }),
		"").OrderRef
	replace := func(correlation uint64, px int64, id string) wire.Record {
		return ask(t, c, c.Replace(correlation, 1, ref, 7, px, id))
	}
	if got := replace(3, 101_000_000, "r"); got.Code != wire.Decided ||
		got.Reason != matcher.Accepted || got.Qty != 7 || got.Px != 101_000_000 {
		t.Errorf("replaced: %+v", got)
	}
	if got := replace(4, 101_000_000, "r"); got.Flags&wire.FlagDuplicate == 0 || got.OrderRef != ref ||
		got.Qty != 7 {
		t.Errorf("replaced again: %+v", got)
	}
	if got := replace(5, 110_000_000, ""); got.Reason != matcher.Invalid || got.Code != wire.Decided {
		t.Errorf("post-only across the spread: %+v", got)
	}
	send(t, c, 6, typed(matcher.OrderCancel,
		func(c *matcher.Command) { c.AccountID, c.OrderRef = 1, ref }), "")
	if got := replace(7, 102_000_000, ""); got.Code != wire.Conflict || got.Reason != matcher.Invalid {
		t.Errorf("replace of a cancelled order: %+v", got)
	}
	if got := ask(t, c, c.Cancel(8, 1, ref)); got.Code != wire.Conflict {
		t.Errorf("cancel of a cancelled order: %+v", got)
	}
}

// No answer is sent before it is durable; then answers come in order. The answer to a command that
// is turned down does not wait.
func TestAnswersWaitForDurability(t *testing.T) {
	r := newRig(t)
	c := r.dial("", client.Options{})
	send(t, c, 1, order(), "first")
	r.hold()
	const n = 20
	for i := range n {
		cmd := order()
		must.OK(t, c.Send(uint64(100+i), &cmd, ""))
		c.Flush()
	}
	until(t, "recorded", func() bool { return r.recorded.Load() == n+1 })
	if got := ask(t, c, c.Order(5, &client.NewOrder{}, "")); got.Code != wire.Malformed ||
		got.Correlation != 5 {
		t.Fatalf("while nothing is durable: %+v", got)
	}
	if got := r.server.Metrics(); got.Answers[wire.Decided] != 1 {
		t.Fatalf("%d answers before they were durable", got.Answers[wire.Decided])
	}
	r.letGo()
	for i := range n {
		if got := next(t, c); got.Correlation != uint64(100+i) || got.InputSeq != uint64(2+i) {
			t.Fatalf("answer %d: %+v", i, got)
		}
	}
}

// When the journal fails, the outcome of commands on their way is unknown, and no further command
// is accepted.
func TestJournalFailure(t *testing.T) {
	r := newRig(t)
	c := r.dial("", client.Options{})
	r.hold()
	cmd := order()
	must.OK(t, c.Send(1, &cmd, ""))
	c.Flush()
	until(t, "recorded", func() bool { return r.recorded.Load() == 1 })
	cause := errors.New("disk on fire")
	r.failure.Store(&cause)
	r.desk.Fail()
	r.server.Wake()
	if got := next(t, c); got.Code != wire.Unknown || got.Correlation != 1 || got.InputSeq != 0 {
		t.Errorf("on its way: %+v", got)
	}
	if got := send(t, c, 2, order(), ""); got.Code != wire.Unavailable {
		t.Errorf("afterwards: %+v", got)
	}
	r.failure.Store(nil) // the desk has the failure too
	if got := send(t, c, 3, order(), ""); got.Code != wire.Unavailable {
		t.Errorf("desk failed: %+v", got)
	}
}

// A full disk, a full desk and a full ring are reported at once, and the session recovers from
// them.
func TestNoRoomIsSaidAtOnce(t *testing.T) {
	r := newRig(t, func(r *rig) {
		d := must.Get(desk.New(r.in, 2))(r.t)
		r.desk, r.o.Desk = d, d
	})
	c := r.dial("", client.Options{})
	r.full.Store(true)
	if got := send(t, c, 1, order(), ""); got.Code != wire.Unavailable {
		t.Errorf("full disk: %+v", got)
	}
	r.full.Store(false)
	var out []*desk.Ticket
	for range 2 {
		ticket := must.Get(r.desk.Acquire(1))(t)
		out = append(out, ticket)
	}
	if got := send(t, c, 2, order(), ""); got.Code != wire.Busy {
		t.Errorf("full desk: %+v", got)
	}
	out[0].Release()
	out[1].Release()
	if got := send(t, c, 3, order(), ""); got.Code != wire.Decided {
		t.Errorf("with room: %+v", got)
	}
	if got := r.server.Metrics(); got.Answers[wire.Busy] != 1 || got.Answers[wire.Unavailable] != 1 {
		t.Errorf("metrics %+v", got)
	}
}

// A ticket that a cluster's leader could not hand on was certainly not sequenced.
func TestRefusedTicketIsNotSequenced(t *testing.T) {
	r := newRig(t)
	c := r.dial("", client.Options{})
	r.hold()
	cmd := order()
	must.OK(t, c.Send(1, &cmd, ""))
	c.Flush()
	until(t, "recorded", func() bool { return r.recorded.Load() == 1 })
	r.desk.Refuse(r.lastRef.Load())
	r.server.Wake()
	if got := next(t, c); got.Code != wire.NotReady || got.Correlation != 1 || got.InputSeq != 0 {
		t.Errorf("refused: %+v", got)
	}
	for err, want := range map[error]wire.Code{
		desk.ErrRefused: wire.NotReady, desk.ErrFull: wire.Busy, desk.ErrBusy: wire.Busy,
		desk.ErrClosed: wire.Unavailable, desk.ErrFailed: wire.Unavailable,
	} {
		if got := codeOf(err); got != want {
			t.Errorf("%v: %s, want %s", err, got, want)
		}
	}
}

// A client that floods gets no more commands on their way than its quota; another client is not
// affected.
func TestFloodStopsAtTheQuota(t *testing.T) {
	r := newRig(t, func(r *rig) { r.o.Quota = 24 })
	flood, calm := r.dial("", client.Options{CommandSlots: 512, EventSlots: 32}),
		r.dial("", client.Options{})
	r.hold()
	sent := 0
	for {
		cmd := order()
		err := flood.Send(uint64(sent), &cmd, "")
		if err == client.ErrFull {
			break
		}
		must.OK(t, err)
		sent++
	}
	flood.Flush()
	until(t, "quota", func() bool { return r.recorded.Load() == 24 })
	if got := send(t, calm, 1, with(order(), func(c *matcher.Command) { c.Qty = 0 }),
		""); got.Code != wire.Malformed {
		t.Errorf("calm: %+v", got)
	}
	if got := r.recorded.Load(); got != 24 || r.server.Metrics().Commands != 25 {
		t.Errorf("%d commands recorded, metrics %+v", got, r.server.Metrics())
	}
	r.letGo()
	// Its answers fill a ring of 32; the other client continues, and no answer is lost.
	until(t, "answers", func() bool { return r.server.Metrics().Answers[wire.Decided] == 32 })
	if got := send(t, calm, 2, order(), ""); got.Code != wire.Decided {
		t.Errorf("calm: %+v", got)
	}
	for i := range sent {
		if got := next(t, flood); got.Correlation != uint64(i) || got.Code != wire.Decided {
			t.Fatalf("answer %d: %+v", i, got)
		}
	}
}

// An order that trades with many others has more fills than the event ring has slots.
func TestMoreFillsThanSlots(t *testing.T) {
	r := newRig(t)
	c := r.dial("", client.Options{EventSlots: 16})
	const n = 100
	for i := range n {
		sell := with(order(),
			func(c *matcher.Command) { c.AccountID, c.Side, c.Qty = 2, matcher.Sell, 1 })
		send(t, c, uint64(i), sell, "")
	}
	sweep := with(order(), func(c *matcher.Command) { c.Qty = n })
	must.OK(t, c.Send(500, &sweep, ""))
	behind := order()
	must.OK(t, c.Send(501, &behind, ""))
	c.Flush()
	if got := next(t, c); got.Correlation != 500 || got.Fills != n ||
		got.Status != matcher.StatusFilled {
		t.Fatalf("swept: %+v", got)
	}
	var last uint64
	for i := range n {
		got := next(t, c)
		if got.Kind != wire.Fill || got.Correlation != 500 || got.Qty != 1 || got.TradeSeq <= last {
			t.Fatalf("fill %d: %+v", i, got)
		}
		last = got.TradeSeq
	}
	if got := next(t, c); got.Correlation != 501 || got.Kind != wire.Answer {
		t.Errorf("behind: %+v", got)
	}
}
