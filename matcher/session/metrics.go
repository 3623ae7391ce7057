package session

import (
	"sync/atomic"

	"posttrade/matcher"
	"posttrade/matcher/session/wire"
)

// statuses is how many statuses are counted one by one.
const statuses = int(wire.Aside) + 1

// counts are the server's counters. Their writers are its goroutines; each is read on its own, so
// two of them may differ by what happens in between.
type counts struct {
	begun    atomic.Uint64
	ended    [statuses]atomic.Uint64
	refusals [statuses]atomic.Uint64 // hellos
	commands atomic.Uint64
	answers  [wire.Codes]atomic.Uint64
	repeats  atomic.Uint64
	accepted atomic.Uint64
	reasons  [matcher.ReasonCount]atomic.Uint64
	copies   atomic.Uint64
	trades   atomic.Uint64
	tops     atomic.Uint64
	missed   atomic.Uint64
}

// answer counts an answer: by its code, and as a repetition, a refusal by reason, or an acceptance.
// The rest of an accepted order that was cancelled has a reason too and is no refusal.
func (c *counts) answer(r *wire.Record) {
	c.answers[r.Code].Add(1)
	switch {
	case r.Flags&wire.FlagDuplicate != 0:
		c.repeats.Add(1)
	case r.Reason != matcher.Accepted && r.Status != matcher.StatusCanceled:
		c.reasons[min(r.Reason, matcher.ReasonCount-1)].Add(1)
	case r.Code == wire.Decided:
		c.accepted.Add(1)
	}
}

// over counts the end of a session.
func (c *counts) over(s wire.Status) { c.ended[min(int(s), statuses-1)].Add(1) }

// Metrics counts what the server has done so far, since it was opened. Counters only rise; Orders
// and Feeds are of this moment.
type Metrics struct {
	Orders, Feeds int                // sessions that exist
	Begun         uint64             // sessions
	Ended         [statuses]uint64   // sessions, by wire.Status; OK: the client left
	Refused       [statuses]uint64   // hellos, by wire.Status
	Commands      uint64             // taken from command rings
	Answers       [wire.Codes]uint64 // by wire.Code
	Accepted      uint64             // commands that the engine accepted
	Duplicates    uint64             // answered with the first decision on their client id
	// By matcher.RiskReason: refused by the engine or the gate.
	Rejections [matcher.ReasonCount]uint64
	Copies     uint64 // drop copy records
	Trades     uint64 // market data records: executions
	Tops       uint64 // market data records: best levels
	Missed     uint64 // feed records lost because their readers were too slow
	Times      Times  // of all commands of all sessions
	Sleeps     uint64 // of the poller
	// sleeps that ran out although there was work: 0 between correct peers
	Rescues uint64
}

// Metrics reads the counters. Any goroutine. For the sum of the times it takes the lock of the list
// of sessions, which a session takes only at its beginning and its end.
func (s *Server) Metrics() Metrics {
	c := &s.counts
	m := Metrics{
		Begun: c.begun.Load(), Commands: c.commands.Load(), Copies: c.copies.Load(),
		Trades: c.trades.Load(), Tops: c.tops.Load(),
		Missed: c.missed.Load(), Sleeps: s.park.sleeps.Load(), Rescues: s.park.rescues.Load(),
	}
	s.mu.Lock()
	m.Orders, m.Feeds, m.Times = s.orders, s.readers, s.past
	for _, one := range s.live {
		times := one.times.load()
		m.Times.add(&times)
	}
	s.mu.Unlock()
	for i := range c.ended {
		m.Ended[i], m.Refused[i] = c.ended[i].Load(), c.refusals[i].Load()
	}
	m.Accepted, m.Duplicates = c.accepted.Load(), c.repeats.Load()
	for i := range c.reasons {
		m.Rejections[i] = c.reasons[i].Load()
	}
	for i := range c.answers {
		m.Answers[i] = c.answers[i].Load()
	}
	return m
}
