package session

import (
	"context"
	"fmt"
	"runtime"
	"runtime/pprof"
	"slices"
	"sync/atomic"

	"posttrade/matcher"
	"posttrade/matcher/session/wire"
	"posttrade/ring"
)

// newTap makes the ring between recorder and feeder, of slots events (a power of two; else
// ErrOptions). Its memory is touched when the first feed is attached. It is unmapped when there is
// no reference to it any more, because the recorder may be inside Observe while the server closes.
func newTap(slots int) (*tap, error) {
	bytes := ring.FanoutBytes[matcher.Event](slots)
	if bytes == 0 {
		return nil, fmt.Errorf("session: open tap=%d: %w", slots, ErrOptions)
	}
	region, err := ring.Memfd("posttrade-tap", bytes)
	if err != nil {
		return nil, err
	}
	events, err := ring.NewFanout[matcher.Event](region, slots)
	if err != nil {
		region.Close()
		return nil, err
	}
	t := &tap{region: region, events: events, limit: events.Limit()}
	runtime.AddCleanup(t, func(r *ring.Region) { r.Close() }, region)
	return t, nil
}

// feeder is the goroutine that serves drop copies and market data. It writes the events that the
// recorder has observed, as soon as they are durable, to the sessions that may see them. It alone
// touches its fields, but for attached, knock and joined.
type feeder struct {
	server   *Server
	sessions []*session
	// Feed sessions; the recorder taps while there are any. Writers: join, the feeder.
	attached atomic.Int64
	knock    atomic.Bool   // sessions wait to join
	joined   chan struct{} // a token when a session waits; without sessions the feeder rests here
	waiter   ring.Waiter
	reader   *ring.Reader[matcher.Event]
	batch    []matcher.Event
	at, n    int   // batch[at:n] is not written to the feeds yet
	tops     *tops // nil: no session reads them
}

// feedBatch is how many events are taken off the tap at a time. Between two batches the feeder
// looks at its sessions, so it also bounds how long a session waits for its records.
const feedBatch = 128

// init makes the reader of the tap, which the server has made before.
func (f *feeder) init(s *Server) {
	f.joined = make(chan struct{}, 1)
	f.server, f.reader, f.batch = s, s.tap.events.Reader(), make([]matcher.Event, feedBatch)
}

// run serves until the server is stopped, and then ends every feed. Without sessions it waits on a
// channel and costs nothing; with sessions it idles on its waiter, which Wake notifies after the
// durable sequence has risen.
func (f *feeder) run() {
	strategy := ring.Adaptive
	if f.server.o.Idle == ring.Park {
		strategy = ring.Park
	}
	idler := ring.NewIdler(strategy, &f.waiter)
	pprof.Do(context.Background(), pprof.Labels("stage", "feeds"), func(context.Context) {
		for !f.server.stopping.Load() {
			switch {
			case f.pump():
				idler.Reset()
			case len(f.sessions) == 0:
				f.server.awaitEnd(f.joined)
			default:
				idler.IdleAtMost(f, f.patience())
			}
		}
	})
	f.takeIn()
	for _, one := range f.sessions {
		one.finish(wire.Shutdown)
	}
	f.sessions = nil
	f.attached.Store(0)
}

// Empty reports that the feeder has nothing to do: the last look before parking (ring.Idler). An
// event that is not durable yet is nothing to do: Wake comes when it is.
func (f *feeder) Empty() bool {
	if f.knock.Load() || f.server.stopping.Load() {
		return false
	}
	for _, one := range f.sessions {
		if one.leaving.Load() {
			return false
		}
	}
	durable := f.server.o.Durable()
	if f.tops != nil && f.tops.awaits(durable) {
		return false
	}
	if f.at < f.n {
		return f.batch[f.at].InputSeq > durable
	}
	return f.reader.Empty()
}

// patience is how long the feeder may sleep, in nanoseconds. A reader to which records are owed
// makes room for them without ringing, so the feeder looks again soon.
func (f *feeder) patience() int64 {
	for _, one := range f.sessions {
		if one.missed > 0 || one.owed > 0 && f.tops.exact {
			return ring.NapNs
		}
	}
	return sleepNs
}

// takeIn takes over the sessions that have joined.
func (f *feeder) takeIn() {
	if f.knock.Load() {
		f.knock.Store(false)
		come := f.server.joiners(wire.DropCopy)
		f.sessions = append(f.sessions, come...)
		f.keepTops()
		for _, one := range come {
			if one.readsTops() {
				one.owe(f.tops)
			}
		}
	}
}

// keepTops keeps best levels while a session reads them, and drops them otherwise.
func (f *feeder) keepTops() {
	switch wanted := slices.ContainsFunc(f.sessions, (*session).readsTops); {
	case !wanted:
		f.tops = nil
	case f.tops == nil:
		f.tops = newTops(f.server.o.Views, f.server.o.Seen)
	}
}

// pump writes the events that have become durable since the last time to the feeds. Without a
// session it drops them. It reports whether it did anything, for the idler.
func (f *feeder) pump() (worked bool) {
	f.takeIn()
	now := f.server.o.Clock()
	if f.at == f.n {
		f.read()
		f.takeIn() // a client that caused these events was welcomed before
	}
	durable, from := f.server.o.Durable(), f.at
	for f.at < f.n && (f.batch[f.at].InputSeq <= durable || len(f.sessions) == 0) {
		f.tell(&f.batch[f.at])
		f.at++
	}
	f.settleTops(durable)
	for _, one := range f.sessions {
		f.settle(one, now)
	}
	before := len(f.sessions)
	if f.sessions = withoutDone(f.sessions); len(f.sessions) != before {
		f.keepTops()
	}
	f.attached.Add(int64(len(f.sessions) - before))
	return f.at > from || len(f.sessions) != before
}

// read takes the next events off the tap. Events that were overwritten before are missing in every
// feed: each session counts them, and the best levels begin anew from the views.
func (f *feeder) read() {
	missed := f.reader.Missed()
	n, err := f.reader.Next(f.batch)
	f.at, f.n = 0, n
	if err != nil {
		for _, one := range f.sessions {
			one.missed += uint64(f.reader.Missed() - missed)
		}
		if f.tops != nil {
			f.tops.load()
		}
	}
}

// settle makes the written records visible to one session, and ends the session when it is over:
// its client left, its cursor is impossible, or its token has expired. A gap is told as soon as
// there is room, not only with the next record.
func (f *feeder) settle(one *session, nowMillis int64) {
	switch {
	case one.leaving.Load():
		one.finish(wire.OK)
		return
	case !one.out.Refresh():
		one.finish(wire.BadCursor)
		return
	case !one.current(nowMillis):
		one.finish(wire.TokenExpired)
		return
	}
	if one.missed > 0 && one.out.Room() > 0 {
		one.tellGap()
	}
	if one.owed > 0 {
		one.payTops(f.tops)
	}
	one.out.Flush()
}

// tell writes an event to every feed that it belongs to. A drop copy has every event of an entitled
// account. Trades and market data have one fill of each match: the incoming order's, a market
// trade's or a force fill's.
//
// The records are made once for all sessions.
func (f *feeder) tell(ev *matcher.Event) {
	if len(f.sessions) == 0 {
		return
	}
	copied, traded, ofAccount := copyOf(ev), tradeOf(ev), accounted(ev)
	public := ev.Kind == matcher.EventFilled &&
		ev.Flags&(matcher.EventAggressor|matcher.EventMarket|matcher.EventForced) != 0
	name := wire.Record{Kind: wire.Copy, InputSeq: ev.InputSeq, OrderRef: ev.OrderRef,
		AccountID: ev.AccountID,
		Era:       uint32(ev.Era)}
	for _, one := range f.sessions {
		switch {
		case one.role == wire.DropCopy && ofAccount && one.may(ev.AccountID):
			f.server.counts.copies.Add(1)
			one.feed(&copied)
			if ev.Kind == matcher.EventAccepted && f.named(ev, &name) {
				one.feed(&name)
			}
		case (one.role == wire.Trades || one.role == wire.Market) && public:
			f.server.counts.trades.Add(1)
			one.feed(&traded)
		}
	}
	if f.tops != nil {
		f.tellTops(ev)
	}
}

// accounted reports that an event is about an account's orders, trades or contracts. A control, a
// tick and a change of limits belong to no account, also when they are refused.
func accounted(ev *matcher.Event) bool {
	switch ev.Kind {
	case matcher.EventApplied, matcher.EventLimits:
		return false
	case matcher.EventRejected:
	default:
		return true
	}
	c := ev.Cmd() // a refusal is its command's first event
	if c.TemplateID != matcher.TemplateCommand {
		return false
	}
	switch c.Type {
	case matcher.OrderNew, matcher.OrderCancel, matcher.OrderReplace, matcher.TradeNew,
		matcher.SwapBook, matcher.SwaptionBook, matcher.ForceFill:
		return true
	}
	return false
}

// named fills name with the client id of a new order, if the order has one that the views still
// know.
func (f *feeder) named(ev *matcher.Event, name *wire.Record) bool {
	if name.Kind == wire.Name {
		return true
	}
	row, ok := f.server.o.Views.Order(ev.OrderRef)
	if !ok || row.InputSeq != ev.InputSeq || len(row.ClientID()) == 0 {
		return false
	}
	name.SetClientID(row.ClientID())
	return true
}

// feed writes a record, after a Gap for the records lost before it. When the reader has left no
// room, the record is lost: no goroutine waits for a feed's reader. The reader sees it after the
// next Flush.
func (one *session) feed(r *wire.Record) {
	if one.out.Room() < 2 && !one.out.Refresh() {
		return // settle ends the session
	}
	need := 1
	if one.missed > 0 {
		need = 2
	}
	if one.out.Room() < need {
		one.missed++
		return
	}
	if one.missed > 0 {
		one.tellGap()
	}
	one.out.Put(r)
}

// tellGap writes the Gap for the records lost so far; there must be room. A reader of best levels
// that has lost records gets all levels again, because a lost Top may have been the last of its
// security.
func (one *session) tellGap() {
	one.server.counts.missed.Add(one.missed)
	one.out.Put(&wire.Record{Kind: wire.Gap, Leaves: wire.Unstated, Missed: one.missed})
	one.missed = 0
	if one.readsTops() {
		one.owe(one.server.feeds.tops)
	}
}

// copyOf is an event as its account's own sessions see it, without the submitter and without the
// counterparty. Of a DUPLICATE it does not show the first decision, which lies in price and trade
// sequence.
func copyOf(ev *matcher.Event) wire.Record {
	r := wire.Record{
		Kind: wire.Copy, What: uint8(ev.Kind), Side: ev.Side, Status: ev.Status, Reason: ev.Reason,
		Flags:    ev.Flags &^ matcher.EventLate,
		InputSeq: ev.InputSeq, TimeMillis: ev.TimeMillis, Px: ev.Px, TradeSeq: ev.TradeSeq,
		OrderRef: ev.OrderRef, AccountID: ev.AccountID, SecurityID: ev.SecurityID, Qty: ev.Qty,
		Leaves: wire.Unstated,
		Era:    uint32(ev.Era),
	}
	if ev.Reason == matcher.Duplicate {
		r.Px, r.TradeSeq = 0, 0
	}
	if ev.Flags&matcher.EventFirst != 0 {
		r.LimitPx = ev.Cmd().LimitPx
		return r
	}
	d := ev.Detail()
	r.Leaves, r.LimitPx = d.Leaves, d.LimitPx
	if ev.Kind == matcher.EventFilled {
		r.PositionQty, r.AverageCost, r.LastPx, r.LastQty = d.PositionQty, d.AverageCost, ev.Px, ev.Qty
	}
	return r
}

// tradeOf is an execution as every session may see it: no account and no order. A match is written
// once, with the side of the incoming order.
func tradeOf(ev *matcher.Event) wire.Record {
	return wire.Record{
		Kind: wire.Trade, What: uint8(ev.Kind), Side: ev.Side,
		Flags:    ev.Flags & (matcher.EventAggressor | matcher.EventMarket | matcher.EventForced),
		InputSeq: ev.InputSeq, TimeMillis: ev.TimeMillis, Px: ev.Px, TradeSeq: ev.TradeSeq,
		SecurityID: ev.SecurityID, Qty: ev.Qty, Leaves: wire.Unstated,
	}
}
