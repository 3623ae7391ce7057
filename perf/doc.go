// Package perf measures the engine against its floors and its peers in one run
// and writes the figures where the next run can be compared with them.
//
//	posttrade perf --> Measure --> rows (jitter, ring, book, decision, journal, curve, ...)
//	                     |         each row: our figure, its comparator in the same run,
//	                     |         the target as a ratio
//	                     +--> perf/results/<commit>.<cpu>.txt  Go benchmark format, for benchstat
//	                     +--> perf/results/<commit>.<cpu>/     .hgrm and .hlog of each point
//	posttrade perf gate --> Gate --> base and head in turns as short processes (Sample)
//	                                 --> regress: exit 0 or 1
//	posttrade perf report --> WriteReport --> one page of plots over results files
//
// Absolute figures drift on shared machines, so a target is a ratio of figures of one run; the
// core-to-core line round trip and the load stand beside it. A row never fails the run because it
// is slow: it says what was missed. It fails the run when it measured something wrong (an order
// lost, a wrong count). A full run's results have everything that the performance table asks for
// (verdict.go): with a verdict and its comparator, or with the reason why there is no verdict.
//
// The gate works the other way round: it fails a build that is slower than another one. It measures
// the processor time of small pieces that do not depend on a second core. It does not fail a build
// for a difference that its own noise could explain.
//
// Rows run one after the other on the caller's goroutine, and stop what they start. Before each row
// the machine settles: memory is returned, and dirty pages are written to disk. Beside every row
// stand the time of a memory read at that moment and the time that the hypervisor took away during
// the row: neighbours on the machine make a greater difference than rows do. Two things that are
// compared take turns in short rounds, and the median of the rounds' ratios counts. Nothing here is
// on the path of an order.
package perf
