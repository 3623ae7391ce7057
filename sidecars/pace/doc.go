// Package pace says how long the loops outside of the order path leave database and disk alone:
// between two batches while there is more work, and after a failure.
//
//	batch ok, more came meanwhile ──► Rest     a share of the work, at most a quarter of a second
//	failed                        ──► Backoff  100 ms, doubling to half a second
//
// What must hold: after a standstill of its database, however long, a loop continues within a
// second of the database's return. So a rest is a share of the work of a batch and never of the
// time for which it waited, and no pause grows beyond that bound.
//
// Rest and Backoff depend on their arguments only; a Backoff belongs to one goroutine. Sleep and
// Behind wait: for a time, and for another loop.
package pace
