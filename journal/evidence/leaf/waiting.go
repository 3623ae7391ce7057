package leaf

import (
	"crypto/sha256"

	"posttrade/journal/evidence/twin"
	"posttrade/journal/evidence/verify"
)

// waiting are records that have not been hashed: two hashes at a time take little more than one.
// Their salts are hashed with them. It is small enough for the nearest cache.
type waiting struct {
	records [32]unhashed
	n       int // of records
	salts   [32]pair
	pairs   int // of salts
}

// unhashed is a record whose hash is due.
type unhashed struct {
	record   []byte // in message, behind its salt
	inputSeq uint64
	number   uint32 // within the command
	index    int    // in the leaf
	salts    int    // the pair that its salt belongs to
	shown    bool   // Seen is told
	message  [3 * 64]byte
}

// recordAt is where a record stands in its message.
const recordAt = 1 + verify.SaltBytes

// pair is the salts of two records of a command.
type pair struct {
	inputSeq uint64
	number   uint32
	both     verify.Hash
}

// room returns the place for a record, at the end of what waits.
func (l *Builder) room(inputSeq uint64, number uint32, index int) *unhashed {
	w := &l.wait
	if w.n == len(w.records) {
		l.settle()
	}
	u := &w.records[w.n]
	w.n++
	u.record = u.message[recordAt:recordAt]
	u.inputSeq, u.number, u.index = inputSeq, number, index
	u.salts, u.shown = w.pairOf(inputSeq, number/2), l.Seen != nil
	return u
}

// pairOf is the index of a pair of salts. Those of a command stand together.
func (w *waiting) pairOf(inputSeq uint64, number uint32) int {
	for i := w.pairs - 1; i >= 0 && w.salts[i].inputSeq == inputSeq; i-- {
		if w.salts[i].number == number {
			return i
		}
	}
	p := &w.salts[w.pairs]
	p.inputSeq, p.number = inputSeq, number
	w.pairs++
	return w.pairs - 1
}

// settle hashes what waits.
func (l *Builder) settle() {
	w := &l.wait
	w.hashSalts(&l.Key)
	// alone is, for each number of blocks, the record that waits for another one.
	var alone [4]*unhashed
	for i := range w.records[:w.n] {
		u := &w.records[i]
		salt := verify.Half(&w.salts[u.salts].both, u.number)
		verify.AppendSalted(u.message[:0], salt)
		if u.shown {
			l.Seen(u.inputSeq, uint64(u.index), salt, u.record)
		}
		other := &alone[twin.Blocks(recordAt+len(u.record))]
		if *other == nil {
			*other = u
			continue
		}
		twin.Sum((*other).salted(), u.salted(), &l.hashes[(*other).index], &l.hashes[u.index])
		*other = nil
	}
	for _, u := range alone {
		if u != nil {
			l.hashes[u.index] = sha256.Sum256(u.salted())
		}
	}
	w.n, w.pairs = 0, 0
}

// salted is the message of which the record's hash is made.
func (u *unhashed) salted() []byte { return u.message[:recordAt+len(u.record)] }

// hashSalts makes the salts of what waits. An odd pair is hashed twice.
func (w *waiting) hashSalts(key *verify.Key) {
	var p, q [64]byte
	for i := 0; i < w.pairs; i += 2 {
		one, other := &w.salts[i], &w.salts[min(i+1, w.pairs-1)]
		twin.Sum(key.AppendSalts(p[:0], one.inputSeq, one.number),
			key.AppendSalts(q[:0], other.inputSeq, other.number), &one.both, &other.both)
	}
}
