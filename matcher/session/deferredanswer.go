//perf:hot

package session

import (
	"posttrade/matcher"
	"posttrade/matcher/admission"
	"posttrade/matcher/session/wire"
)

// deferredAnswer is an answer that shows the state of the views. It is written when that state is
// durable: a client never reads what a power cut could take back. The record is made at once, so it
// shows one moment.
type deferredAnswer struct {
	record wire.Record
	until  uint64 // the durable sequence from which it may be written; 0: any
}

// show answers a command that is not handed in from the views: the first decision on its key, or
// that its order can no longer change. Its answer does not wait for those of earlier commands. It
// waits until what the views show at this moment is durable.
//
// There is a place in waiting: take bounds what it takes by it.
func (p *poller) show(one *session, q *admission.Request) {
	at := len(one.waiting)
	one.waiting = one.waiting[:at+1]
	l := &one.waiting[at]
	c := q.Command
	l.record = wire.Record{Kind: wire.Answer, What: uint8(c.Type), Correlation: c.InputSeq}
	p.repeat(&l.record, q)
	l.until = p.server.o.Seen()
}

// reached reports that nothing is left to wait for: the sequence is durable, or never will be
// because the journal has failed.
func (s *Server) reached(until uint64) bool { return s.o.Durable() >= until || s.o.Failed() != nil }

// told reports that the oldest answer that waits on its own can be written, if there is room.
func (one *session) told() bool {
	return len(one.waiting) > 0 && one.server.reached(one.waiting[0].until)
}

// tellWaiting writes the answers of waiting that can be written, in their order and as far as there
// is room. It reports whether it wrote any.
func (p *poller) tellWaiting(one *session) bool {
	n := 0
	for n < len(one.waiting) && one.out.Room() > 0 && p.server.reached(one.waiting[n].until) {
		p.tellDeferred(one, &one.waiting[n])
		n++
	}
	if n > 0 {
		one.waiting = one.waiting[:copy(one.waiting, one.waiting[n:])]
	}
	return n > 0
}

// tellDeferred writes an answer that has waited. If the journal failed meanwhile, it shows nothing.
func (p *poller) tellDeferred(one *session, l *deferredAnswer) {
	r := &l.record
	if l.until != 0 && p.server.o.Durable() < l.until {
		*r = wire.Record{Kind: wire.Answer, Code: wire.Unavailable, What: r.What, Side: r.Side,
			Status: matcher.StatusRejected, Correlation: r.Correlation, TimeMillis: r.TimeMillis,
			AccountID: r.AccountID, SecurityID: r.SecurityID, Qty: r.Qty, Leaves: wire.Unstated}
	}
	p.server.counts.answer(r)
	one.out.Put(r)
}
