//perf:hot

package blotter

import (
	"sync/atomic"

	"posttrade/matcher"
	"posttrade/ring"
)

// Blotter keeps the last Capacity executed fills, oldest out first.
//
// Trade sequences are contiguous, so a fill's slot is arithmetic. One goroutine
// appends, any goroutine reads (page.go).
//
// Invariants: the slots hold the fills first..last of which the last capacity
// may be read; there is one slot more than that, the one written next.
type Blotter struct {
	slots []matcher.Fill
	slab  *ring.Slab[matcher.Fill] // keeps the mapping reachable

	last  ring.Sequence // writer: the appender. tradeSeq of the newest fill, 0 for none
	first atomic.Uint64 // writer: the appender, once. tradeSeq of the first fill ever appended
	lock  ring.SeqLock  // writer: the appender. Orders last before the slot that is written after it
	at    int           // writer: the appender. The slot written next
}

// Append adds the next fill. A fill that is there already is passed over, so a
// start may first load the journal's last fills and then replay commands; a
// hole is a bug and panics. Appender only.
func (b *Blotter) Append(fill *matcher.Fill) {
	last := uint64(b.last.Load())
	if fill.TradeSeq != last+1 {
		if fill.TradeSeq <= last {
			return
		}
		if last != 0 {
			holeInFills(fill.TradeSeq, last)
		}
	}
	if last == 0 {
		b.begin(fill.TradeSeq)
	}
	b.lock.Begin()
	ring.CopyIn(wordsOf(&b.slots[b.at]), wordsOf(fill))
	b.lock.End()
	b.last.Release(int64(fill.TradeSeq))
	if b.at++; b.at == len(b.slots) {
		b.at = 0
	}
}

// begin takes the first fill's sequence as the oldest there will ever be.
func (b *Blotter) begin(tradeSeq uint64) {
	b.at = int(tradeSeq % uint64(len(b.slots)))
	b.first.Store(tradeSeq)
}

// Observe appends the fill that an event states, if it states one. Appender only.
func (b *Blotter) Observe(ev *matcher.Event, _ []byte) {
	if ev.Kind == matcher.EventFilled {
		fill := ev.Fill()
		b.Append(&fill)
	}
}
