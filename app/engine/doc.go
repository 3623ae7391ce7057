// Package engine puts the path of an order together:
//
//	gate ─► desk ─► input ring ─► matcher stage ─► output ring ─► recorder ─► journal
//	                                                                 ├─► blotter, views
//	                                                                 └─► watermark ─► answers
//
// Open recovers the journal, makes rings, tables and stages, and starts them. An Engine is
// stopped in two steps: stages end behind a closed desk, then its memory is unmapped, when
// no caller can be on it any more. The parts are fields; each has its own rules about the
// goroutines that may call it, which are in its package.
//
// A failure of the journal is final. Options.Fatal is told once; callers that wait are
// refused; the process is expected to end.
//
// In a cluster the commands that members have agreed on enter through ClusterHost. The
// code from the input ring on is that of a single node.
package engine
