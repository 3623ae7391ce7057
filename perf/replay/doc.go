// Package replay sends a recorded or a made-up order flow to a venue and reports throughput and
// latency. A venue is a server behind its HTTP door, or an engine in this process. With a flow of
// LOBSTER files it can compare ten levels of the book with the published ones after every event.
//
//	orderflow ─► driver ─► workers, one a connection ─► venue
//	                          └─► latency, outcomes, the table of order ids
//
// Steps about one order go through one worker, so that they stay in order. The driver owns its
// workers; each worker owns its venue.
package replay
