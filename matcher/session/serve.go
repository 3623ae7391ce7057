//perf:hot

package session

import (
	"posttrade/matcher"
	"posttrade/matcher/admission"
	"posttrade/matcher/desk"
	"posttrade/matcher/session/wire"
)

// serve gives one session its turn: answers out, then commands in. over reports that the session
// has ended, with status. The goroutine that has the sessions calls it.
//
// Answers come first, because they free places for commands. It reads the client's cursors once
// each; a cursor that no correct client writes ends the session with BadCursor.
func (p *poller) serve(one *session) (worked bool, status wire.Status, over bool) {
	if one.leaving.Load() {
		return true, wire.OK, true
	}
	answers, commands := one.answerable(), !p.server.stopping.Load() && one.takeable()
	if !answers && !commands {
		return false, wire.BadCursor, one.commands.Corrupt()
	}
	if one.cramped() && !one.out.Refresh() {
		return true, wire.BadCursor, true
	}
	if answers {
		worked = p.deliver(one)
	}
	if commands {
		p.now = p.server.o.Clock()
		if !one.current(p.now) {
			return true, wire.TokenExpired, true
		}
		worked = p.take(one) || worked
		if one.answerable() { // the hand-in itself decided and answered
			p.deliver(one)
		}
	}
	if one.out.Pending() {
		one.out.Flush()
	}
	// The client's line is in the client's core. It is fetched now, while the client reads its
	// answers.
	return worked, wire.BadCursor, !one.out.Refresh() || one.commands.Corrupt()
}

// cramped reports that the known room may not be enough for a turn.
func (one *session) cramped() bool { return one.spare() < takeAtMost }

// spare is how many more commands the known room allows. Each command on its way has a place for
// its answer already, and so has each answer that waits. Fills have no reserved place; they wait.
func (one *session) spare() int { return one.out.Room() - one.owing() }

// owing is the number of commands that have been taken and are not answered yet.
func (one *session) owing() int { return one.inFlight + len(one.waiting) }

// answerFew is how many answers a borrower writes for a poller that sleeps.
const answerFew = 64

// answer writes the answers that are there, if they are few, in place of the poller, which sleeps
// and has lent its sessions. left reports that work remains for the poller: more answers, commands,
// or a session whose doorbell the poller does not wait on.
func (p *poller) answer() (left bool) {
	few := answerFew
	left = p.crowded() // an answer here may free the share for which another session waits
	for _, one := range p.sessions {
		if !one.answerable() {
			continue
		}
		if few -= one.owing(); few < 0 || one.cramped() && !one.out.Refresh() {
			return true
		}
		p.deliver(one)
		one.out.Flush()
		left = left || one.unarmed || one.answerable() || one.takeable() || !one.roomy()
	}
	return left
}

// answerable reports that the oldest ticket has its answers and that there may be room for them, or
// that an answer that waits on its own can be written.
func (one *session) answerable() bool {
	if one.told() {
		return one.roomy()
	}
	return one.tickets > 0 && one.server.reached(one.held.until) &&
		one.flights[one.head].ticket.Ready() && one.roomy()
}

// takeable reports that there is a command to take and a place for it.
func (one *session) takeable() bool {
	if one.full() {
		return false
	}
	lo, hi := one.commands.Ready(1)
	return lo != hi && one.spacious()
}

// full reports that no command can be taken before another has its whole answer: the quota is used
// up, too many answers wait, the fills of an answer wait for room, or the session's share of
// tickets and commands is used up.
func (one *session) full() bool {
	return one.owing() >= len(one.flights) || len(one.waiting) == takeAtMost || one.filled >= 0 ||
		!one.server.poll.admits(one)
}

// spacious reports that there is room for the answer to one more command, or that the client's
// cursor is impossible, so that serve runs and finds it.
func (one *session) spacious() bool {
	return one.spare() > 0 || !one.out.Refresh() || one.spare() > 0
}

// roomy reports that a record can be written, or that the client's cursor is impossible, so that
// serve runs and finds it.
func (one *session) roomy() bool {
	return one.out.Room() > 0 || !one.out.Refresh() || one.out.Room() > 0
}

// take copies commands out of the client's ring, gives their slots back, and decides for each
// whether it is handed in. It reads shared memory only once: what it has judged cannot change
// afterwards.
//
// Those that are handed in go to the desk in one ticket, side by side. The others are answered at
// once, or later from the views. It reports whether there were any.
func (p *poller) take(one *session) bool {
	n := min(takeAtMost-len(one.waiting), len(one.flights)-one.owing(), one.spare(),
		p.commandsFor(one))
	if n <= 0 {
		return false
	}
	lo, hi := one.commands.Ready(n)
	if lo == hi {
		return false
	}
	n = int(hi - lo)
	for i := range n {
		one.requests[i] = one.ring[(lo+int64(i))&int64(len(one.ring)-1)]
	}
	one.commands.Release(hi)
	one.alarms = 0
	p.server.counts.commands.Add(uint64(n))
	begun := p.server.nanos()

	for i := range n {
		one.outcomes[i] = p.judge(one, i)
	}
	kept := 0
	for i := range n {
		if one.outcomes[i] == wire.Decided {
			one.outcomes[i] = codes[p.server.o.Decide(&one.asks[i])]
		}
		if one.outcomes[i] == wire.Decided {
			kept++
		}
	}
	if kept > 0 {
		p.submit(one, n, kept, begun)
	}
	down := 0
	for i := range n {
		switch one.outcomes[i] {
		case wire.Decided:
			continue
		case shown:
			p.show(one, &one.asks[i])
		default:
			p.turnDown(one, &one.requests[i], one.outcomes[i], one.asks[i].Reason)
		}
		down++
	}
	if down > 0 {
		one.times.count(p.server.nanos()-begun, down)
	}
	return true
}

// submit hands in the kept ones of n requests, in one ticket. When there is no room, it turns them
// down; it does not wait, because other sessions have their turn. begun is when they were seen, of
// Server.nanos.
func (p *poller) submit(one *session, n, kept int, begun int64) {
	t, err := p.server.o.Desk.Pool(desk.Sessions).Acquire(kept)
	if err != nil {
		one.refuseKept(n, codeOf(err))
		return
	}
	at := 0
	for i := range n {
		if one.outcomes[i] != wire.Decided {
			continue
		}
		r := &one.requests[i]
		one.numbers[(one.first+one.inFlight+at)%len(one.numbers)] = r.Command.InputSeq
		*t.Command(at) = r.Command
		t.SetClientID(at, r.ClientID[:clientIDLen(r)])
		at++
	}
	if err := t.Submit(); err != nil {
		t.Release()
		one.refuseKept(n, codeOf(err))
		return
	}
	one.flights[one.tail] = flight{ticket: t, n: kept, begun: begun}
	one.tail = one.after(one.tail)
	p.away(one, 1, kept)
}

// refuseKept turns down the requests that were to be handed in.
func (one *session) refuseKept(n int, code wire.Code) {
	for i := range n {
		if one.outcomes[i] == wire.Decided {
			one.outcomes[i] = code
		}
	}
}

// codeOf is the answer code of a command that did not reach the engine. The desk returns its errors
// unwrapped, so they are compared directly.
func codeOf(err error) wire.Code {
	switch err {
	case desk.ErrBusy, desk.ErrFull:
		return wire.Busy
	case desk.ErrRefused:
		return wire.NotReady
	}
	return wire.Unavailable
}

// turnDown answers a command that was not handed in, with its own terms. There is room: take has
// counted a place for every command.
func (p *poller) turnDown(one *session, r *wire.Request, code wire.Code,
	reason matcher.RiskReason) {
	c := &r.Command
	answer := wire.Record{
		Kind: wire.Answer, Code: code, What: uint8(c.Type), Side: c.Side, Status: matcher.StatusRejected,
		Correlation: c.InputSeq, TimeMillis: p.now, Px: c.LimitPx, AccountID: c.AccountID,
		SecurityID: c.SecurityID, Qty: c.Qty, Leaves: wire.Unstated,
	}
	if code == wire.Refused {
		answer.Reason = reason
	}
	p.server.counts.answer(&answer)
	one.out.Put(&answer)
}

// deliver writes the durable answers, oldest first, as far as there is room, and releases the
// tickets whose answers are all written. A ticket that is not ready holds up those behind it,
// because answers come in the order of the commands.
func (p *poller) deliver(one *session) (worked bool) {
	now := p.server.nanos()
	worked = p.tellWaiting(one)
	for one.tickets > 0 {
		f := &one.flights[one.head]
		if !f.ticket.Ready() {
			return worked
		}
		for one.next < f.n {
			if !p.tell(one, f.ticket) {
				return worked
			}
			worked = true
		}
		one.times.count(now-f.begun, f.n)
		f.ticket.Release()
		*f = flight{}
		one.head = one.after(one.head)
		p.away(one, -1, 0)
		one.next = 0
	}
	return worked
}

// tell writes the answer to the next command, then its fills. It returns false when there is no
// room, or when the answer shows a state that is not durable yet; the next call continues there.
func (p *poller) tell(one *session, t *desk.Ticket) bool {
	if one.out.Room() == 0 {
		return false
	}
	a := t.Answer(one.next)
	if one.filled < 0 {
		if !p.tellAnswer(one, t, a) {
			return false
		}
		one.filled = 0
	}
	for a != nil && one.filled < len(a.Fills) {
		if one.out.Room() == 0 {
			return false
		}
		one.putFill(a, &a.Fills[one.filled], uint8(t.Command(one.next).Type))
		one.filled++
	}
	one.filled = -1
	one.next++
	one.first++
	if one.first == len(one.numbers) {
		one.first = 0
	}
	p.away(one, 0, -1)
	return true
}

// tellAnswer writes the Answer of one command. Without an answer of the desk, the outcome is
// unknown or the command was certainly not sequenced. It returns false while the state that the
// answer shows is not durable; the record is kept in held and not made again.
func (p *poller) tellAnswer(one *session, t *desk.Ticket, a *desk.Answer) bool {
	l := &one.held
	if l.until == 0 {
		c := t.Command(one.next)
		l.record = wire.Record{Kind: wire.Answer, What: uint8(c.Type),
			Correlation: one.numbers[one.first]}
		switch {
		case a == nil:
			p.lost(&l.record, c, t)
		case !a.Refused():
			p.fresh(&l.record, c, a)
		default:
			p.settle(l, &admission.Request{Command: c, ClientID: t.ClientID(one.next)}, a)
		}
	}
	if l.until != 0 && !p.server.reached(l.until) {
		return false
	}
	p.tellDeferred(one, l)
	l.until = 0
	return true
}

// settle fills in the answer to a command that the engine refused. An answer that shows what the
// views have must wait until that is durable; a plain refusal is durable already.
func (p *poller) settle(l *deferredAnswer, q *admission.Request, a *desk.Answer) {
	switch v := p.server.o.Settle(q, a); {
	case v == admission.Refused:
		p.fresh(&l.record, q.Command, a)
		return
	case v == admission.Ended && !a.Duplicate():
		p.fresh(&l.record, q.Command, a)
		l.record.Code = wire.Conflict
	default:
		if p.repeat(&l.record, q); v == admission.Differs {
			l.record.InputSeq = a.InputSeq
		}
	}
	l.until = p.server.o.Seen()
}

// fresh fills in the engine's decision. A refused replace leaves the order as it is, so its leaves
// are not stated.
func (p *poller) fresh(r *wire.Record, c *matcher.Command, a *desk.Answer) {
	r.Side, r.Status, r.Reason = a.Side, a.Status, a.Reason
	r.InputSeq, r.TimeMillis, r.Px, r.LastPx, r.TradeSeq = a.InputSeq, a.TimeMillis, a.Px, a.LastPx,
		a.TradeSeq
	r.OrderRef, r.AccountID, r.SecurityID, r.Qty = a.OrderRef, a.AccountID, a.SecurityID, a.Qty
	r.Era = uint32(a.Era)
	r.Leaves, r.LastQty, r.Fills = a.Leaves, a.LastQty, uint32(len(a.Fills))
	if a.Rests {
		r.Flags |= wire.FlagRests
	}
	if c.Type == matcher.TradeNew {
		r.Flags |= wire.FlagMarket
	}
	if !a.Refused() {
		return
	}
	r.Leaves = wire.Unstated
	if r.Status == matcher.StatusNew {
		r.Status = matcher.StatusRejected
	}
}

// asked fills in the terms of a command that has no decision of its own.
func asked(r *wire.Record, c *matcher.Command) {
	r.Side, r.AccountID, r.SecurityID, r.Qty, r.Px = c.Side, c.AccountID, c.SecurityID, c.Qty,
		c.LimitPx
	r.TimeMillis, r.Leaves, r.Status = c.EventTimeMillis, wire.Unstated, matcher.StatusRejected
}

// repeat fills in the first decision on a key, with the order as it is now; or Conflict, when the
// key is known with other terms or the order has ended.
func (p *poller) repeat(r *wire.Record, q *admission.Request) {
	c, key := q.Command, &q.First
	asked(r, c)
	if q.Verdict != admission.Repeated {
		r.Code = wire.Conflict
		if q.Verdict != admission.Ended {
			return
		}
		if r.Reason = matcher.Invalid; key.InputSeq == 0 {
			return // nothing was sequenced for it
		}
	}
	r.Flags |= wire.FlagDuplicate
	r.InputSeq, r.Reason = key.InputSeq, key.Reason
	if key.Kind == matcher.KeyOrder {
		r.OrderRef, r.Era = uint32(key.Ref), uint32(key.Ref>>32)
	}
	if key.Reason != matcher.Accepted {
		return
	}
	switch key.Kind {
	case matcher.KeyTrade: // the views do not have its execution
		r.Flags |= wire.FlagMarket
		r.Status, r.Leaves = matcher.StatusFilled, 0
		return
	case matcher.KeyContract:
		r.Status = matcher.StatusNew
		return
	}
	row, held := p.server.o.Views.Numbered(key.Ref)
	if !held {
		r.Status = wire.StatusUnstated
		return
	}
	r.Status, r.Leaves, r.Qty, r.Px = row.Status, row.Leaves, row.Qty, row.LimitPx
	r.LastPx, r.LastQty, r.TimeMillis = row.LastPx, row.LastQty, row.UpdatedMillis
	r.Reason = row.Reason // of an accepted order: why its rest was cancelled
	if row.Open() {
		r.Flags |= wire.FlagRests
	}
}

// lost fills in the outcome of a command after its ticket came back without answers: NotReady when
// it was certainly not sequenced, else Unknown. Wait returns at once here.
func (p *poller) lost(r *wire.Record, c *matcher.Command, t *desk.Ticket) {
	r.Code = wire.Unknown
	if t.Wait(0) == desk.ErrRefused {
		r.Code = wire.NotReady
	}
	asked(r, c)
}

// putFill writes one execution of a command's own order.
func (one *session) putFill(a *desk.Answer, f *desk.AnswerFill, what uint8) {
	flags := wire.FlagAggressor
	if what == uint8(matcher.TradeNew) {
		flags = wire.FlagMarket
	}
	one.out.Put(&wire.Record{
		Kind: wire.Fill, What: what, Side: a.Side, Status: a.Status, Flags: flags,
		Correlation: one.numbers[one.first], InputSeq: a.InputSeq, TimeMillis: a.TimeMillis,
		Px: f.Px, TradeSeq: f.TradeSeq, OrderRef: a.OrderRef, AccountID: a.AccountID,
		SecurityID: a.SecurityID,
		Era:        uint32(a.Era), Qty: f.Qty, Leaves: wire.Unstated,
	})
}
