// Package recon compares what the journal says was executed with the trade rows
// in SQL, and keeps a durable account of where the two differ.
//
//	blotter ──┐ recent fills
//	journal ──┼─► merge by ranges of tradeSeq ─► gaps, mismatches, orphans ─► one transaction
//	history ──┘              ▲                                                cursor, tallies, breaks
//	                   rows of trades
//
// Four walks use the same comparison and the same books:
//
//   - The fast sweep (Sweep, every Interval) walks the new entries from the cursor
//     to the durable head. Entries come from the blotter while it holds them and
//     from the journal when it does not.
//   - The re-check (part of Sweep) walks what is open: entries without a row,
//     entries whose row differs, rows without a fill. What has healed is closed.
//   - The verification (VerifyStep, one round in VerifyInterval) walks everything
//     again in small chunks against the journal, so that a row deleted or edited
//     long after it had matched is found as well.
//   - The orphan sweep (OrphanSweep, on demand) rebuilds the full-history index and
//     walks all local rows against it: the only walk that can say of a row that no
//     fill gives it.
//
// # Classes
//
// The row of entry n is the row with trade_seq n and id trd-<n>. An entry is
// MATCHED when every column of that row is what the projection wrote or what
// settlement has made of it, FIELD_MISMATCH when it differs in any of them, and
// MISSING_IN_PROJECTION when it is not there. A row whose trade_seq is outside the
// history, or whose id is not the one of its trade_seq, is ORPHAN_IN_PROJECTION;
// a row whose id was edited is therefore an orphan and its entry is missing.
//
// What each column is held against:
//
//   - account, security, side, quantity, price, timestamp, sequence and orderId: the
//     fill. A row that a message booked knows no sequence, and the order only if it
//     was named; null is no difference there.
//   - settlementDate: the rules that were in force when the row was booked. T+N, the
//     calendar and its version are settings and change between two starts, so the
//     projection notes them in settlement_rules when they come into force: the rules
//     of a row are those of its trade_seq, or, for one that was booked out of turn,
//     those of its booked_at. Rows of a build that noted nothing are judged by the
//     first rules that were noted when the oldest and the newest of them agree with
//     those, else, as by rules of another build's calendar, by what any rules can
//     give. A column that holds no date differs always.
//   - status: Settled before its date is a difference unless settlement_forces has
//     the trade, and so is Processing when it has. Who settled by hand before that
//     table was there is believed.
//   - bookedAt, updatedAt: each other. A row that is Processing was not changed since
//     it was booked; one that is Settled was settled then or later. Both are named:
//     nothing else knows when a row was booked, or settled.
//
// An entry that never had a row is pending until it has been absent for Grace from
// the first sweep that saw it; the grace covers the projection's delay. An entry
// whose row was there before and is gone counts at once. A pending entry holds up
// nobody: the sweep passes over it and the entries behind it are compared. It has
// no class yet, so it is not part of the status' cursor and shows in its lag.
//
// # The books
//
// What is stored are the exceptions, so the tallies cannot drift from the breaks:
//
//	matched = swept - missing - pending - mismatches        cursor = swept - pending
//
// Entries without a row are kept as disjoint ranges [lo..hi] with one first-seen
// time. A projection that is millions of fills behind is one range, found by one
// query that returns nothing, and shrinks from the front as the rows arrive.
// Mismatches and orphans are one row each; MATCHED entries are never stored. A
// chunk, which is one transaction, ends behind the page of entries that reaches a
// number of compared rows or of findings (bounds), which limits what it writes.
//
// Rows are read in a snapshot without holding the database's write lock, and the
// findings are written in a short transaction together with the cursor and the
// tallies. It begins by raising the generation of the books, and is given up if
// somebody else has raised it since they were read, so nothing is counted twice,
// whether a transaction runs again, its outcome is unknown, or two processes run
// recon. A row that changes between the snapshot and the write is judged as it was,
// and is found by a later walk.
//
// The re-check is bounded: so many ranges a sweep, continuing at the next sweep
// where it stopped. When everything open has been looked at, that round's start is
// the last-seen time of all missing and differing entries that are still open,
// without writing one of them. That of an orphan is the last orphan sweep that
// found it.
//
// The counters of Metrics count transitions into a class since the process started
// and never fall; the fields of Status are the present state and do.
//
// An idle sweep writes nothing: the time of the last one is stored with whatever
// is written next.
//
// A journal that lost a suffix (durability "os" and a power cut) makes the sweep
// forget what it knew behind the head: those trade sequences will be issued again.
//
// # The orphan sweep and rows that arrive meanwhile
//
// Rows up to the index's last trade sequence are merged with the index. Rows above
// it are judged by the durable head read after the snapshot they came from: the
// projection writes only durable fills, so a row at or below that head may have a
// fill newer than the index and is left to the fast sweep, and one above it had no
// fill when it was read, and is an orphan. localTradeCount counts the rows that
// were judged, which excludes those newer ones. An orphan found again keeps its
// first-seen time; those that this sweep did not find are closed at its end, and
// the re-check of Sweep closes one that was removed even before.
//
// # Goroutines
//
// Run is one goroutine that sweeps and verifies. Sweep, VerifyStep and OrphanSweep
// may also be called from any goroutine: each chunk of work holds one mutex, so
// they interleave between chunks. Status, Breaks, LastOrphanSweep and Metrics may
// be called at any time. One orphan sweep runs at a time (ErrBusy).
//
// The package writes only its own tables (migration 0002) and its two cursors. It
// never repairs a row, and nothing it does can block the engine: it reads copies.
package recon
