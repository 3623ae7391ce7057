package quorum

import (
	"slices"
	"testing"
)

// TestDoubtEndsWithCertainty covers every fate of entries that were in the log when their leader
// lost its leadership.
func TestDoubtEndsWithCertainty(t *testing.T) {
	type applied struct{ own, index, term uint64 }
	entry := func(number, index, term uint64) uncertainEntry {
		return uncertainEntry{number, index, term, []uint64{1000 + number}}
	}
	for _, x := range []struct {
		name      string
		before    []applied        // when the entry becomes uncertain
		uncertain []uncertainEntry // in order
		after     []applied
		refused   []uint64 // numbers
		open      int
	}{
		{name: "nothing is known", uncertain: []uncertainEntry{entry(1, 10, 1)}, open: 1},
		{name: "agreed after all", uncertain: []uncertainEntry{entry(1, 10, 1)},
			after: []applied{{1, 10, 1}}},
		{name: "agreed before it was doubted", before: []applied{{1, 10, 1}},
			uncertain: []uncertainEntry{entry(1, 10, 1)}},
		{name: "another in its place", uncertain: []uncertainEntry{entry(1, 10, 1)},
			after:   []applied{{0, 10, 2}},
			refused: []uint64{1}},
		{name: "another further on", uncertain: []uncertainEntry{entry(1, 10, 1)},
			after:   []applied{{0, 12, 2}},
			refused: []uint64{1}},
		{name: "a later term in a shorter log", uncertain: []uncertainEntry{entry(1, 10, 1)},
			after: []applied{{0, 8, 2}}, refused: []uint64{1}},
		{name: "an entry before it", uncertain: []uncertainEntry{entry(2, 10, 1)},
			after: []applied{{1, 9, 1}},
			open:  1},
		{name: "the first agreed, the second not",
			uncertain: []uncertainEntry{entry(1, 10, 1), entry(2, 11, 1)},
			after:     []applied{{1, 10, 1}, {0, 11, 2}}, refused: []uint64{2}},
		{name: "a later one of its own", uncertain: []uncertainEntry{entry(1, 10, 1)},
			after:   []applied{{2, 9, 1}},
			refused: []uint64{1}},
		{name: "a later one, before it was doubted", before: []applied{{3, 9, 1}},
			uncertain: []uncertainEntry{entry(1, 10, 1), entry(2, 11, 1)}, refused: []uint64{1, 2}},
		{name: "the place is taken when it is doubted", before: []applied{{0, 10, 1}},
			uncertain: []uncertainEntry{entry(1, 10, 1)}, refused: []uint64{1}},
	} {
		t.Run(x.name, func(t *testing.T) {
			var d uncertainEntries
			var refused []uint64
			note := func(refs []uint64) {
				for _, ref := range refs {
					refused = append(refused, ref-1000)
				}
			}
			for _, a := range x.before {
				note(d.applied(a.own, a.index, a.term))
			}
			for _, e := range x.uncertain {
				note(d.add(e))
			}
			for _, a := range x.after {
				note(d.applied(a.own, a.index, a.term))
			}
			if !slices.Equal(refused, x.refused) || len(d.open) != x.open {
				t.Errorf("refused %v, %d open, want %v and %d", refused, len(d.open), x.refused, x.open)
			}
		})
	}
}

// uncertainEntries drops what it does not need any more.
func TestDoubtDoesNotGrow(t *testing.T) {
	var d uncertainEntries
	for number := uint64(2); number < 10_000; number += 2 {
		d.applied(number, number, 1) // the odd ones were lost
		d.add(uncertainEntry{number: number - 1, index: number - 1, term: 1})
	}
	if len(d.gaps) > 2 || len(d.open) != 0 {
		t.Errorf("%d gaps and %d open entries are kept", len(d.gaps), len(d.open))
	}
}
