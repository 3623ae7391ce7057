// Package asof shows the engine's state and the read views as they were after any input sequence.
//
//	           checkpoint ┐      ┌ snapshot           inputSeq        durable head
//	history ──────────────●──────●───────────────────────●───────────────┼──────►
//	                             └── replayed by a shadow ┘
//	                                                      └─► views, engine ─► readers
//
// A moment is reached from the nearest snapshot before it: one of the journal's own newest three,
// or a checkpoint. Checkpoints are snapshots of a shadow at even distances over the whole history,
// in a folder of their own. A loop of low priority makes them, and makes them again when they are
// lost: they are derived. When the history has outgrown their number, every second one goes.
//
// At most two shadows are kept warm. The step from one sequence to the next replays one command. A
// request for a moment that is behind both of them rebuilds the one that was used least recently;
// when both are in use it waits, and then gets ErrBusy. A shadow that is not used for some minutes
// is closed.
//
// What holds:
//
//   - A moment is a function of the genesis record and the commands up to its sequence: the same on
//     every call, from whatever snapshot, after a restart and on every member.
//   - Readers of a moment share it. A shadow moves only when no reader holds its moment.
//   - Nothing here reads or writes what the running engine uses, and nothing beyond the durable
//     head is shown.
//
// Any goroutine may call a History. A Moment belongs to the caller until Release. The package
// renders nothing and does not know of HTTP.
//
// The life of a warm shadow:
//
//	      claim      move ends            last Release      Idle is over
//	free -------> moving -------> n readers ----------> free ----------> closed
//
// A claim of the moment at which a shadow stands only adds a reader. A shadow of the caller's own
// (Shadow, Bare) is not among the warm ones; its caller bounds how many there are.
package asof
