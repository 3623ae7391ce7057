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
//
// # The rows
//
// A row is a name for --only and a file. What the table asks of it is at the top of the file; the
// comment of its measure function says what the load is, what the figures leave out, and what makes
// them lie.
//
//	     jitter        jitter.go         gaps of a spinning thread: the machine's own
//	P1   ring          ring.go           messages through a ring, in two kinds of memory
//	P2   book          book.go           the book alone against a bare ladder
//	P3   realistic     realistic.go      the book in five market regimes, reports to another core
//	     lobster       lobster.go        a day of a real book, when its files are given
//	P4   decision      decision.go       a command to its events, with all checks
//	     gate, codec   edge.go           screening and reading of an order
//	P5   journal       journal.go        durable commands, and the disk's own floor
//	     first-orders  firstorders.go    the first orders after a start
//	P6   end-to-end    endtoend.go       command to durable answer in this process
//	P7   session       session.go        orders of another process through shared memory
//	P8   http          http.go           orders over HTTP against a bare server
//	     curve         curve.go          latency against rate; the flat p99.9 of P6, P7 and P8
//	P9   recovery      recovery.go       replay, and a start from a snapshot
//	P10  downstream    downstream.go     projection, reconciliation, report, index, costs
//	P11  feeds         feeds.go          control sources: to the gate, deltas, bootstrap
//	     feed-replay   feedbeside.go     orders beside a source's replay
//	P12  cluster       cluster.go        three members; failover.go kills one, cutbeside.go cuts
//	P13  everything    everything.go     orders beside all services; backupbeside.go: beside backups
//	P14  memory, heap  memory.go         resident set of processes; heap.go: what commands leave
//	P15  fan-out       livefeed.go       clients of the live feed beside orders
//	P16  evidence      evidence.go       the transparency log
//	P17  past          past.go           any moment of a long journal, and what if
//	     pause         pause.go          the matcher's longest pause, by cause
//
// # What makes a figure lie
//
//   - Another process on the machine, or a neighbour of a virtual one: the lines of load, jitter,
//     stolen time and memory reads are in the results to show it.
//   - The load itself. In nearly every row it runs in this process, on the cores that are
//     measured, and its time is in every rate.
//   - Files that were just written are in the kernel's cache: no row measures a cold disk.
//   - A rate that is a share of this run's saturation is another one in each run. Latencies of two
//     runs compare only where the rates are alike, and ratios compare better than both.
//   - A figure that is the least of several turns is lower than what a client meets. The figure
//     over all turns stands in the same line where it is known.
package perf
