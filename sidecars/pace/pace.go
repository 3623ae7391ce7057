package pace

import (
	"cmp"
	"time"
)

const (
	// LongestRest bounds every Rest.
	LongestRest = 250 * time.Millisecond

	// The pause after a failure doubles from the first to the second. The second pause and an attempt
	// together stay below a second: a database that comes back is noticed within one.
	FirstPause = 100 * time.Millisecond
	LastPause  = 500 * time.Millisecond
)

// The cost of a batch on a slow machine, its commit included. Time beyond that was spent waiting:
// for a lock, for a server that stands still, for a network.
const (
	batchWork = 5 * time.Millisecond
	rowWork   = 15 * time.Microsecond
)

// Work returns how much of the time that a batch of rows took was work on them. The CPU time of the
// thread does not tell: the work may be that of a disk or of a server, for which the rest is meant,
// and a database that stands still uses as little of the thread.
func Work(took time.Duration, rows int) time.Duration {
	return min(max(took, 0), batchWork+time.Duration(max(rows, 0))*rowWork)
}

// Rest returns how long to leave the disk alone after a batch of rows: share times its work. A
// share of 0 or less means no rest.
func Rest(share int, took time.Duration, rows int) time.Duration {
	return min(time.Duration(max(share, 0))*Work(took, rows), LongestRest)
}

// Backoff computes the pause after each of several failures in a row. The zero Backoff has seen no
// failure.
//
// It holds no timer: the caller waits, and may end the wait early.
type Backoff struct {
	// Most is the longest pause, for an attempt that costs much and does not wait for a database; 0 =
	// LastPause.
	Most time.Duration
	// Least is the shortest pause, which Most does not bound; 0 = FirstPause.
	Least time.Duration

	last time.Duration
}

// Next counts a failure and returns the pause after it.
func (b *Backoff) Next() time.Duration {
	least := cmp.Or(b.Least, FirstPause)
	b.last = max(min(2*b.last, cmp.Or(b.Most, LastPause)), least)
	return b.last
}

// Failing reports whether the last attempt failed.
func (b *Backoff) Failing() bool { return b.last != 0 }

// Shorten makes the next pause a first one again, because what failed may be back.
func (b *Backoff) Shorten() { b.last = min(b.last, cmp.Or(b.Least, FirstPause)) }

// Reset ends the row of failures.
func (b *Backoff) Reset() { b.last = 0 }
