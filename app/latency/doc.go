// Package latency records how long things took and shows the distribution,
// never a mean.
//
//	goroutine ─► Recorder ─┐
//	goroutine ─► Recorder ─┼─► Merge ─► Summary ─► table, .hgrm file
//	goroutine ─► Recorder ─┘
//
// A Recorder belongs to one goroutine and allocates nothing when it records. A duration measured
// against a schedule counts from the time when the work was due, so that a stall is charged to
// every request that waited in it. That is the caller's task: Record takes a duration.
package latency
