package session

import (
	"strings"
	"testing"

	"posttrade/matcher"
	"posttrade/matcher/session/client"
	"posttrade/matcher/session/wire"
	"posttrade/ring"
	"posttrade/ring/must"
)

// A drop copy shows every event of its accounts and of no other, independent of the session that
// handed in the command. Market data shows each execution once, without accounts and orders.
func TestFeeds(t *testing.T) {
	r := newRig(t, enforced)
	mine := r.dial(r.token(false, 1), client.Options{Role: wire.DropCopy})
	all := r.dial(r.token(true), client.Options{Role: wire.DropCopy})
	trades := r.dial(r.token(false), client.Options{Role: wire.Trades})
	trader := r.dial(r.token(true), client.Options{})

	sell := with(order(), func(c *matcher.Command) { c.AccountID, c.Side, c.Qty = 2, matcher.Sell, 3 })
	send(t, trader, 1, with(order(), func(c *matcher.Command) { c.Qty = 5 }), "")
	send(t, trader, 2, sell, strings.Repeat("n", 64))
	next(t, trader) // its fill
	ask(t, trader, trader.Cancel(3, 1, 1))
	send(t, trader, 4, order(), "again")
	// This one is answered from the first decision: nothing is sequenced.
	send(t, trader, 5, order(), "again")
	send(t, trader, 6, with(order(), func(c *matcher.Command) { // it would trade
		c.Side, c.Flags = matcher.Sell, matcher.FlagPostOnly
	}), "")

	type line struct {
		kind    matcher.EventKind
		account uint32
		qty     int32
		leaves  int32
	}
	expect := func(name string, c *client.Client, want []line) {
		t.Helper()
		for i, w := range want {
			got := next(t, c)
			if l := (line{matcher.EventKind(got.What), got.AccountID, got.Qty, got.Leaves}); l != w ||
				got.Kind != wire.Copy {
				t.Fatalf("%s record %d: %+v, want %+v", name, i, got, w)
			}
		}
	}
	named := func(name string, c *client.Client, ref uint32, id string) {
		t.Helper()
		if got := next(t, c); got.Kind != wire.Name || got.OrderRef != ref ||
			string(got.ClientID()) != id {
			t.Fatalf("%s: %+v, %q", name, got, got.ClientID())
		}
	}
	expect("mine", mine, []line{
		{matcher.EventAccepted, 1, 5, wire.Unstated}, {matcher.EventFilled, 1, 3, 2},
		{matcher.EventCanceled, 1, 2, wire.Unstated},
		{matcher.EventAccepted, 1, 5, wire.Unstated},
	})
	named("mine", mine, 3, "again")
	expect("mine", mine, []line{{matcher.EventRejected, 1, 5, wire.Unstated}})
	expect("all", all, []line{
		{matcher.EventAccepted, 1, 5, wire.Unstated}, {matcher.EventAccepted, 2, 3, wire.Unstated},
	})
	named("all", all, 2, strings.Repeat("n", 64))
	for _, account := range []uint32{2, 1} {
		if got := next(t, all); got.What != uint8(matcher.EventFilled) || got.AccountID != account ||
			got.Px != 100_000_000 || got.TradeSeq == 0 || got.PositionQty == 0 {
			t.Fatalf("fill of %d: %+v", account, got)
		}
	}
	got := next(t, trades)
	want := wire.Record{Kind: wire.Trade, What: uint8(matcher.EventFilled), Side: matcher.Sell,
		Flags:    wire.FlagAggressor,
		InputSeq: 2, TimeMillis: testTime, Px: 100_000_000, TradeSeq: got.TradeSeq, SecurityID: aaa,
		Qty: 3, Leaves: wire.Unstated}
	if got != want {
		t.Errorf("trade\n got %+v\nwant %+v", got, want)
	}
	if n := trades.Poll(make([]wire.Record, 1)); n != 0 {
		t.Errorf("a second record of one trade")
	}
	if err := trades.Order(1, &client.NewOrder{}, ""); err != client.ErrRole {
		t.Errorf("an order on a feed: %v", err)
	}
}

// Controls and ticks belong to no account, also when the engine refuses them. A refused force fill
// is about an order, and belongs to its account.
func TestDropCopyHasNoRefusedControl(t *testing.T) {
	r := newRig(t, enforced)
	for name, token := range map[string]string{"mine": r.token(false, 1), "all": r.token(true)} {
		feed := r.dial(token, client.Options{Role: wire.DropCopy})
		begin := r.recorded.Load()
		r.submit(typed(matcher.AccountControl, func(c *matcher.Command) { // no such flag
			c.AccountID, c.Side = 1, 1<<7
		}))
		r.submit(typed(matcher.PolicyControl, func(c *matcher.Command) {})) // an old version
		r.submit(typed(matcher.LimitsControl, func(c *matcher.Command) { c.AccountID = 1 }))
		r.tick(99, 1_000_000) // an unknown security
		r.submit(typed(matcher.ForceFill, func(c *matcher.Command) { c.AccountID, c.OrderRef = 1, 77 }))
		if got := next(t, feed); got.InputSeq != begin+5 || got.AccountID != 1 ||
			got.What != uint8(matcher.EventRejected) || r.recorded.Load() != begin+5 {
			t.Errorf("%s: %+v after sequence %d", name, got, begin)
		}
	}
}

// A session that is welcomed in the middle of a look of the feeder sees all events after its
// welcome.
func TestFeedMissesNothingAfterItsWelcome(t *testing.T) {
	r := newRig(t)
	o := r.o
	var s *Server
	var one *session
	o.Durable = func() uint64 { return 1 }
	o.Clock = func() int64 { // the feeder has looked for joining sessions, but not yet at the tap
		if one.server.feeds.attached.Load() == 0 {
			s.join(one)
			ev := matcher.Event{Kind: matcher.EventCanceled, InputSeq: 1, AccountID: 1}
			s.Observe(&ev, nil)
		}
		return testTime
	}
	s, one = idleServer(t, wire.DropCopy, o)
	s.feeds.pump()
	if got := s.Metrics().Copies; got != 1 {
		t.Errorf("%d copies, want 1", got)
	}
}

// A feed shows no event before it is durable.
func TestFeedsWaitForDurability(t *testing.T) {
	r := newRig(t)
	feed, trader := r.dial("", client.Options{Role: wire.DropCopy}), r.dial("", client.Options{})
	send(t, trader, 1, order(), "")
	next(t, feed)
	r.hold()
	cmd := order()
	must.OK(t, trader.Send(2, &cmd, ""))
	trader.Flush()
	until(t, "tapped", func() bool { return r.server.tap.events.Published() == 2 })
	late := r.dial("", client.Options{Role: wire.DropCopy})
	// When other feeds have ended, the feeder has made its turns.
	for range 3 {
		r.dial("", client.Options{Role: wire.Trades}).Close()
		until(t, "left", func() bool { return r.server.Metrics().Feeds == 2 })
	}
	if got := r.server.Metrics().Copies; got != 1 {
		t.Fatalf("%d copies before they were durable", got)
	}
	r.letGo()
	for name, c := range map[string]*client.Client{"feed": feed, "late": late} {
		if got := next(t, c); got.InputSeq != 2 {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// A reader that is too slow loses records, is told how many, and does not affect other sessions.
func TestSlowReadersAreToldWhatTheyMissed(t *testing.T) {
	r := newRig(t)
	slow := r.dial("", client.Options{Role: wire.DropCopy, EventSlots: 16})
	fast := r.dial("", client.Options{Role: wire.DropCopy, EventSlots: 1024})
	trader := r.dial("", client.Options{})
	const n = 100
	for i := range n {
		if got := send(t, trader, uint64(i), order(), ""); got.Code != wire.Decided {
			t.Fatal(got)
		}
	}
	for i := range n {
		if got := next(t, fast); got.InputSeq != uint64(i+1) {
			t.Fatalf("fast: record %d is %+v", i, got)
		}
	}
	told, missed := 0, uint64(0)
	for told+int(missed) < n {
		got := next(t, slow)
		switch {
		case got.Kind == wire.Gap:
			missed += got.Missed
		case got.InputSeq != uint64(told)+missed+1:
			t.Fatalf("slow: %+v after %d records and %d missed", got, told, missed)
		default:
			told++
		}
	}
	if told < 16 || missed == 0 || r.server.Metrics().Missed != missed {
		t.Errorf("%d told, %d missed, metrics %+v", told, missed, r.server.Metrics())
	}
	send(t, trader, n, order(), "")
	if got := next(t, slow); got.InputSeq != n+1 {
		t.Errorf("afterwards: %+v", got)
	}
}

// A feeder that the recorder has lapped reports it to every feed and continues.
func TestLappedFeeder(t *testing.T) {
	r := newRig(t, func(r *rig) { r.o.TapSlots = 16 })
	feed, trader := r.dial("", client.Options{Role: wire.DropCopy}), r.dial("", client.Options{})
	r.hold() // the feeder stops before the first event that is not durable
	const n = 200
	for i := range n {
		cmd := order()
		must.OK(t, trader.Send(uint64(i), &cmd, ""))
	}
	trader.Flush()
	until(t, "recorded", func() bool { return r.recorded.Load() == n })
	r.letGo()
	told, missed := uint64(0), uint64(0)
	for told+missed < n {
		if got := next(t, feed); got.Kind == wire.Gap {
			missed += got.Missed
		} else if told++; got.InputSeq <= 0 || got.InputSeq > n {
			t.Fatalf("%+v", got)
		}
	}
	if missed == 0 {
		t.Error("nothing was missed")
	}
}

// Without a feed the recorder's hook copies no event.
func TestNoFeedNoTap(t *testing.T) {
	r := newRig(t)
	trader := r.dial("", client.Options{})
	send(t, trader, 1, order(), "")
	if got := r.server.tap.events.Published(); got != 0 {
		t.Errorf("%d events tapped", got)
	}
	feed := r.dial("", client.Options{Role: wire.Trades})
	send(t, trader, 2, order(), "")
	until(t, "tapped", func() bool { return r.server.tap.events.Published() == 1 })
	feed.Close()
	until(t, "left", func() bool {
		return r.server.Metrics().Feeds == 0 &&
			r.server.feeds.attached.Load() == 0
	})
	send(t, trader, 3, order(), "")
	if got := r.server.tap.events.Published(); got != 1 {
		t.Errorf("%d events tapped", got)
	}
}

// Readers make room without ringing, so the feeder sleeps only for a short time while records are
// owed to one.
func TestFeederIsImpatientWhileItOwes(t *testing.T) {
	for _, tt := range []struct {
		name   string
		role   wire.Role
		exact  bool
		owed   int
		missed uint64
		want   int64
	}{
		{"nothing", wire.Market, true, 0, 0, sleepNs},
		{"a snapshot", wire.Market, true, 3, 0, ring.NapNs},
		{"a snapshot that cannot be told yet", wire.Market, false, 3, 0, sleepNs},
		{"a Gap", wire.DropCopy, false, 0, 1, ring.NapNs},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := newRig(t)
			s, one := idleServer(t, tt.role, r.o)
			s.feeds.sessions = []*session{one}
			s.feeds.keepTops()
			if s.feeds.tops != nil {
				s.feeds.tops.exact = tt.exact
			}
			one.owed, one.missed = tt.owed, tt.missed
			if got := s.feeds.patience(); got != tt.want {
				t.Errorf("it sleeps for %d ns, want %d", got, tt.want)
			}
		})
	}
}
