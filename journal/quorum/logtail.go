package quorum

import (
	"sync"

	"github.com/hashicorp/raft"
)

// logTail holds the newest entries of the log, so that replication and the state machine read them
// from memory. It is bounded by number and by bytes of data.
//
// It keeps the entry by value, with the data it points to: the caller that stores an entry must not
// change its data from then on. Entries are contiguous: those of first..last, at entries[index %
// len].
type logTail struct {
	mu      sync.RWMutex
	entries []raft.Log
	// The indexes of what is held; empty when first > last. Writers: the goroutines that store and
	// delete, one at a time.
	first, last uint64
	// Of data and extensions that are held, and the most of it. The newest entry stays whatever its
	// size.
	bytes  int
	budget int
}

// newLogTail returns a tail of at most so many entries, and bytes of data.
func newLogTail(entries, budget int) *logTail {
	return &logTail{entries: make([]raft.Log, entries), first: 1, budget: budget}
}

// Get copies the entry at index into l, if the tail holds it. The copy shares the data. Any
// goroutine.
func (t *logTail) Get(index uint64, l *raft.Log) bool {
	t.mu.RLock()
	defer t.mu.RUnlock()
	if index < t.first || index > t.last {
		return false
	}
	*l = t.entries[index%uint64(len(t.entries))]
	return true
}

// Append adds entries. Entries that do not follow the last one replace the tail's content.
func (t *logTail) Append(logs ...*raft.Log) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, l := range logs {
		if l.Index != t.last+1 || t.first > t.last {
			t.reset(l.Index)
		}
		if l.Index-t.first == uint64(len(t.entries)) {
			t.dropFirst()
		}
		*t.at(l.Index) = *l
		t.last = l.Index
		t.bytes += len(l.Data) + len(l.Extensions)
		for t.bytes > t.budget && t.first < t.last {
			t.dropFirst()
		}
	}
}

// Delete removes the entries lo..hi, which are one end of the log or all of it.
func (t *logTail) Delete(lo, hi uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for t.first <= t.last && lo <= t.first && t.first <= hi {
		t.dropFirst()
	}
	for t.first <= t.last && lo <= t.last && t.last <= hi {
		t.drop(t.last)
		t.last--
	}
}

func (t *logTail) at(index uint64) *raft.Log { return &t.entries[index%uint64(len(t.entries))] }

func (t *logTail) dropFirst() {
	t.drop(t.first)
	t.first++
}

// drop forgets an entry, so that its data can be freed.
func (t *logTail) drop(index uint64) {
	l := t.at(index)
	t.bytes -= len(l.Data) + len(l.Extensions)
	*l = raft.Log{}
}

// reset empties the tail and makes next the index that it continues with.
func (t *logTail) reset(next uint64) {
	clear(t.entries)
	t.first, t.last, t.bytes = next, next-1, 0
}
