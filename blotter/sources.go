package blotter

import (
	"sync/atomic"

	"posttrade/matcher"
)

// ControlSource is where control changes come from.
type ControlSource uint8

// The sources.
const (
	AccountSource  ControlSource = 0
	SecuritySource ControlSource = 1
	controlSources               = 2
)

// SourceMark is how far a control source has been sequenced: every change of it up to Watermark is
// among the commands. Mark is the value that the feed writes into the OrderRef of its control
// commands for the source's epoch; 0 before the first.
//
// With it the journal itself holds the position of a feed. So a start takes over new changes only,
// and keeps what an operator has set by hand since.
type SourceMark struct {
	Mark      uint32
	Watermark int64
}

// sourceMark is written by the observer. A reader loads the two words one by one: only the feed
// itself reads them, when none of its commands is on its way.
type sourceMark struct {
	mark      atomic.Uint32
	watermark atomic.Int64
}

// sequenced notes a control that came from a source; mark 0 is a control by hand, which says
// nothing about the source. When the epoch of a source changes, its watermark starts again. Within
// an epoch the watermark never falls, even when a record that the engine had not seen is applied
// late.
func (s *sourceMark) sequenced(mark uint32, version int64) {
	switch {
	case mark == 0:
	case mark != s.mark.Load():
		s.mark.Store(mark)
		s.watermark.Store(version)
	case version > s.watermark.Load():
		s.watermark.Store(version)
	}
}

// SourceMark returns how far a source has been sequenced. Any goroutine.
func (v *Views) SourceMark(s ControlSource) SourceMark {
	m := &v.sources[s]
	return SourceMark{Mark: m.mark.Load(), Watermark: m.watermark.Load()}
}

// sourceRestorer takes the marks of the sources, in order.
func (v *Views) sourceRestorer() func(*imageReader) error {
	next := AccountSource
	return func(r *imageReader) error {
		mark, padded, watermark := r.u32(), r.zeros(4), r.i64()
		if !padded || watermark < 0 || mark == 0 && watermark != 0 {
			return bad("source %d with mark %08x and watermark %d", next, mark, watermark)
		}
		v.sources[next].sequenced(mark, watermark)
		next++
		return nil
	}
}

// noteSource notes the mark of a control.
func (v *Views) noteSource(s ControlSource, cmd *matcher.Command) {
	v.sources[s].sequenced(cmd.OrderRef, cmd.PriceTicks)
}
