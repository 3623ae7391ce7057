// Package stats keeps a process's figures in a mapped file that other processes read.
//
//	counters of engine, journal, services ─► Sources ─► Writer ─► data.dir/stats ◄── posttrade top
//
// The file has a header and one block per subject (path, commits, answers, feeds, lags, runtime,
// cluster, sessions). Each block has a sequence lock of its own, so a reader never shows a block
// that is half written. The writer holds a lock on the file. The lock ends with the writer's
// process, so a reader can tell by it whether the figures still change.
//
// One goroutine owns a Writer. A fault on the mapping (a full disk, a file that was cut short) is
// an error of one look. It never ends the process.
package stats
