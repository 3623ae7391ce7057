// Package perf measures the engine against its floors and its peers in one run
// and writes the figures where the next run can be compared with them.
//
//	posttrade perf ──► Run ──► rows (ring, book, decision, gate, codec, journal, end-to-end, http, ...)
//	                    │         each row: our figure, its comparator in the same run, the target as a ratio
//	                    └──► perf/results/<commit>.<cpu>.txt   Go benchmark format, benchstat reads it
//
// Absolute figures drift on shared machines, so a target is a ratio taken within
// one run; the core-to-core line round trip and the load stand beside it. A row
// never fails the run because it is slow: it says what was missed. It fails the
// run when what it measured was wrong (an order lost, a count that is off).
//
// Rows run one after the other on the caller's goroutine; what they start they
// stop. Nothing here is on the path of an order.
package perf
