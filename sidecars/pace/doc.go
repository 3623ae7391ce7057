// Package pace says how long the loops beside the path of an order leave database and
// disk alone: between two pieces of work while there is more of it, and after a failure.
//
//	batch ok, more came meanwhile ──► Rest     a share of the work, at most a quarter of a second
//	failed                        ──► Backoff  100 ms, doubling to half a second
//
// What must hold: a loop whose database stood still goes on within a second of its
// return, however long that took. So a rest is a share of the work of a batch and never
// of the time for which it waited, and no pause grows beyond what a return may cost.
//
// The functions are of their arguments alone; a Backoff belongs to one goroutine.
package pace
