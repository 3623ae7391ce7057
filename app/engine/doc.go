// Package engine puts the path of an order together:
//
//	gate ─► desk ─► input ring ─► matcher stage ─► output ring ─► recorder ─► journal
//	                                                                 ├─► blotter, views
//	                                                                 └─► watermark ─► answers
//
// Open recovers the journal, makes rings, tables and stages, and starts them. An Engine stops in
// two steps: the desk closes and the stages end behind it; then the memory is unmapped, when no
// caller can be in the engine any more. The parts are fields. The rules about the goroutines that
// may call a part are in its package.
//
// A failure of the journal is final, and so is that of a thread, ErrEnded. The engine calls
// Options.Fatal and refuses the callers that wait; the process is expected to end.
//
// Goroutines, beside those of the callers:
//
//	matcher stage   decides; one locked thread, or the goroutine that has its lease
//	recorder        journals, feeds the observers; the same
//	journal         its committer and the writers of the tail release the answers
//	sessions        a poller and a feeder, when there is a socket
//	KeepAhead       makes the tables' memory resident before orders need it
//	Processors      follows the CPU limit
//	Shadow          a second engine that writes the snapshots
//
// The package does no HTTP, no SQL and no consensus. It does not read settings: Options has every
// number.
//
// In a cluster the commands that members have agreed on enter through ClusterHost. From the input
// ring on, the code is that of a single node.
package engine
