//perf:hot

package blotter

import (
	"sync/atomic"

	"posttrade/matcher"
	"posttrade/ring"
)

// Blotter keeps the last Capacity executed fills and drops the oldest first.
//
// Trade sequences are contiguous, so a fill's slot is arithmetic. One goroutine
// appends, any goroutine reads (page.go).
//
// Invariants: the slots hold fills up to last, and readers may read the last capacity of them, none
// before first. There is one slot more than the capacity: the slot that is written next. The zero
// Blotter is not usable: New makes one.
type Blotter struct {
	slots []matcher.Fill
	slab  *ring.Slab[matcher.Fill] // keeps the mapping reachable

	last  ring.Sequence // writer: the appender. tradeSeq of the newest fill, 0 for none
	first atomic.Uint64 // writer: the appender, once. tradeSeq of the first fill ever appended
	lock  ring.SeqLock  // writer: the appender. Orders last before the slot that is written after it
	at    int           // writer: the appender. The slot written next
}

// Append adds the next fill. It skips a fill that is there already, so a start may first load the
// journal's last fills and then replay commands. A hole is a bug and panics. The first fill may
// have any sequence. No allocation. Appender only.
func (b *Blotter) Append(fill *matcher.Fill) {
	if !b.expects(fill.TradeSeq) {
		return
	}
	b.lock.Begin()
	ring.CopyIn(wordsOf(&b.slots[b.at]), wordsOf(fill))
	b.lock.End()
	b.advance(fill.TradeSeq)
}

// expects reports whether a fill is the next one and not there already. It panics for a hole,
// because a slot is computed from the sequence.
func (b *Blotter) expects(tradeSeq uint64) bool {
	last := uint64(b.last.Load())
	switch {
	case tradeSeq <= last:
		return false
	case last == 0:
		b.begin(tradeSeq)
	case tradeSeq != last+1:
		holeInFills(tradeSeq, last)
	}
	return true
}

// advance publishes the fill that has been written and moves to the next slot. A reader that loads
// last afterwards finds the whole fill.
func (b *Blotter) advance(tradeSeq uint64) {
	b.last.Release(int64(tradeSeq))
	if b.at++; b.at == len(b.slots) {
		b.at = 0
	}
}

// begin takes the sequence of the first fill as the oldest that the blotter will ever hold.
func (b *Blotter) begin(tradeSeq uint64) {
	b.at = int(tradeSeq % uint64(len(b.slots)))
	b.first.Store(tradeSeq)
}

// Observe appends the fill that an event states, if it states one: it writes ev.Fill() directly
// into its slot. Appender only.
func (b *Blotter) Observe(ev *matcher.Event, _ []byte) {
	if ev.Kind != matcher.EventFilled || !b.expects(ev.TradeSeq) {
		return
	}
	fill := &b.slots[b.at]
	b.lock.Begin()
	store(&fill.TradeSeq, ev.TradeSeq)
	store(&fill.InputSeq, ev.InputSeq)
	store(&fill.TimeMillis, ev.TimeMillis)
	store(&fill.Px, ev.Px)
	store(&fill.OrderRef, ev.OrderRef)
	store(&fill.AccountID, ev.AccountID)
	store(&fill.SecurityID, ev.SecurityID)
	store(&fill.Qty, ev.Qty)
	store(&fill.CounterRef, ev.Detail().CounterRef)
	store(&fill.Side, ev.Side)
	store(&fill.Flags, ev.Flags&matcher.FillFlags)
	store(&fill.Era, ev.Era)
	store(&fill.CounterEra, ev.Detail().CounterEra)
	b.lock.End()
	b.advance(ev.TradeSeq)
}
