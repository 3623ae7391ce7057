// Package regress decides whether a build is slower than another one, from figures that both
// produced in turns on the same machine.
//
//	base A -> sample +
//	head B -> sample +-> Row -> Decide -> Verdict: same, faster, slower, more allocations, unsure
//	base A -> sample +     ^                 |
//	                       +---- Judge <-----+  unsure: more rounds; a regression: all once more
//
// A sample is the result of one process: the least time of an operation and its number of
// allocations. The base runs twice as often as the head, so that it can be compared with itself.
// The difference between parts of the base is the noise of this machine in this run. Only a
// difference clearly beyond that noise is a change.
//
// Allocations are counted, not timed: one more in a thousand operations is one more. Three quarters
// of the base's samples must be below the least of the head's, so that incidental allocations of
// the runtime cannot fail a build.
//
// Nothing here runs, measures or prints anything; the same samples give the same verdict.
package regress
