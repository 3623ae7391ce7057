// Package recon compares the fills of the journal with the trade rows in SQL, and keeps a durable
// record of every difference.
//
//	blotter ──┐ recent fills
//	journal ──┼─► merge by ranges of tradeSeq ─► gaps, mismatches, orphans ─► one transaction
//	history ──┘              ▲                                                cursor, tallies, breaks
//	                   rows of trades
//
// Four walks use the same comparison and the same books:
//
//   - The fast sweep (Sweep, every Interval) walks the new entries from the cursor to the durable
//     head. Entries come from the blotter while it holds them and from the journal when it does
//     not.
//   - The re-check (part of Sweep) walks the open entries: entries without a row, entries whose row
//     differs, rows without a fill. It closes those that agree by now.
//   - The verification (VerifyStep, one round in VerifyInterval) walks all entries again in small
//     chunks against the journal. So it also finds a row that was deleted or edited long after it
//     had matched.
//   - The orphan sweep (OrphanSweep, on demand) rebuilds the full-history index and walks all local
//     rows against it. Only this walk can find that no fill gives a row.
//
// # Classes
//
// The row of entry n is the row with trade_seq n and id trd-<n>. An entry is MATCHED when every
// column of that row is what the projection or settlement has written, FIELD_MISMATCH when any
// column differs, and MISSING_IN_PROJECTION when there is no such row. A row whose trade_seq is
// outside the history, or whose id is not the one of its trade_seq, is ORPHAN_IN_PROJECTION. So a
// row whose id was edited is an orphan, and its entry is missing.
//
// A booking from outside has no entry. It is EXTERNAL until the statement has a line with its id
// and the same account, security, side, quantity, price and time. Its other columns, the settlement
// date and the status among them, are compared with nothing.
//
// Each column of an entry's row is compared with:
//
//   - account, security, side, quantity, price, timestamp, sequence and orderId: the fill. A row
//     that a message booked has no sequence, and has the order only if the message named it; null
//     is no difference there.
//   - settlementDate: the rules that were in force when the row was booked. T+N, the calendar and
//     its version are settings and change between two starts, so the projection stores them in
//     settlement_rules when they come into force. The rules of a row are those of its trade_seq; of
//     a row that was booked out of turn, those of its booked_at. Rows of a build that stored no
//     rules are judged by the first stored rules, if the oldest and the newest of these rows agree
//     with them. Otherwise they are judged like rows dated by another build's calendar: any date
//     that some rules can give is accepted. A column that holds no date always differs.
//   - status: Settled before its date is a difference unless settlement_forces has the trade, and
//     so is Processing when settlement_forces has it. A settlement by hand from before that table
//     existed is accepted.
//   - bookedAt, updatedAt: each other. A row that is Processing was not changed since it was
//     booked; one that is Settled was settled then or later. A break names both, because no other
//     record says when a row was booked, or settled. A row whose status differs has the time of its
//     settlement, which is right.
//
// An entry that never had a row is pending until it has been absent for Grace from the first sweep
// that saw it; the grace covers the projection's delay. An entry that had a row before, and has
// none now, counts at once. A pending entry does not delay other entries: the sweep passes over it
// and compares the entries after it. It has no class yet, so it is not part of the status' cursor,
// and it shows in the status' lag.
//
// # The books
//
// Only the exceptions are stored, so the tallies cannot drift from the breaks:
//
//	matched = swept - missing - pending - mismatches        cursor = swept - pending
//
// Entries without a row are kept as disjoint ranges [lo..hi] with one first-seen time. A projection
// that is millions of fills behind is one range, found by one query that returns nothing, and
// shrinks from the front as the rows arrive. Mismatches and orphans are one row each; MATCHED
// entries are never stored. A chunk, which is one transaction, ends after the page of entries that
// reaches a number of compared rows or of findings (bounds), which limits what it writes.
//
// Rows are read in a snapshot without holding the database's write lock. A short transaction then
// writes the findings together with the cursor and the tallies. It begins by raising the generation
// of the books, and is given up if another transaction has raised it since the books were read. So
// nothing is counted twice, whether a transaction runs again, its outcome is unknown, or two
// processes run recon. A row that changes between the snapshot and the write is judged as it was; a
// later walk finds the change.
//
// The re-check is bounded: each sweep checks a number of ranges, from where the last sweep stopped.
// When it has checked all open entries, the start of that round is the last-seen time of all
// missing and differing entries that are still open; no row is written for that. The last-seen time
// of an orphan is the last orphan sweep that found it.
//
// The counters of Metrics count transitions into a class since the process started and never fall.
// The fields of Status are the present state and may fall.
//
// An idle sweep writes nothing: the time of the last sweep is stored with the next write.
//
// When a journal has lost a suffix (durability "os" and a power cut), the sweep removes what the
// books say about entries above the head: those trade sequences will be issued again.
//
// # The orphan sweep and rows that arrive meanwhile
//
// Rows up to the index's last trade sequence are merged with the index. Rows above it are judged by
// the durable head, read after the snapshot that they came from. The projection writes only durable
// fills. So a row at or below that head may have a fill newer than the index, and is left to the
// fast sweep. A row above the head had no fill when it was read, and is an orphan. localTradeCount
// counts the rows that were judged, which excludes those newer ones. An orphan that is found again
// keeps its first-seen time. The end of the sweep closes the orphans that it did not find; the
// re-check of Sweep closes a removed one even before that.
//
// # Goroutines
//
// Run is one goroutine that sweeps and verifies. Any goroutine may also call Sweep, VerifyStep and
// OrphanSweep: each chunk of work holds one mutex, so they interleave between chunks. Status,
// Breaks, LastOrphanSweep and Metrics may be called at any time. One orphan sweep runs at a time
// (ErrBusy).
//
// The package writes its own tables and cursors. Only Repair, on an operator's word, writes trade
// rows; nothing here can block the engine: it reads copies.
package recon
