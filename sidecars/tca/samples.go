package tca

import (
	"fmt"
	"sort"

	"posttrade/matcher/int128"
)

// sample is a price and the millisecond at which it took force. sum is the area
// under the price, px x ms, from the security's first sample up to that moment.
//
// The sums are what makes an average cost two lookups instead of a walk: they are exact in 128 bits
// and never decrease.
type sample struct {
	millis int64
	px     int64
	sum    int128.Int
}

// until is the area up to millis. This sample must be the last one before millis.
func (s sample) until(millis int64) int128.Int {
	return s.sum.Add(int128.Scaled(s.px, span(s.millis, millis)))
}

// branch is an entry of a block above the leaves: a block one level further down, and its first
// millisecond.
type branch struct {
	millis int64
	number uint64
}

const (
	sampleWords = 4
	branchWords = 2

	leafSamples  = (blockBytes - headBytes) / (8 * sampleWords) // 127
	nodeBranches = (blockBytes - headBytes) / (8 * branchWords) // 254

	// maxLevel is more than 2^64 milliseconds can fill.
	maxLevel = 16
)

// history is the samples of one security, ascending by time, at most one per millisecond. It is a
// tree: its full blocks are in the file and its right edge is here.
//
// The recent entries are written as a block when there are enough and another one comes. So once
// there is a sample, the leaf's recent entries are never none. Its last sample is in memory; that
// is the only sample whose price may still change, and it is the price in force.
//
// Invariants: times ascend strictly from block to block and into recent; nodes[i].recent is never
// empty; a block above the leaves has nodeBranches entries.
type history struct {
	firstMillis int64    // of the first sample
	leaves      uint64   // full leaf blocks in the file
	recent      []sample // at most leafSamples
	nodes       []edge   // of the levels 1, 2, ...
}

// edge is the right edge of one level above the leaves.
type edge struct {
	blocks uint64   // full blocks of this level in the file
	recent []branch // at most nodeBranches, never empty
}

// samples is the price history of every security.
type samples struct {
	file *blockFile
	of   []history // by security id
}

// history returns a security's history. It makes an empty one when there is none yet.
//
// The pointer is valid until the next call with a higher id.
func (x *samples) history(security uint32) *history {
	if int(security) >= len(x.of) {
		x.of = append(x.of, make([]history, int(security)+1-len(x.of))...)
	}
	return &x.of[security]
}

// latest is the price in force by sequence; 0 for none yet.
func (x *samples) latest(security uint32) int64 {
	if int(security) >= len(x.of) {
		return 0
	}
	if recent := x.of[security].recent; len(recent) > 0 {
		return recent[len(recent)-1].px
	}
	return 0
}

// add appends a sample whose own time is millis.
//
// It writes a block about every leafSamples samples, and sometimes one for each level above.
func (x *samples) add(security uint32, millis, px int64) error {
	h := x.history(security)
	if len(h.recent) == 0 {
		h.firstMillis = millis
		h.recent = append(h.recent, sample{millis: millis, px: px})
		return nil
	}
	last := &h.recent[len(h.recent)-1]
	if millis <= last.millis {
		last.px = px // the one before was in force for no time at all
		return nil
	}
	next := sample{millis: millis, px: px, sum: last.until(millis)}
	if len(h.recent) == leafSamples {
		if err := x.writeLeaf(security, h); err != nil {
			return err
		}
	}
	h.recent = append(h.recent, next)
	return nil
}

// writeLeaf turns a leaf of recent samples into a block.
//
// An error leaves the history in between: the index is torn then, and is loaded again.
func (x *samples) writeLeaf(security uint32, h *history) error {
	b := &x.file.spare
	b.begin(0, len(h.recent), security, h.leaves*leafSamples)
	for i := range h.recent {
		s, at := &h.recent[i], i*sampleWords
		b.setWord(at, uint64(s.millis))
		b.setWord(at+1, uint64(s.px))
		b.setWord(at+2, uint64(s.sum.Hi))
		b.setWord(at+3, s.sum.Lo)
	}
	number, err := x.file.append()
	if err != nil {
		return err
	}
	up := branch{h.recent[0].millis, number}
	h.leaves++
	h.recent = h.recent[:0]
	return x.link(security, h, 1, up)
}

// link adds a finished block to the level above it.
//
// level counts from 1. It recurses as far as full levels reach.
func (x *samples) link(security uint32, h *history, level int, up branch) error {
	if level > len(h.nodes) {
		h.nodes = append(h.nodes, edge{})
	}
	e := &h.nodes[level-1]
	if len(e.recent) == nodeBranches {
		b := &x.file.spare
		b.begin(level, len(e.recent), security, e.blocks*nodeBranches)
		for i, child := range e.recent {
			b.setWord(i*branchWords, uint64(child.millis))
			b.setWord(i*branchWords+1, child.number)
		}
		number, err := x.file.append()
		if err != nil {
			return err
		}
		first := e.recent[0].millis
		e.blocks++
		e.recent = e.recent[:0]
		if err := x.link(security, h, level+1, branch{first, number}); err != nil {
			return err
		}
		e = &h.nodes[level-1] // link may have reallocated the levels
	}
	e.recent = append(e.recent, up)
	return nil
}

// at finds the last sample that took force at millis or before, and its number among the security's
// samples. found is false when the history begins later.
//
// Cost: a binary search per level; for samples that are not near the end of the history also one
// block per level, from the cache if it is there.
func (x *samples) at(security uint32, millis int64) (s sample, ordinal uint64,
	found bool, err error) {
	if int(security) >= len(x.of) {
		return sample{}, 0, false, nil
	}
	h := &x.of[security]
	if len(h.recent) == 0 || millis < h.firstMillis {
		return sample{}, 0, false, nil
	}
	if h.recent[0].millis <= millis {
		i := lastNotAfter(len(h.recent), millis, func(i int) int64 { return h.recent[i].millis })
		return h.recent[i], h.leaves*leafSamples + uint64(i), true, nil
	}
	for level := range h.nodes {
		recent := h.nodes[level].recent
		if recent[0].millis <= millis {
			i := lastNotAfter(len(recent), millis, func(i int) int64 { return recent[i].millis })
			s, ordinal, err = x.descend(security, level, recent[i].number, millis)
			return s, ordinal, err == nil, err
		}
	}
	return sample{}, 0, false, fmt.Errorf("tca: security=%d has no block for %d: %w", security,
		millis, ErrDamaged)
}

// descend finds the sample below a block of the given level.
//
// A block of another owner or level is ErrDamaged, although its checksum is right: the checkpoint
// names the wrong one.
func (x *samples) descend(security uint32, level int, number uint64,
	millis int64) (sample, uint64, error) {
	for {
		b, err := x.file.read(number)
		if err != nil {
			return sample{}, 0, err
		}
		words, most := branchWords, nodeBranches
		if level == 0 {
			words, most = sampleWords, leafSamples
		}
		if b.owner() != security || b.level() != level || b.entries() != most {
			return sample{}, 0, fmt.Errorf("tca: block=%d is of security=%d level=%d, want %d and %d: %w",
				number, b.owner(), b.level(), security, level, ErrDamaged)
		}
		i := lastNotAfter(most, millis, func(i int) int64 { return int64(b.word(i * words)) })
		at := i * words
		if level == 0 {
			return sample{
				millis: int64(b.word(at)), px: int64(b.word(at + 1)),
				sum: int128.Int{Hi: int64(b.word(at + 2)), Lo: b.word(at + 3)},
			}, b.ordinal() + uint64(i), nil
		}
		level, number = level-1, b.word(at+1)
	}
}

// lastNotAfter is the index of the last of n ascending times that is not after millis. The first
// time must not be after millis.
func lastNotAfter(n int, millis int64, time func(i int) int64) int {
	return sort.Search(n-1, func(i int) bool { return time(i+1) > millis })
}
