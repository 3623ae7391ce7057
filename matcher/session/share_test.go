package session

import (
	"testing"

	"posttrade/matcher"
	"posttrade/matcher/desk"
	"posttrade/matcher/session/client"
	"posttrade/matcher/session/wire"
	"posttrade/ring/must"
)

// shared gives a rig a desk with tickets of each kind.
func shared(s desk.Shares) rigOptions {
	return func(r *rig) {
		d := must.Get(desk.NewShared(r.in, s))(r.t)
		r.desk, r.o.Desk = d, d
	}
}

// flood fills the command ring of a session that does not read, and returns how many commands fit.
func flood(t *testing.T, c *client.Client, cmd matcher.Command) (sent int) {
	t.Helper()
	for ; ; sent++ {
		one := cmd
		if err := c.Send(uint64(sent), &one, ""); err == client.ErrFull {
			c.Flush()
			return sent
		} else if err != nil {
			t.Fatal(err)
		}
	}
}

// Of a session that does not read its answers, no more commands are taken than its event ring has
// room for. When the answers are durable, the session holds no ticket, and all other sessions
// continue.
func TestUnreadAnswersHoldUpNobody(t *testing.T) {
	const sessions, slots = 24, 16
	r := newRig(t)
	r.hold()
	deaf := make([]*client.Client, sessions)
	sent := make([]int, sessions)
	for i := range deaf {
		deaf[i] = r.dial("", client.Options{CommandSlots: 64, EventSlots: slots})
		sent[i] = flood(t, deaf[i], order())
	}
	until(t, "each has its ring's worth taken",
		func() bool { return r.recorded.Load() == sessions*slots })
	calm := r.dial("", client.Options{})
	none := with(order(), func(c *matcher.Command) { c.Qty = 0 })
	for i := range uint64(100) { // at least as many turns, in which more commands could be taken
		if got := send(t, calm, i, none, ""); got.Code != wire.Malformed {
			t.Fatalf("calm: %+v", got)
		}
	}
	if got := r.recorded.Load(); got != sessions*slots {
		t.Errorf("%d commands were taken of %d sessions with %d slots", got, sessions, slots)
	}
	if ticket, err := r.desk.Acquire(1); err != nil {
		t.Errorf("another caller of the desk: %v", err)
	} else {
		ticket.Release()
	}
	r.letGo()
	until(t, "no ticket is out", func() bool { return r.desk.Out() == 0 })
	if got := send(t, calm, 200, order(), ""); got.Code != wire.Decided {
		t.Errorf("calm: %+v", got)
	}
	for i, c := range deaf { // a client that reads later misses no record
		for k := range sent[i] {
			if got := next(t, c); got.Correlation != uint64(k) || got.Code != wire.Decided {
				t.Fatalf("session %d, answer %d: %+v", i, k, got)
			}
		}
	}
}

// Fills that find no room hold their tickets. These tickets come from the session's own share and
// from the common half, never from another session's own share.
func TestHeldTicketsLeaveTheOthersTheirShare(t *testing.T) {
	r := newRig(t, func(r *rig) { r.o.MaxSessions = 4 },
		shared(desk.Shares{Requests: 1, Sessions: 32, Sidecars: 1}))
	calm, greedy := r.dial("", client.Options{}), r.dial("", client.Options{EventSlots: 1024})
	calmly := func(what string) {
		t.Helper()
		for i := range uint64(40) {
			if got := send(t, calm, i, order(), ""); got.Code != wire.Decided {
				t.Fatalf("%s: %+v", what, got)
			}
		}
	}
	r.hold()
	pool := r.desk.Pool(desk.Sessions)
	for i := range uint64(64) { // one by one, with a ticket for each
		cmd := order()
		must.OK(t, greedy.Send(i, &cmd, ""))
		greedy.Flush()
		until(t, "taken, or left in the ring", func() bool { return pool.Out() == min(int(i)+1, 20) })
	}
	if got := pool.Out(); got != 20 { // 4 of its own share and 16 of the common half
		t.Errorf("%d tickets are out", got)
	}
	one := order()
	must.OK(t, calm.Send(900, &one, ""))
	calm.Flush()
	until(t, "the calm one has a ticket", func() bool { return pool.Out() == 21 })
	r.letGo()
	if got := next(t, calm); got.Correlation != 900 || got.Code != wire.Decided {
		t.Errorf("calm: %+v", got)
	}
	for i := range uint64(64) {
		if got := next(t, greedy); got.Correlation != i || got.Code != wire.Decided {
			t.Fatalf("greedy, answer %d: %+v", i, got)
		}
	}
	calmly("afterwards")
	until(t, "no ticket is out", func() bool { return pool.Out() == 0 })
	r.server.Close()
	if got := r.server.poll.shares.common; got != (load{}) {
		t.Errorf("the common share is %+v", got)
	}
}

// The share of a client that dies with its answers unread is released.
func TestDeadClientsGiveTheirShareBack(t *testing.T) {
	r := newRig(t, func(r *rig) { r.o.MaxSessions = 2 }, shared(desk.Shares{Sessions: 8}))
	pool := r.desk.Pool(desk.Sessions)
	calm := r.dial("", client.Options{})
	for range 5 {
		r.hold()
		dying := r.dial("", client.Options{CommandSlots: 64, EventSlots: 16})
		flood(t, dying, order())
		until(t, "it has commands on their way", func() bool { return pool.Out() > 0 })
		dying.Close()
		until(t, "it is gone", func() bool { return r.server.Metrics().Orders == 1 })
		r.letGo()
		until(t, "its tickets are back", func() bool { return pool.Out() == 0 })
		if got := send(t, calm, 1, order(), ""); got.Code != wire.Decided {
			t.Fatalf("calm: %+v", got)
		}
	}
	r.server.Close()
	if got := r.server.poll.shares.common; got != (load{}) {
		t.Errorf("the common share is %+v", got)
	}
}

// Sessions may use half of the input ring, divided like the tickets.
func TestCommandsForASession(t *testing.T) {
	p := &poller{shares: shares{own: load{4, 8}, most: load{16, 32}}}
	one, two := &session{}, &session{}
	for _, step := range []struct {
		of                *session
		tickets, commands int
		admitted          bool
		left              int
		crowded           bool
	}{
		{one, 1, 8, true, 32, false},
		{one, 3, 30, true, 2, false},
		{two, 1, 7, true, 3, false},
		{two, 1, 3, false, 0, true},
		{one, 0, -1, true, 1, false},
		{one, 16, 0, false, 1, true},
		{two, 0, 0, true, 1, true},
		{one, -20, -37, true, 38, false},
		{two, -2, -10, true, 40, false},
	} {
		p.away(step.of, step.tickets, step.commands)
		if got, left := p.admits(step.of),
			p.commandsFor(step.of); got != step.admitted || left != step.left ||
			p.crowded() != step.crowded {
			t.Fatalf("after %+v: admitted %v, %d left, crowded %v", step, got, left, p.crowded())
		}
	}
	if p.shares.common != (load{}) {
		t.Errorf("the common share is %+v", p.shares.common)
	}
}
