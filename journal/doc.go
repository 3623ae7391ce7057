// Package journal stores the engine's input durably and replays it. Every sequenced command goes
// into one append-only history in an embedded Pebble store. An answer that promises durability is
// released when the tail or, without a tail, the store has the command as the mode promises.
//
//	output ring ─► Recorder ─► Block ─► Append ─► one Pebble batch ─► committer ─► Durable(inputSeq)
//	                  │                (encode,     c  command block      (SyncWait in order,
//	                  ├─► observers     chain)      f  fill block          anchor, then the answer)
//	                  └─► tail                      i  client ids
//	                                             Snapshotter: Replay ─► shadow engine
//	                                                          ─► snapshot, views image
//
// What holds (each point has a test that would fail without it):
//
//   - Input sequences and trade sequences are contiguous from 1: a block that does not continue the
//     history is refused before anything is written (ErrGap).
//
//   - A command block carries a SHA-256 chain over everything before it, starting from the genesis
//     hash. The fill and client-id blocks of the same commit are bound to it.
//
//   - Durable never runs ahead of the disk. In "fsync" mode a number at or below it has been
//     synced. In "os" mode it has been handed to the operating system by write(2) and is synced at
//     most FlushInterval later, so killing the process loses nothing and a power cut loses only a
//     suffix.
//
//   - With Options.Tail answers do not wait for the store: the recorder copies its commands into a
//     file beside it, the tail. In "os" mode the file is mapped, and the recorder releases the
//     answers itself: the memory of a mapped file outlives the process as a write does. In "fsync"
//     mode two writers bring what was copied to stable storage, and release the answers in order
//     (taillog.go). The committer packs the same commands into the store a millisecond later, and
//     only then does the tail forget them, in "fsync" mode when that is synced. When the process
//     dies, some commands may be in the tail alone: the next Open, in whatever mode, puts them into
//     the store before anything reads the journal. Answered is the tail's position; Durable and
//     Head are the store's. Head waits until the store has everything that has been answered, so a
//     client that has an answer finds its command in the journal. In "os" mode, while a sync takes
//     longer than FlushInterval, no answers are released: whatever a power cut may take was
//     answered at most that long ago (bound.go).
//
//   - The first error of a write, a sync or the store's own background work is final: the journal
//     is poisoned, nothing is acknowledged for that commit or after it, nothing is retried, and the
//     Fatal hook ends the process.
//
//   - The anchor, a small file beside the store, says how far the history reached. Without a tail
//     it is written before the answer, with one the tail's mark is. It is synced at most 100 ms
//     later. Open first reads the store without changing a byte of it and compares it with the
//     anchor. It refuses a history that is shorter than the anchor, or different, and names the
//     file, the key and the sequence.
//
//   - A refused journal is left unchanged: Prepare reads all that a start needs, also what its
//     caller needs, before Begin, the second half, changes a byte. Read opens a journal by its
//     files alone, without a lock and without the right to write, also while its writer runs.
//
//   - StableHead is the part that a power cut cannot take. What is derived and kept elsewhere (SQL,
//     price history, extracts) follows StableHead, so it never knows more than a journal that is
//     opened again. If it does, it has met another journal. What also names a commit, with its chain
//     (backups, kept snapshots), follows StableEnd: commands that are stable in the tail alone are
//     packed into other commits after a power cut.
//
// A Shadow is a second engine that starts from a snapshot, or from genesis, and follows the durable
// history: it gives every event of the history again to its caller, and the running engine takes no
// part. The Snapshotter writes a shadow out with its views. The package audit renders the events of
// another shadow; arrival prices come from a third. A shadow's long runs belong on a thread of
// their own (Politely).
//
// A Transfer is the whole journal as a stream, up to its durable head, while the journal is
// appended to. Receive makes a new journal from the stream, and Replace puts that journal in the
// place of another; the package transfer has the stream's frames and the exchange. WaitStable tells
// a caller that keeps the same commands elsewhere when a power cut can no longer take them from
// here, and WaitStableEnd when it can no longer change their commits.
//
// What the anchor cannot see: if a power cut and damage to synced bytes of the log's tail come
// together, the commits of the last 100 ms before the cut may be missing unnoticed. Without a power
// cut (the process was killed, files were damaged or lost afterwards) there is no such window.
// FORMAT.md has the bytes.
//
// Goroutines: one appender at a time, the Recorder's locked thread or the holder of its lease,
// calls Append. The committer goroutine waits for syncs in order. Answers are released by the
// committer without a tail, by the appender with a mapped tail, and by the writers of the tail's
// log in mode "fsync". A ticker syncs the anchor. Replay, Fills, Snapshots, Shadows and Transfers
// may run on any goroutine at any time before Close, and read only what is durable. A Transfer may
// also be open across Close.
//
// The package decides nothing, does not know of HTTP, views or blotters, and never deletes history.
//
// The numbers of an open journal are input sequences, and each only rises:
//
//	applied     handed to Append                         Applied
//	answered    answers may be released                  Answered
//	durable     in the store, where it can be read       Durable, Head
//	stable      a power cut cannot take it               Stable, StableHead
//	            nor change the commit that ends there    StableEnd
//
// StableEnd is never ahead of stable, stable never ahead of durable, and durable never ahead of
// applied. Without a tail answered is never ahead of durable. With one it may be ahead of durable
// and of applied, by what the tail alone has. A build with ring.Checks panics when one of these
// does not hold (check.go).
//
// Where to begin, a row for each idea:
//
//	journal.go options.go open.go stable.go        the open journal, its modes and its heads
//	block.go transpose.go key.go ids.go            the bytes of a commit
//	recorder.go recorder_run.go writer.go          the way of a command into the store
//	tail.go taillog.go tailread.go bound.go        answers that do not wait for the store
//	store.go osfs.go watch.go tablepace.go         the store below, and what its failure means
//	makedir.go                                     directories with durable names
//	anchor.go inspect.go inspecttail.go view.go    what an opening checks; looking without a lock
//	walk.go replay.go shadow.go step.go            reading the history again
//	snapshot.go snapshotter.go recover.go          short cuts for a start
//	snapshotfolder.go                              short cuts for any moment of the history
//	transfer.go stream.go receive.go replace.go    a journal that goes to another place
//	archive.go archiving.go                        old blocks, moved out of the store
//	verify.go scrub.go accept.go export.go         what operators use
package journal
