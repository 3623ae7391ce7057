package recon

// gap is a range of entries without a row. All of them were first seen absent at the same time.
// They are pending until counted is set.
//
// A gap is split when a part of it gets rows, and joined with a neighbour of the same time and
// state.
type gap struct {
	span
	firstSeen int64 // epoch millis
	counted   bool
}

// exceptions are the books' record of a range of entries: all entries that it does not list are
// matched. Both lists are ascending, the gaps disjoint.
type exceptions struct {
	gaps       []gap
	mismatches []mismatch
}

// change is the effect of one judgement on the tallies and on the counters.
//
// The tallies may move in both directions; the counters only grow.
type change struct {
	missing, pending, mismatches       int64  // by how much the tallies move
	nowMatched, nowMissing, nowDiffers uint64 // how many entries entered the class
}

func (c *change) add(d change) {
	c.missing += d.missing
	c.pending += d.pending
	c.mismatches += d.mismatches
	c.nowMatched += d.nowMatched
	c.nowMissing += d.nowMissing
	c.nowDiffers += d.nowDiffers
}

// clock is the time of a judgement, in epoch millis, and the grace of an entry.
//
// One clock is used for a whole sweep, so that all its findings have one time.
type clock struct{ now, grace int64 }

// judge turns findings into the exceptions that replace old, and returns the change. old holds
// every gap that overlaps or touches the span of the findings, and every mismatch inside it; swept
// is the last entry that had been swept before. The result depends on the arguments only.
//
// The result replaces what the books say of the span, whichever walk has seen it.
func judge(old exceptions, f *findings, swept uint64, c clock) (exceptions, change) {
	out := exceptions{
		gaps:       judgeGaps(old.gaps, f, swept, c),
		mismatches: judgeMismatches(old.mismatches, f.differs, c.now),
	}
	return out, compareBooks(old, out, f, swept)
}

// judgeGaps combines the absent runs with the old gaps: an entry that was absent before keeps its
// first-seen time and counts after the grace. A time that is yet to come is that of a clock that
// was ahead: it becomes the present, and the entry counts one grace later. Entries outside the span
// stay as they are.
//
// The first loop keeps the parts of old gaps below the span, the second joins old gaps with absent
// runs, the third keeps the parts above it.
func judgeGaps(old []gap, f *findings, swept uint64, c clock) []gap {
	var out gapList
	for _, g := range old {
		if g.lo < f.lo {
			g.hi = min(g.hi, f.lo-1)
			out.add(g)
		}
	}
	rest := old
	for _, a := range f.absent {
		for len(rest) > 0 && rest[0].hi < a.lo {
			rest = rest[1:]
		}
		next := a.lo
		for _, g := range rest {
			if g.lo > a.hi {
				break
			}
			if g.lo > next {
				out.addNew(span{next, g.lo - 1}, swept, c)
			}
			g.lo, g.hi = max(g.lo, next), min(g.hi, a.hi)
			g.firstSeen = min(g.firstSeen, c.now)
			g.counted = g.counted || c.now-g.firstSeen >= c.grace
			out.add(g)
			next = g.hi + 1
		}
		if next <= a.hi {
			out.addNew(span{next, a.hi}, swept, c)
		}
	}
	for _, g := range old {
		if g.hi > f.hi {
			g.lo = max(g.lo, f.hi+1)
			out.add(g)
		}
	}
	return out
}

// gapList is gaps in ascending order. Neighbours with equal time and state are joined.
type gapList []gap

func (l *gapList) add(g gap) {
	if n := len(*l); n > 0 {
		if last := &(*l)[n-1]; last.hi+1 == g.lo && last.firstSeen == g.firstSeen &&
			last.counted == g.counted {
			last.hi = g.hi
			return
		}
	}
	*l = append(*l, g)
}

// addNew adds entries that were not known to be absent. Swept entries among them had a row before:
// their absence is not the projection's delay and counts at once.
func (l *gapList) addNew(s span, swept uint64, c clock) {
	if s.lo <= swept {
		l.add(gap{span{s.lo, min(s.hi, swept)}, c.now, true})
	}
	if s.hi > swept {
		l.add(gap{span{max(s.lo, swept+1), s.hi}, c.now, c.grace <= 0})
	}
}

// judgeMismatches sets the times of the entries that differ. A known one keeps its first time, and
// also its last time while row and fields stay as they were, as far as they are not yet to come.
func judgeMismatches(old, differs []mismatch, now int64) []mismatch {
	out := make([]mismatch, 0, len(differs))
	for _, m := range differs {
		for len(old) > 0 && old[0].seq < m.seq {
			old = old[1:]
		}
		m.firstSeen, m.lastMillis = now, now
		if len(old) > 0 && old[0].seq == m.seq {
			m.firstSeen = min(old[0].firstSeen, now)
			if old[0].fields == m.fields && old[0].row == m.row {
				m.lastMillis = min(old[0].lastMillis, now)
			}
		}
		out = append(out, m)
	}
	return out
}

// compareBooks returns how the change from old to out moves tallies and counters.
//
// old and out are compared as sets of entries, because a gap that was split or joined has not
// changed any entry. An entry that stays in a class is not counted again.
func compareBooks(old, out exceptions, f *findings, swept uint64) (c change) {
	was, is := countGaps(old.gaps), countGaps(out.gaps)
	c.missing = int64(total(is.counted)) - int64(total(was.counted))
	c.pending = int64(total(is.pending)) - int64(total(was.pending))
	c.mismatches = int64(len(out.mismatches)) - int64(len(old.mismatches))

	wasDiffering, isDiffering := points(old.mismatches), points(out.mismatches)
	c.nowMissing = total(is.counted) - overlap(is.counted, was.counted)
	c.nowDiffers = total(isDiffering) - overlap(isDiffering, wasDiffering)

	// Entries that were not matched before, and are no exception now, have become matched.
	open := append(clip(old.gaps, f.span), wasDiffering...)
	if f.hi > swept {
		open = append(open, span{max(f.lo, swept+1), f.hi})
	}
	stays := append(append([]span{}, f.absent...), isDiffering...)
	c.nowMatched = total(open) - overlap(ascending(open), ascending(stays))
	return c
}

// gapSpans are the ranges of gaps, separated by whether they count.
type gapSpans struct{ counted, pending []span }

func countGaps(gaps []gap) (s gapSpans) {
	for _, g := range gaps {
		if g.counted {
			s.counted = append(s.counted, g.span)
		} else {
			s.pending = append(s.pending, g.span)
		}
	}
	return s
}

// clip returns the parts of the gaps that are inside s.
func clip(gaps []gap, s span) (out []span) {
	for _, g := range gaps {
		if lo, hi := max(g.lo, s.lo), min(g.hi, s.hi); lo <= hi {
			out = append(out, span{lo, hi})
		}
	}
	return out
}

// points returns the entries of mismatches as spans of one.
func points(mismatches []mismatch) []span {
	out := make([]span, 0, len(mismatches))
	for _, m := range mismatches {
		out = append(out, span{m.seq, m.seq})
	}
	return out
}
