// Package blotter is the memory that readers look into: the executed fills of
// the recent past and the views of orders, positions, depth, keys, OTC
// contracts and controls; and beside it, on disk and only on demand, the executed
// fills of all time.
//
//	              ┌──► Blotter   ring of fills by tradeSeq, oldest out first
//	recorder ─────┤
//	  Observe     └──► Views     orders ── chained index by ref, retained FIFO
//	  Flush                      levels ── one ordered tree a side a security
//	                             positions, keys, contracts, accounts, securities, policy
//	                                     ▲
//	any goroutine ───────────────────────┘  copies rows, never locks the writer
//
// One goroutine at a time writes: the recorder of the live process, which is whoever has its lease,
// or the reader of a replay. Any number read at the same time, and none of them can stop or slow
// the writer. Nothing here decides anything: Views and Blotter are functions of the event stream,
// so two that saw the same events hold the same bytes, and an image of one (WriteTo, ReadImage)
// continues exactly where it was taken.
//
//	fills of the journal ──► History.Reindex ──► file of 64-byte fills ──► Page, Range
//
// How readers see whole rows:
//
//   - A row has a sequence lock. The writer makes it odd, copies words in, makes
//     it even; a reader copies words out and starts again when the stamp moved.
//   - The indexes by ref and by key are chained. The writer only ever inserts at
//     the head of a chain, so a reader that checks of every row it passes that it
//     belongs there finds every row that stays; on an order that has moved to
//     another chain it starts again at the head.
//   - The blotter is a ring: a reader copies a fill and then looks whether the
//     writer has come round to it meanwhile. One slot more than the capacity
//     keeps the slot being written out of every reader's range.
//   - A contract never changes and is never dropped: rows below the count that a
//     reader has loaded are read without a lock.
//   - Depth is no row. A side of a book has a sequence lock, under which a reader copies it
//     branch by branch. Meanwhile the writer notes every change of a level, so that the
//     reader can bring all branches to the end of one command: bids and asks are of one
//     sequence (depth_read.go). Only a reader that has tried in vain leaves a request, which
//     the writer fills in at the end of its batch (Flush).
//
// History is not part of this stream. Reindex reads every fill from the source it is
// given into a new file, of which fill n is record n, with a checksum in memory for
// every 1024 of them, and swaps it for the old one at once. Readers count themselves in
// and out of an index, so one that is replaced closes behind its last reader. A block
// is checked before anything of it is shown; one that is damaged ends the index, and
// there is none until the next Reindex. Files are read, not mapped: a disk that fails
// is then an error of one read and not the end of the process.
//
// What must hold after every command (Views.check asserts exactly this list):
//
//  1. Every row in use is found under its ref, and under no other.
//  2. A row is terminal exactly when it is in the retained queue.
//  3. An open row names the level of its security, side and limit.
//  4. The quantity and the count of a level are the sums over its open rows.
//  5. The levels of a side are in order, each is in use, and none is empty.
//  6. Every key in the retention queue is found under its family.
//  7. Contracts ascend by id up to the last command, each listed under its account.
//
// All tables are slabs: outside the heap, without pointers, bounded by the
// limits of the genesis record, resident only where touched. Hot calls allocate
// nothing. When a CAPACITY_CONTROL raises capacities, the observer moves the tables
// that it concerns to larger ones; a reader goes by those that it met, to the end of its call.
//
// The package does not know names of accounts, does not verify callers, does not
// wait for durability and stores nothing: whoever shows a row notes Applied and
// waits for the durable sequence to pass it.
package blotter
