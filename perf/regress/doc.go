// Package regress decides whether a build is slower than another one, from
// figures that both gave in turns on the same machine.
//
//	base A ─► sample ┐
//	head B ─► sample ├─► Row ─► Decide ─► Verdict: same, faster, slower, more allocations, unsure
//	base A ─► sample ┘     ▲                 │
//	                       └──── Judge ◄─────┘  unsure: more rounds; a regression: all of it once more
//
// A sample is what one process found out: the least time an operation took and
// how often it allocated. The base runs twice as often as the head, so that it can
// be compared with itself: how far parts of the base are apart is what this machine
// makes up by itself in this run. Only what is clearly outside that is a change.
//
// Allocations are counted, not timed: one more in a thousand operations is one more.
// Three quarters of the base's samples must be below the least of the head's, so that
// what the runtime allocates on the side cannot fail a build.
//
// Nothing here runs, measures or prints anything; the same samples give the same
// verdict.
package regress
