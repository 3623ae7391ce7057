// Package latency records how long things took and shows the distribution,
// never a mean.
//
//	goroutine ─► Recorder ─┐
//	goroutine ─► Recorder ─┼─► Merge ─► Summary ─► table, .hgrm file
//	goroutine ─► Recorder ─┘
//
// A Recorder belongs to one goroutine and allocates nothing when it records.
// What is measured against a schedule counts from when it should have started,
// so that a stall is charged to everyone who waited in it; that is the caller's
// business: Record takes a duration.
package latency
