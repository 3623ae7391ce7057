package session

import (
	"fmt"
	"testing"

	"posttrade/matcher"
	"posttrade/matcher/gate"
	"posttrade/matcher/session/client"
	"posttrade/matcher/session/wire"
	"posttrade/ring/must"
)

// A repeated client id is answered with the first decision, also if that was a refusal, in any
// session; with other terms it is a conflict.
func TestRepeatedClientIDs(t *testing.T) {
	for _, sequenced := range []bool{true, false} {
		r := newRig(t, func(r *rig) { r.o.SequenceRefusals = sequenced })
		a, b := r.dial("", client.Options{}), r.dial("", client.Options{})
		ioc := with(order(), func(c *matcher.Command) { c.Flags = matcher.FlagIOC })
		postOnly := with(order(),
			func(c *matcher.Command) {
				c.Flags, c.LimitPx, c.Side = matcher.FlagPostOnly, 90_000_000,
					matcher.Sell
			})
		first := send(t, a, 1, order(), "first")
		again := send(t, b, 2, order(), "first")
		want := first
		want.Correlation, want.Flags = 2, first.Flags|wire.FlagDuplicate
		if again != want {
			t.Errorf("repeated\n got %+v\nwant %+v", again, want)
		}
		if got := send(t, b, 3, ioc, "first"); got.Code != wire.Conflict || got.Correlation != 3 {
			t.Errorf("other terms: %+v", got)
		}
		refused := send(t, a, 4, postOnly, "post") // it would trade with the first
		if refused.Code != wire.Decided || refused.Reason != matcher.Invalid || refused.InputSeq == 0 {
			t.Fatalf("refused: %+v", refused)
		}
		got := send(t, b, 5, postOnly, "post")
		if got.Reason != refused.Reason || got.InputSeq != refused.InputSeq ||
			got.OrderRef != refused.OrderRef || got.Flags != wire.FlagDuplicate {
			t.Errorf("refusal repeated\n got %+v\nwant %+v", got, refused)
		}
		// The order as it is now.
		send(t, a, 6, typed(matcher.OrderCancel,
			func(c *matcher.Command) { c.AccountID, c.OrderRef = 1, first.OrderRef }), "")
		if got := send(t, a, 7, order(), "first"); got.Status != matcher.StatusCanceled ||
			got.InputSeq != first.InputSeq || got.Flags != wire.FlagDuplicate {
			t.Errorf("after its cancel: %+v", got)
		}
		// A replace and a booking are repeated too.
		resting := send(t, a, 11, order(), "")
		replace := typed(matcher.OrderReplace, func(c *matcher.Command) {
			c.AccountID, c.OrderRef, c.Qty, c.LimitPx = 1, resting.OrderRef, 9, 90_000_000
		})
		booked := swap()
		for i, cmd := range []*matcher.Command{&replace, &booked} {
			if got := send(t, a, 12, *cmd, fmt.Sprintf("room-%d", i)); got.Code != wire.Decided ||
				got.Reason != matcher.Accepted {
				t.Fatalf("%d: %+v", i, got)
			}
		}
		// Whatever the gate's verdict is meanwhile.
		r.gate.SetPolicy(1, true, 0, 0)
		if got := send(t, a, 8, order(), "first"); got.Reason != matcher.Accepted ||
			got.InputSeq != first.InputSeq {
			t.Errorf("under the kill switch: %+v", got)
		}
		must.OK(t, r.gate.SetSource(gate.AccountSource, gate.Bootstrapping, 0, 0, 0, "gone"))
		if got := send(t, a, 9, order(), "first"); got.Reason != matcher.Accepted ||
			got.InputSeq != first.InputSeq {
			t.Errorf("not ready: %+v", got)
		}
		if got := send(t, a, 10, order(), "other"); got.Code != wire.NotReady || got.InputSeq != 0 {
			t.Errorf("another one, not ready: %+v", got)
		}
		for i, cmd := range []*matcher.Command{&replace, &booked} {
			if got := send(t, a, 13, *cmd, fmt.Sprintf("room-%d", i)); got.Code != wire.Decided ||
				got.InputSeq == 0 || got.Flags&wire.FlagDuplicate == 0 {
				t.Errorf("%d, not ready: %+v", i, got)
			}
		}
		m := r.server.Metrics()
		if m.Duplicates != 7 || m.Accepted != 5 || m.Rejections[matcher.Invalid] != 1 ||
			m.Answers[wire.Conflict] != 1 || m.Answers[wire.NotReady] != 1 {
			t.Errorf("metrics %+v", m)
		}
	}
}

// So many orders have ended since that the first one is no longer held: its status is not stated.
func TestRepeatedClientIDOfAnOrderThatIsNotHeld(t *testing.T) {
	r := newRig(t)
	c := r.dial("", client.Options{})
	ioc := with(order(), func(c *matcher.Command) { c.Flags = matcher.FlagIOC })
	first := send(t, c, 1, ioc, "first")
	for range testGenesis().Limits.RetainedOrders {
		send(t, c, 2, ioc, "")
	}
	if _, held := r.views.Order(first.OrderRef); held {
		t.Fatal("the order is still held")
	}
	want := first
	want.Correlation, want.Flags, want.Leaves = 3, wire.FlagDuplicate, wire.Unstated
	want.Status = wire.StatusUnstated
	if got := send(t, c, 3, ioc, "first"); got != want {
		t.Errorf("repeated\n got %+v\nwant %+v", got, want)
	}
}

// Commands that are under way together: the engine refuses those that conflict, and their answers
// have the sequence of the refusal. A repeated replace has that of the first decision. What is not
// handed in has none.
func TestSequencedConflicts(t *testing.T) {
	r := newRig(t)
	c := r.dial("", client.Options{})
	ref := send(t, c, 1, order(), "").OrderRef
	both := func(first, second error) wire.Record {
		t.Helper()
		must.OK(t, first)
		ask(t, c, second)
		return next(t, c)
	}
	replace := func() error { return c.Replace(2, 1, ref, 9, 101_000_000, "r") }
	one, other := order(), with(order(), func(c *matcher.Command) { c.Qty++ })
	if got := both(c.Send(3, &one, "k"), c.Send(4, &other, "k")); got.Code != wire.Conflict ||
		got.InputSeq != 3 || got.Reason != matcher.Accepted {
		t.Errorf("other terms: %+v", got)
	}
	late := both(c.Cancel(5, 1, ref), replace())
	if late.Code != wire.Conflict || late.InputSeq != 5 || late.Reason != matcher.Invalid ||
		late.OrderRef != ref || late.Flags != 0 {
		t.Errorf("replace behind the cancel: %+v", late)
	}
	if got := ask(t, c, replace()); got.Code != wire.Conflict || got.InputSeq != 5 ||
		got.Reason != matcher.Invalid || got.OrderRef != ref || got.Flags != wire.FlagDuplicate {
		t.Errorf("the replace again: %+v", got)
	}
	if got := ask(t, c, c.Cancel(6, 1, ref)); got.Code != wire.Conflict || got.InputSeq != 0 ||
		got.Reason != matcher.Invalid || got.Flags != 0 {
		t.Errorf("a second cancel: %+v", got)
	}
	if got := r.stage.Applied(); got != 5 {
		t.Errorf("applied %d, want 5", got)
	}
}

// An answer that shows the state of a view is held until that state is durable.
func TestRepeatedAnswerWaitsForWhatItShows(t *testing.T) {
	r := newRig(t)
	a, b := r.dial("", client.Options{}), r.dial("", client.Options{})
	first := send(t, a, 1, order(), "first")
	r.hold() // the cancel is recorded but not durable
	must.OK(t, a.Cancel(3, 1, first.OrderRef))
	a.Flush()
	until(t, "cancel recorded", func() bool { return r.recorded.Load() == 2 })
	for i, id := range []string{"first", ""} { // a repeat, and a cancel that comes too late
		cmd := order()
		if i == 1 {
			cmd = typed(matcher.OrderCancel,
				func(c *matcher.Command) { c.AccountID, c.OrderRef = 1, first.OrderRef })
		}
		must.OK(t, b.Send(uint64(4+i), &cmd, id))
	}
	b.Flush()
	// Another answer of the same poller shows that it has had its turn.
	if got := ask(t, a, a.Order(9, &client.NewOrder{}, "")); got.Code != wire.Malformed {
		t.Fatalf("malformed: %+v", got)
	}
	if got := ask(t, b, b.Order(9, &client.NewOrder{}, "")); got.Code != wire.Malformed {
		t.Fatalf("the held answer came: %+v", got)
	}
	r.letGo()
	if got := next(t, b); got.Correlation != 4 || got.Status != matcher.StatusCanceled ||
		got.InputSeq != first.InputSeq {
		t.Errorf("repeated: %+v", got)
	}
	if got := next(t, b); got.Correlation != 5 || got.Code != wire.Conflict || got.InputSeq != 0 {
		t.Errorf("cancelled twice: %+v", got)
	}
	if got := next(t, a); got.Correlation != 3 || got.Status != matcher.StatusCanceled {
		t.Errorf("cancelled: %+v", got)
	}
}
