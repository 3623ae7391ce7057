package acts

import (
	"slices"

	"posttrade/matcher"
)

// span is a stretch of input sequences, both ends included.
type span struct{ from, to uint64 }

// longest is the number of commands that an act can take, its note included. A walk that begins so
// many commands before a sequence has met the note of every act from there on.
const longest = matcher.MaxNoteParts + matcher.MaxNoteActs

const (
	// minQuiet is the shortest stretch that is worth remembering: reading a shorter one again costs
	// less than keeping it. maxQuiet bounds the memory, at 16 bytes each.
	minQuiet = 1 << 14
	maxQuiet = 1 << 16
)

// quietAt returns the first stretch that ends at or after a sequence; its to is 0 for none.
func (r *Reader) quietAt(seq uint64) span {
	r.mu.Lock()
	defer r.mu.Unlock()
	if i := r.place(seq); i < len(r.quiet) {
		return r.quiet[i]
	}
	return span{}
}

// place is the index of the first stretch that ends at or after a sequence.
func (r *Reader) place(seq uint64) int {
	i, _ := slices.BinarySearchFunc(r.quiet, seq, func(s span, seq uint64) int {
		if s.to < seq {
			return -1
		}
		return 1
	})
	return i
}

// remember adds a stretch without an act, and joins it with those that it touches. When maxQuiet
// are known, one that touches none is forgotten: it is read again.
func (r *Reader) remember(s span) {
	if s.to < s.from || s.to-s.from < minQuiet {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	i := r.place(max(s.from, 2) - 1)
	end := i
	for end < len(r.quiet) && r.quiet[end].from <= s.to+1 {
		s.from, s.to = min(s.from, r.quiet[end].from), max(s.to, r.quiet[end].to)
		end++
	}
	if end == i && len(r.quiet) >= maxQuiet {
		return
	}
	r.quiet = slices.Replace(r.quiet, i, end, s)
}
