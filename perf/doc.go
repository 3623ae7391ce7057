// Package perf measures the engine against its floors and its peers in one run
// and writes the figures where the next run can be compared with them.
//
//	posttrade perf ──► Measure ──► rows (jitter, ring, book, realistic, decision, journal, end-to-end, curve, ...)
//	                     │            each row: our figure, its comparator in the same run, the target as a ratio
//	                     ├──► perf/results/<commit>.<cpu>.txt    Go benchmark format, benchstat reads it
//	                     └──► perf/results/<commit>.<cpu>/       .hgrm and .hlog of every point of a curve
//	posttrade perf gate ──► Gate ──► base and head in turns as short processes (Sample) ──► regress: exit 0 or 1
//	posttrade perf report ──► WriteReport ──► one page of plots over results files
//
// Absolute figures drift on shared machines, so a target is a ratio taken within
// one run; the core-to-core line round trip and the load stand beside it. A row
// never fails the run because it is slow: it says what was missed. It fails the
// run when what it measured was wrong (an order lost, a count that is off). All
// that the performance table asks for (verdict.go) is in a full run's results: with
// a verdict and what stands beside it, or with why there is none.
//
// The gate is the other way round: it fails a build that is slower than another one, on
// processor time of small pieces that do not depend on a second core, and on nothing
// that its own noise could explain.
//
// Rows run one after the other on the caller's goroutine; what they start they
// stop, and before each the machine settles: memory goes back, pages go to the disk. How
// long a read of memory takes then, and what the hypervisor took away during it, stands
// beside every row: neighbours on the machine make more of a difference than rows do.
// What is compared with something else takes turns with it in short rounds, and the
// median of the rounds' ratios counts. Nothing here is on the path of an order.
package perf
