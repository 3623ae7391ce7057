// Package order is compiled by a test, which reads the stores in the order of the listing. Its
// functions are what the rooms above do: they fill a row and let others see it.
package order

import "posttrade/ring"

// Row is what readers see after the store that publishes it.
type Row [8]uint64

// Word publishes a row by a word beside it.
func Word(row *Row, word *uint64, v uint64) (before uint64) {
	before = row[7]
	row[0] = v
	row[2] = 1
	ring.StoreRelease(word, v)
	row[5] = v
	return before
}

// Sequence publishes a row by a sequence.
func Sequence(row *Row, s *ring.Sequence, v uint64) {
	row[0] = v
	row[2] = v
	s.Release(int64(v))
	row[5] = v
}

// Lock rewrites a row under its lock.
func Lock(row *Row, l *ring.SeqLock, v uint64) {
	l.Begin()
	row[0] = v
	row[2] = v
	l.End()
	row[5] = v
}
