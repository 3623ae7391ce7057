// Package blotter holds the data for readers: the recent executed fills, and the views of orders,
// positions, depth, keys, OTC contracts and controls. On demand it also keeps an index of all
// executed fills on disk.
//
//	              ┌──► Blotter   ring of fills by tradeSeq, oldest out first
//	recorder ─────┤
//	  Observe     └──► Views     orders ── chained index by ref, retained FIFO
//	  Flush                      levels ── one ordered tree a side a security
//	                             positions, keys, contracts, accounts, securities, policy
//	                                     ▲
//	any goroutine ───────────────────────┘  copies rows, never locks the writer
//
// One goroutine at a time writes: in the live process the goroutine that holds the recorder's
// lease, in a replay the goroutine that reads the journal. Any number of goroutines read at the
// same time, and none of them can stop or slow the writer. The package decides nothing: Views and
// Blotter are functions of the event stream. Two Views that saw the same events hold the same
// bytes, and an image of one (WriteTo, ReadImage) continues exactly where it was taken.
//
//	fills of the journal ──► History.Reindex ──► file of 64-byte fills ──► Page, Range
//
// How readers see whole rows:
//
//   - A row has a sequence lock. The writer makes it odd, copies words in and makes it even. A
//     reader copies words out and starts again when the stamp has changed.
//   - The indexes by ref and by key are chained. The writer only ever inserts at the head of a
//     chain, so a reader finds every row that stays, if it checks that every row it passes belongs
//     to the chain. When it meets an order that has moved to another chain, it starts again at the
//     head.
//   - The blotter is a ring: a reader copies a fill and then checks whether the writer has reached
//     its slot again meanwhile. The ring has one slot more than the capacity, so the slot being
//     written is outside every reader's range.
//   - A contract never changes and is never dropped: rows below the count that a
//     reader has loaded are read without a lock.
//   - Depth is not a row. A side of a book has a sequence lock, under which a reader copies it
//     branch by branch. Meanwhile the writer notes every change of a level, so that the reader can
//     bring all branches to the end of one command: bids and asks are of one sequence
//     (depth_read.go). Only a reader after failed tries leaves a request, which the writer
//     fills in at the end of its batch (Flush).
//
// History does not observe this stream. Reindex reads every fill from a given source into a new
// file, in which fill n is record n, and keeps a checksum in memory for every 1024 fills. Then it
// replaces the old file in one step. Readers count themselves in and out of an index, so a replaced
// index is closed by its last reader. A reader checks a block before it returns any fill of it. A
// damaged block ends the index, and there is none until the next Reindex. Files are read, not
// mapped, so a failing disk is an error of one read and does not end the process.
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
// All tables are slabs: outside the heap, without pointers, bounded by the limits of the genesis
// record, resident only where touched. Hot calls allocate nothing. When a CAPACITY_CONTROL raises
// capacities, the observer moves the affected tables to larger ones. A reader uses the tables that
// it loaded first until the end of its call.
//
// The package does not know names of accounts, does not verify callers, does not wait for
// durability, and stores no view on disk. A caller that shows a row to a client notes Applied and
// waits until the durable sequence has reached it.
package blotter
