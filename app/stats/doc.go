// Package stats keeps a process's figures in a mapped file that other processes read.
//
//	counters of engine, journal, services ─► Sources ─► Writer ─► data.dir/stats ◄── posttrade top
//
// The file has a header and one block a subject (path, commits, answers, feeds, lags,
// runtime, cluster, sessions), each behind a sequence lock of its own, so a reader never
// shows a block that is half written. The writer holds a lock on the file that ends with
// its process: a reader knows by it whether the figures still change.
//
// One goroutine owns a Writer. A fault on the mapping (a disk that is full, a file that
// was cut) is an error of one look, never the end of the process.
package stats
