package quorum

import (
	"math/rand/v2"
	"testing"

	"github.com/hashicorp/raft"
)

// TestLogTailIsASuffixOfTheLog compares the tail with a map of the whole log.
func TestLogTailIsASuffixOfTheLog(t *testing.T) {
	const entries, budget = 16, 200
	for seed := range uint64(50) {
		r := rand.New(rand.NewPCG(seed, 1))
		tail, log := newLogTail(entries, budget), map[uint64]raft.Log{}
		first, last := uint64(1), uint64(0)
		for step := range 400 {
			more := r.IntN(5)
			switch r.IntN(8) {
			case 0: // the oldest
				n := r.Uint64N(last - first + 2)
				tail.Delete(first, first+n-1)
				first += n
			case 1: // the newest
				n := r.Uint64N(min(last-first+2, 6))
				tail.Delete(last-n+1, last)
				last -= n
			case 2: // a gap, and what comes behind it
				last += 1 + r.Uint64N(5)
				first, more = last+1, 1+more
			}
			for range more {
				last++
				l := raft.Log{Index: last, Term: r.Uint64(), Data: make([]byte, r.IntN(80))}
				log[last] = l
				if tail.Append(&l); !tail.Get(last, new(raft.Log)) {
					t.Fatalf("seed %d step %d: entry %d is not there right after it was stored", seed, step, last)
				}
			}
			checkTail(t, tail, log, first, last)
			if t.Failed() {
				t.Fatalf("seed %d step %d", seed, step)
			}
		}
	}
}

func checkTail(t *testing.T, tail *logTail, log map[uint64]raft.Log, first, last uint64) {
	bytes, missed := 0, false
	for i := last; i >= first && i > 0; i-- {
		var l raft.Log
		if !tail.Get(i, &l) {
			missed = true
			continue
		}
		if want := log[i]; missed || l.Index != i || l.Term != want.Term ||
			len(l.Data) != len(want.Data) {
			t.Errorf("entry %d: %+v, want %+v, missed a newer one: %v", i, l, want, missed)
		}
		bytes += len(l.Data)
	}
	var l raft.Log
	if tail.Get(first-1, &l) || tail.Get(last+1, &l) {
		t.Errorf("the tail has %d, the log is %d..%d", l.Index, first, last)
	}
	if bytes != tail.bytes || bytes > tail.budget && tail.first < tail.last {
		t.Errorf("%d bytes, counted %d, budget %d", bytes, tail.bytes, tail.budget)
	}
}
