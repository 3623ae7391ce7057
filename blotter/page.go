package blotter

import (
	"fmt"
	"sort"

	"posttrade/matcher"
	"posttrade/ring"
)

// DefaultCapacity is how many fills a blotter keeps by default.
const DefaultCapacity = 500_000

// New returns an empty blotter for the last capacity fills; 0 or less means DefaultCapacity. The
// error is that of mapping memory, 64 bytes a fill, which becomes resident with use.
func New(capacity int) (*Blotter, error) {
	if capacity <= 0 {
		capacity = DefaultCapacity
	}
	slab, err := ring.NewSlab[matcher.Fill](capacity + 1)
	if err != nil {
		return nil, fmt.Errorf("blotter: new capacity=%d: %w", capacity, err)
	}
	ring.LargePages(slab.Slice())
	return &Blotter{slots: slab.Slice(), slab: slab}, nil
}

// Close unmaps the memory. No call may be running or follow.
func (b *Blotter) Close() error {
	b.slots = nil
	return b.slab.Close()
}

// Capacity is how many fills are kept.
func (b *Blotter) Capacity() int { return len(b.slots) - 1 }

// LastSeq is the tradeSeq of the newest fill, 0 for none.
func (b *Blotter) LastSeq() uint64 { return uint64(b.last.Load()) }

// span is the range of trade sequences that may be read now. It is empty, with oldest == newest+1,
// before the first fill. It loads newest first: the range may be smaller by the time it is used,
// and copyOut finds that out.
func (b *Blotter) span() (oldest, newest uint64) {
	newest = b.LastSeq()
	if newest == 0 {
		return 1, 0
	}
	oldest = b.first.Load()
	if kept := uint64(b.Capacity()); newest-oldest >= kept {
		oldest = newest - kept + 1
	}
	return oldest, newest
}

// ByTradeSeq returns one fill, false if the blotter does not hold it (any more). Any goroutine; one
// copy, no lock.
func (b *Blotter) ByTradeSeq(tradeSeq uint64) (fill matcher.Fill, ok bool) {
	if oldest, newest := b.span(); tradeSeq < oldest || tradeSeq > newest {
		return fill, false
	}
	return b.copyOut(tradeSeq)
}

// copyOut copies a fill that was in the span a moment ago, and reports that the writer has not
// overwritten it.
func (b *Blotter) copyOut(tradeSeq uint64) (fill matcher.Fill, ok bool) {
	stamp, quiet := b.lock.Read()
	ring.CopyOut(wordsOf(&fill), wordsOf(&b.slots[tradeSeq%uint64(len(b.slots))]))
	if b.lock.Retry(stamp) || !quiet {
		// The writer has written meanwhile. A fill that it has begun to overwrite is outside the span
		// now.
		if oldest, _ := b.span(); tradeSeq < oldest {
			return matcher.Fill{}, false
		}
	}
	if fill.TradeSeq != tradeSeq { // the writer overwrote the slot before the copy began
		return matcher.Fill{}, false
	}
	return fill, true
}

// Page appends to dst up to limit fills with a tradeSeq strictly greater than sinceSeq, ascending
// and without a hole among them. nextSince is the sinceSeq of the page after it, and evicted the
// number of dropped fills: when it is above sinceSeq, the caller has missed the difference.
func (b *Blotter) Page(sinceSeq uint64, limit int, dst []matcher.Fill) (
	items []matcher.Fill, nextSince, evicted uint64,
) {
	oldest, newest := b.span()
	items, nextSince, evicted = dst, sinceSeq, oldest-1
	for len(items)-len(dst) < limit && nextSince < newest {
		fill, ok := b.ByTradeSeq(max(nextSince+1, oldest))
		if ok {
			items, nextSince = append(items, fill), fill.TradeSeq
			continue
		}
		if len(items) > len(dst) {
			break // the writer has lapped the reader: a further fill would leave a hole
		}
		oldest, newest = b.span()
		evicted = oldest - 1
	}
	return items, nextSince, evicted
}

// ByInputSeq appends to dst the fills of one command, ascending. They are not whole when some of
// them, or all, may have been dropped. A search in halves, because fills ascend by command too. Any
// goroutine.
func (b *Blotter) ByInputSeq(inputSeq uint64,
	dst []matcher.Fill) (fills []matcher.Fill, whole bool) {
	oldest, newest := b.span()
	// A fill that is evicted during the search is older than any that is found.
	n := sort.Search(int(newest+1-oldest), func(i int) bool {
		fill, ok := b.ByTradeSeq(oldest + uint64(i))
		return ok && fill.InputSeq >= inputSeq
	})
	for tradeSeq := oldest + uint64(n); tradeSeq <= newest; tradeSeq++ {
		fill, ok := b.ByTradeSeq(tradeSeq)
		if ok && fill.InputSeq > inputSeq {
			break
		}
		if ok && fill.InputSeq == inputSeq {
			dst = append(dst, fill)
		}
	}
	oldest, newest = b.span() // fills may have been dropped during the search
	if oldest == 1 || oldest > newest {
		return dst, true // nothing has been dropped
	}
	fill, ok := b.ByTradeSeq(oldest)
	return dst, ok && fill.InputSeq < inputSeq
}
