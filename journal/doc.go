// Package journal makes the engine's input safe and gives it back. Every
// sequenced command goes into one append-only history in an embedded Pebble
// store; an answer that promises durability is given when its command's commit
// has been synced.
//
//	output ring ─► Recorder ─► Block ─► Append ─► one Pebble batch ─► committer ─► Durable(inputSeq)
//	                  │                (encode,     c  command block      (SyncWait in order,
//	                  ├─► observers     chain)      f  fill block          anchor, then the answer)
//	                  └─► tail ("os")               i  client ids
//	                                                                    Snapshotter: Replay ─► shadow
//	                                                                    engine ─► snapshot, views image
//
// What holds (each has a test that would fail without it):
//
//   - Input sequences and trade sequences are contiguous from 1: a block that does not
//     continue the history is refused before anything is written (ErrGap).
//
//   - A command block carries a SHA-256 chain over everything before it, starting from
//     the genesis hash; the fill and client-id blocks of the same commit are bound to it.
//
//   - Durable never runs ahead of the disk: in "fsync" mode a number at or below it has
//     been synced; in "os" mode it has been handed to the operating system by write(2)
//     and is synced at most FlushInterval later, so killing the process loses nothing
//     and a power cut only a suffix.
//
//   - With Options.Tail, in "os" mode, answers do not wait for the store: the recorder copies
//     what it has into a mapped file, the tail, and lets the answers go itself. The memory of
//     a mapped file outlives the process as a write does. The committer packs the same commands
//     into the store a millisecond later, and the tail forgets them only then; what is in the
//     tail alone when the process dies, the next Open puts into the store before anything reads
//     the journal, in whatever mode. Answered is the tail's position; Durable and Head are the store's,
//     and Head waits for what has been answered, so who has an answer finds it in the journal.
//     While a sync takes longer than FlushInterval no answers go: what a power cut may take was
//     answered at most that long ago (bound.go).
//
//   - The first error of a write, a sync or the store's own background work is final: the
//     journal is poisoned, nothing is acknowledged for that commit or after it, nothing is
//     retried, and the Fatal hook ends the process.
//
//   - The anchor, a small file beside the store, says how far the history reached. It is
//     written before the answer and synced at most 100 ms later. Open first reads the store
//     without changing a byte of it, compares, and refuses a history that is shorter than
//     the anchor, or different, naming the file, the key and the sequence.
//
//   - What was refused is as it was: Prepare reads all that a start needs, for its caller
//     too, before Begin, its second half, changes a byte. Read opens a journal by its
//     files alone, without a lock and without the right to write, beside its writer too.
//
//   - StableHead is what a power cut cannot take. What is derived and kept elsewhere (SQL,
//     price history, extracts) follows that, so none of it ever knows more than a journal
//     that is opened again; one that does has met another journal.
//
// A Shadow is a second engine that starts from a snapshot, or from genesis, and follows
// what is durable: it gives every event of the history again, to whoever asks, without
// the running engine taking part. The Snapshotter writes one out with its views; the
// package audit renders another's events; arrival prices come from a third. A shadow's
// long runs belong on a thread of their own (Politely).
//
// A Transfer is the whole journal as a stream, up to its durable head, while it is
// appended to; Receive makes a journal of its own of it, and Replace puts that in the
// place of another. WaitStable tells whoever keeps the same commands elsewhere from when
// on a power cut cannot take them from here.
//
// What the anchor cannot see: if a power cut and damage to synced bytes of the log's tail
// come together, the commits of the last 100 ms before the cut may be missing without
// being noticed. Without a power cut (the process was killed, files were damaged or lost
// afterwards) there is no such window. FORMAT.md has the bytes.
//
// Goroutines: one appender (the Recorder's locked thread) calls Append, and lets the answers
// go if there is a tail; the committer goroutine waits for syncs and calls back in order; a ticker syncs the anchor. Replay,
// Fills, Snapshots, Shadows and Transfers may run on any goroutine at any time, before
// Close, and read only what is durable; a Transfer may also be open across Close.
//
// The package does not decide anything, does not know of HTTP, views or blotters, and
// never deletes history.
package journal
