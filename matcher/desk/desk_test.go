package desk

import (
	"fmt"
	"testing"
	"time"

	"posttrade/matcher"
	"posttrade/ring/must"
)

const px = 1_000_000 // a price of 1

func TestAnswersTellWhatBecameOfTheCommand(t *testing.T) {
	r := newRig(t, 64, 4)
	type want struct {
		kind   matcher.EventKind
		status matcher.OrderStatus
		reason matcher.RiskReason
		ref    uint32
		qty    int32
		leaves int32
		fills  string
		rests  bool
	}
	keyed := func(c matcher.Command, key int64) matcher.Command { c.PriceTicks = key; return c }
	replace := func(ref uint32, account uint32, side matcher.Side, qty int32,
		px int64) matcher.Command {
		c := newOrder(account, side, qty, px, 0)
		c.Type, c.OrderRef = matcher.OrderReplace, ref
		return c
	}
	cancel := replace(1, 1, matcher.Sell, 0, 0)
	cancel.Type = matcher.OrderCancel
	trade := newOrder(7, matcher.Buy, 5, 0, 0)
	trade.Type = matcher.TradeNew
	force := replace(9, 6, matcher.Buy, 2, 2*px)
	force.Type = matcher.ForceFill
	tick := newOrder(0, 0, 0, 0, 0)
	tick.Type, tick.PriceTicks = matcher.PriceTick, 3*px
	restrict := newOrder(0, 1, 0, 0, 0)
	restrict.Type = matcher.RestrictionControl

	swap := matcher.ContractTerms{AccountID: 7, Side: matcher.Sell, Notional: 900, FixedRate: -2,
		Effective: 3, Maturity: 4}
	fee := swap
	fee.FixedRate = 0

	steps := []struct {
		name string
		c    matcher.Command
		want want
	}{
		{"rests", newOrder(1, matcher.Sell, 10, 5*px, 0),
			want{matcher.EventAccepted, matcher.StatusNew, 0, 1, 10, 10, "", true}},
		{"rests behind", newOrder(2, matcher.Sell, 10, 6*px, 0),
			want{matcher.EventAccepted, matcher.StatusNew, 0, 2, 10, 10, "", true}},
		{"fills partly and rests", newOrder(3, matcher.Buy, 15, 5*px, 0),
			want{matcher.EventAccepted, matcher.StatusPartiallyFilled, 0, 3, 15, 5, "1:10@5000000", true}},
		{"fills over two levels", keyed(newOrder(4, matcher.Sell, 5, 4*px, 0), 77),
			want{matcher.EventAccepted, matcher.StatusFilled, 0, 4, 5, 0, "3:5@5000000", false}},
		{"duplicate", keyed(newOrder(4, matcher.Sell, 5, 4*px, 0), 77),
			want{matcher.EventRejected, 0, matcher.Duplicate, 4, 5, 5, "", false}},
		{"IOC remainder is cancelled", newOrder(5, matcher.Buy, 12, 6*px, matcher.FlagIOC),
			want{matcher.EventAccepted, matcher.StatusCanceled, 0, 5, 12, 2, "5:10@6000000", false}},
		{"FOK cannot fill", newOrder(5, matcher.Buy, 12, 6*px, matcher.FlagFOK),
			want{matcher.EventAccepted, matcher.StatusCanceled, 0, 6, 12, 12, "", false}},
		{"refused", newOrder(5000, matcher.Buy, 12, 6*px, 0),
			want{matcher.EventRejected, matcher.StatusRejected, matcher.UnknownAccount, 7, 12, 12, "",
				false}},
		{"market trade", trade, want{matcher.EventBooked, matcher.StatusFilled, 0, 0, 5, 0, "7:5@6000000",
			false}},
		{"market trade, keyed", keyed(trade, 78), want{matcher.EventBooked, matcher.StatusFilled, 0, 0, 5,
			0, "8:5@6000000", false}},
		{"market trade, again", keyed(trade, 78), want{matcher.EventRejected, 0, matcher.Duplicate, 0, 5,
			5, "", false}},
		{"own resting order is cancelled, not ours", newOrder(8, matcher.Sell, 3, 9*px, 0),
			want{matcher.EventAccepted, matcher.StatusNew, 0, 8, 3, 3, "", true}},
		{"bid", newOrder(6, matcher.Buy, 6, 2*px, 0),
			want{matcher.EventAccepted, matcher.StatusNew, 0, 9, 6, 6, "", true}},
		{"forced", force, want{matcher.EventApplied, matcher.StatusPartiallyFilled, 0, 9, 2, 4,
			"9:2@2000000", false}},
		{"replace keeps its place", replace(9, 6, matcher.Buy, 5, 2*px),
			want{matcher.EventReplaced, matcher.StatusPartiallyFilled, 0, 9, 5, Unstated, "", true}},
		{"replace trades", replace(9, 6, matcher.Buy, 9, 9*px),
			want{matcher.EventReplaced, matcher.StatusPartiallyFilled, 0, 9, 9, 4, "10:3@9000000", true}},
		{"replace of a gone order", replace(8, 8, matcher.Sell, 9, 9*px),
			want{matcher.EventRejected, 0, matcher.Invalid, 8, 9, 9, "", false}},
		{"cancel of a gone order", cancel, want{matcher.EventRejected, 0, matcher.Invalid, 1, 0, 0, "",
			false}},
		{"tick", tick, want{matcher.EventApplied, 0, 0, 0, 0, 0, "", false}},
		{"symbol", matcher.NewSymbolRegister("TSLA"),
			want{matcher.EventApplied, 0, 0, 0, 0, 0, "", false}},
		{"another resting order", newOrder(8, matcher.Buy, 3, px, 0),
			want{matcher.EventAccepted, matcher.StatusNew, 0, 10, 3, 3, "", true}},
		{"meets account 6 before itself", newOrder(8, matcher.Sell, 3, px, 0),
			want{matcher.EventAccepted, matcher.StatusFilled, 0, 11, 3, 0, "12:3@9000000", false}},
		{"meets itself", newOrder(8, matcher.Sell, 4, px, 0),
			want{matcher.EventAccepted, matcher.StatusPartiallyFilled, 0, 12, 4, 3, "14:1@9000000", true}},
		{"restriction cancels others", restrict, want{matcher.EventApplied, 0, 0, 0, 0, 0, "", false}},
		{"contract", keyed(swap.Command(), 77), want{matcher.EventContract, 0, 0, 0, 900, 900, "",
			false}},
		{"contract, again", keyed(swap.Command(), 77),
			want{matcher.EventRejected, 0, matcher.Duplicate, 0, 900, 900, "", false}},
		{"contract, refused", fee.Command(), want{matcher.EventRejected, 0, matcher.Invalid, 0, 900, 900,
			"", false}},
	}
	for i, s := range steps {
		ticket := r.decide(s.c)
		a := ticket.Answer(0)
		fills := ""
		for j, f := range a.Fills {
			if j > 0 {
				fills += " "
			}
			fills += fmt.Sprintf("%d:%d@%d", f.TradeSeq, f.Qty, f.Px)
		}
		got := want{a.Kind, a.Status, a.Reason, a.OrderRef, a.Qty, a.Leaves, fills, a.Rests}
		if got != s.want {
			t.Errorf("%s: got %+v, want %+v", s.name, got, s.want)
		}
		if a.InputSeq != uint64(i+1) || a.Refused() != (a.Kind == matcher.EventRejected) {
			t.Errorf("%s: sequence %d, want %d", s.name, a.InputSeq, i+1)
		}
		if n := len(a.Fills); n > 0 && (a.LastPx != a.Fills[n-1].Px || a.LastQty != a.Fills[n-1].Qty ||
			a.TradeSeq != a.Fills[n-1].TradeSeq) {
			t.Errorf("%s: last fill is %d@%d, want that of %+v", s.name, a.LastQty, a.LastPx, a.Fills)
		}
		switch s.name {
		case "contract":
			if a.Px != -2 || a.Side != matcher.Sell || a.AccountID != 7 || a.SecurityID != 0 ||
				a.TimeMillis != 0 {
				t.Errorf("%s: got %+v", s.name, a)
			}
		case "contract, again":
			if !a.Duplicate() || a.DupKind != matcher.KeyContract || a.DupRef != uint64(i) ||
				a.DupReason != matcher.Accepted {
				t.Errorf("%s: got %+v", s.name, a)
			}
		case "duplicate":
			if !a.Duplicate() || a.DupKind != matcher.KeyOrder || a.DupRef != 4 ||
				a.DupReason != matcher.Accepted || a.TradeSeq != 0 || a.Px != 0 {
				t.Errorf("%s: got %+v", s.name, a)
			}
		case "market trade, again":
			if !a.Duplicate() || a.DupKind != matcher.KeyTrade || a.DupRef != 10 {
				t.Errorf("%s: got %+v", s.name, a)
			}
		case "market trade":
			if a.Px != 6*px || a.TradeSeq != 7 || a.TimeMillis != testTime || a.AccountID != 7 {
				t.Errorf("%s: got %+v", s.name, a)
			}
		case "symbol":
			if a.SecurityID != 4 {
				t.Errorf("%s: security %d, want 4", s.name, a.SecurityID)
			}
		}
		ticket.Release()
	}
}

func TestBatchIsOnePieceAndWaitsForItsLastCommand(t *testing.T) {
	r := newRig(t, 16, 4)
	ticket := r.submit(newOrder(1, matcher.Buy, 1, px, 0), newOrder(2, matcher.Buy, 2, px, 0),
		newOrder(3, matcher.Buy, 3, px, 0))
	other := r.submit(newOrder(4, matcher.Buy, 4, px, 0))
	for done := 1; done <= 2; done++ {
		r.step(1)
		r.durable()
		if ticket.Ready() || ticket.Answer(0) != nil {
			t.Fatalf("answered after %d of 3 commands", done)
		}
		if err := ticket.Wait(time.Microsecond); err != ErrTimeout {
			t.Fatalf("after %d of 3 commands: got %v, want %v", done, err, ErrTimeout)
		}
	}
	r.step(1)
	r.desk.Durable(2) // the recorder is ahead of the disk
	if ticket.Ready() {
		t.Fatal("answered before it was durable")
	}
	r.desk.Durable(3)
	if !ticket.Ready() || other.Ready() {
		t.Fatalf("ready: %v, %v, want the first only", ticket.Ready(), other.Ready())
	}
	for range 2 { // waiting again changes nothing
		must.OK(t, ticket.Wait(0))
	}
	for i := range ticket.Len() {
		if a := ticket.Answer(i); a.InputSeq != uint64(i+1) || a.Qty != int32(i+1) {
			t.Errorf("command %d: sequence %d quantity %d", i, a.InputSeq, a.Qty)
		}
	}
	ticket.Release()
	r.step(1)
	r.durable()
	must.OK(t, other.Wait(time.Minute))
	other.Release()
	if r.desk.Out() != 0 {
		t.Errorf("%d tickets out, want 0", r.desk.Out())
	}
}

func TestOneDurableWakesAllUpToIt(t *testing.T) {
	r := newRig(t, 16, 8)
	var tickets []*Ticket
	for i := range 8 {
		tickets = append(tickets, r.submit(newOrder(uint32(i), matcher.Buy, 1, px, 0)))
	}
	r.step(8)
	r.desk.Durable(5)
	for i, ticket := range tickets {
		if ticket.Ready() != (i < 5) {
			t.Errorf("ticket %d: ready %v", i, ticket.Ready())
		}
	}
	r.desk.Durable(5)
	r.desk.Durable(8)
	for _, ticket := range tickets {
		if err := ticket.Wait(0); err != nil {
			t.Error(err)
		}
		ticket.Release()
	}
}

func TestTicketGivenUpComesBackWithItsAnswer(t *testing.T) {
	r := newRig(t, 16, 1)
	ticket := r.submit(newOrder(1, matcher.Buy, 1, px, 0))
	ticket.SetClientID(0, nil)
	if err := ticket.Wait(time.Microsecond); err != ErrTimeout {
		t.Fatalf("got %v, want %v", err, ErrTimeout)
	}
	ticket.Release()
	if _, err := r.desk.Acquire(1); err != ErrBusy {
		t.Fatalf("before the answer: got %v, want %v", err, ErrBusy)
	}
	r.step(1)
	if _, err := r.desk.Acquire(1); err != ErrBusy {
		t.Fatalf("before it is durable: got %v, want %v", err, ErrBusy)
	}
	r.durable()
	if r.desk.Out() != 0 {
		t.Fatalf("%d tickets out, want 0", r.desk.Out())
	}
	next := r.decide(newOrder(2, matcher.Buy, 7, px, 0))
	if a := next.Answer(0); a.Qty != 7 || a.InputSeq != 2 || len(a.Fills) != 0 {
		t.Errorf("got %+v, want the second order's answer", a)
	}
	next.Release()
}

// The answer comes between the holder's time-out and its Release.
func TestAnswerBetweenTimeoutAndRelease(t *testing.T) {
	r := newRig(t, 16, 1)
	for range 3 {
		ticket := r.submit(newOrder(1, matcher.Buy, 1, px, 0))
		if err := ticket.Wait(time.Microsecond); err != ErrTimeout {
			t.Fatalf("got %v, want %v", err, ErrTimeout)
		}
		r.step(1)
		r.durable()
		ticket.Release()
		if r.desk.Out() != 0 {
			t.Fatalf("%d tickets out, want 0", r.desk.Out())
		}
	}
	// The answers left no token that would wake the next Wait.
	ticket := r.submit(newOrder(1, matcher.Buy, 1, px, 0))
	if err := ticket.Wait(time.Microsecond); err != ErrTimeout {
		t.Errorf("got %v, want %v", err, ErrTimeout)
	}
	r.step(1)
	r.durable()
	if err := ticket.Wait(time.Minute); err != nil { // and the holder can wait again
		t.Error(err)
	}
	ticket.Release()
}

func TestEventsOfAnEarlierUseMeanNothing(t *testing.T) {
	r := newRig(t, 16, 1)
	var events []matcher.Event
	r.watch = func(ev *matcher.Event) { events = append(events, *ev) }
	r.decide(newOrder(1, matcher.Buy, 1, px, 0)).Release()
	old := events[0]

	ticket := r.acquire(1)
	if r.desk.Observe(&old); r.desk.ClientID(old.Ref) != nil {
		t.Error("a client id for an earlier use")
	}
	*ticket.Command(0) = newOrder(2, matcher.Buy, 2, px, 0)
	must.OK(t, ticket.Submit())
	for _, ref := range []uint64{old.Ref, old.Ref | Foreign, old.Ref + 1<<commandBits, 1,
		1 << commandBits, Foreign, ^uint64(0), old.Ref&^(MaxBatch-1) | 5} {
		stray := old
		stray.Ref, stray.InputSeq = ref, 1000
		r.desk.Observe(&stray)
		r.desk.Durable(1000)
		if ticket.Ready() || r.desk.ClientID(ref) != nil {
			t.Fatalf("correlation %x was taken for ours", ref)
		}
	}
	mine := old
	// a place behind the last command
	mine.Ref = ticket.generation.Load()<<(commandBits+ticketBits) | 1
	r.desk.Observe(&mine)
	r.step(1)
	again := events[len(events)-1] // an event that comes twice counts once
	r.desk.Observe(&again)
	if queued := r.desk.done.head.Load() - r.desk.done.tail.Load(); queued != 1 {
		t.Errorf("%d tickets are queued, want 1", queued)
	}
	r.durable()
	if err := ticket.Wait(0); err != nil || ticket.Answer(0).Qty != 2 {
		t.Fatalf("got %v, %+v", err, ticket.Answer(0))
	}
	ticket.Release()
	if r.desk.done.head.Load() != r.desk.done.tail.Load() {
		t.Error("a ticket is still queued")
	}
}

func TestGenerationWraps(t *testing.T) {
	r := newRig(t, 16, 1)
	r.desk.tickets[0].generation.Store(1<<generationBits - 2)
	for i, want := range []uint64{1<<generationBits - 1, 1, 2} {
		var ref uint64
		r.watch = func(ev *matcher.Event) { ref = ev.Ref }
		r.decide(newOrder(1, matcher.Buy, 1, px, 0)).Release()
		if got := ref >> (commandBits + ticketBits); got != want || ref&Foreign != 0 || ref == 0 {
			t.Errorf("use %d: correlation %x has generation %d, want %d", i, ref, got, want)
		}
	}
}

func TestClientIDsReachTheRecorder(t *testing.T) {
	r := newRig(t, 16, 2)
	var got []string
	r.watch = func(ev *matcher.Event) {
		if ev.Flags&matcher.EventFirst != 0 {
			got = append(got, string(r.desk.ClientID(ev.Ref)))
		}
	}
	ticket := r.acquire(3)
	for i := range 3 {
		*ticket.Command(i) = newOrder(1, matcher.Buy, 1, px, 0)
	}
	long := make([]byte, MaxClientIDBytes)
	for i := range long {
		long[i] = 'x'
	}
	ticket.SetClientID(0, []byte("first"))
	ticket.SetClientID(2, long)
	if string(ticket.ClientID(0)) != "first" {
		t.Errorf("got %q", ticket.ClientID(0))
	}
	must.OK(t, ticket.Submit())
	r.step(3)
	r.durable()
	ticket.Release()
	r.decide(newOrder(1, matcher.Buy, 1, px, 0)).Release() // the ids of an earlier use are gone
	if want := []string{"first", "", string(long), ""}; fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if r.desk.ClientID(0) != nil {
		t.Error("a client id for no command")
	}
}

func TestCommandsThatNobodyWaitsForPass(t *testing.T) {
	r := newRig(t, 16, 1)
	lo, _ := r.in.ClaimN(1)
	*r.in.At(lo) = newOrder(9, matcher.Buy, 1, px, 0)
	r.in.Publish(lo, 1)
	ticket := r.submit(newOrder(1, matcher.Sell, 1, px, 0))
	r.step(2)
	r.durable()
	if err := ticket.Wait(0); err != nil || ticket.Answer(0).InputSeq != 2 ||
		len(ticket.Answer(0).Fills) != 1 {
		t.Errorf("got %v, %+v", err, ticket.Answer(0))
	}
}
