// Package projection writes every executed fill of the journal into the SQL
// table trades, once, and books trades that arrive as messages into the same
// table under the same ids.
//
//	journal ── Head, Fills ──► Step ──┐  one transaction:
//	                                  │    read cursor (and hold it)
//	          (Run: poll or Wake)     ├──►  InsertTrades          ──► trades
//	                                  │    set cursors
//	trades.booking ── BookBatch ──────┘  one transaction: InsertTrades
//
// What holds, each with a test that would fail without it:
//
//   - Rows and cursor are of one transaction, so whatever happens to the process or
//     to the database, the table holds exactly the fills up to the cursor, plus what
//     messages booked. A transaction whose outcome is unknown changes nothing about
//     that: the next one starts from the cursor that it finds in the database.
//   - A row is booked once. A second delivery, on either path and in any order, is a
//     no-op and counted as a duplicate; the row stays as it was booked first.
//   - Nothing is skipped. A fill out of order, or a hole between fills, is ErrSequence
//     and stops the projection; a database that was filled from another history is
//     ErrForeign and stops it too. Everything else is retried for ever.
//   - The row of a fill is a pure function of the fill, but for booked_at and
//     updated_at. A message gives the same row, except that it knows no input
//     sequence, and the order id only if it names it.
//   - Only durable fills are read, and nothing is ever written to the journal: SQL may be
//     down for as long as it likes, and orders do not notice.
//
// Three cursors are written together. "projection" is the last trade sequence in
// the table. "projection.input" is the input sequence up to which every fill is in
// the table. "projection.mark" is a digest of the fill at the cursor, by which a
// start recognises that journal and database belong together: a journal that lost
// its end in a power cut (mode os), or a new journal over an old database, must not
// be continued silently, because its new fills would be taken for ones that are
// there. The remedy is the operator's: delete the rows behind the journal's head and
// the cursors, and the projection books everything again, leaving what is there. The
// digest carries the low bits of the sequence it is of, so that a cursor set by hand
// is recognised as unmarked and trusted, and the input sequence is then taken from the
// journal.
//
// The database itself carries the mark of the history that fills it (store.Bind): the
// journal's genesis record, and Origin, the digest of trade 1, which the transaction that
// books trade 1 writes. Agrees is how a database of a build without marks is recognised.
//
// Beside the rows stands by what rules their settlement dates were computed, and from
// which trade on: see rules.go.
//
// Between two batches while trades come, and after a failure, Run leaves the database
// alone as long as sidecars/pace says.
//
// Projected may run ahead of what is stored: commands without fills leave nothing
// to write, so the input sequence then follows the durable head in memory alone.
//
// A message that cannot be read is ErrMalformed: it would be no better the next
// time, so whoever consumes it terminates it. Its reason names fields of ours and
// carries nothing of the body. Times are exact or refused, like prices: digits
// behind the millisecond must be zeros. The years are those of every date of the
// product, 1970-01-01 to 2149-06-06.
//
// Goroutines: one calls Run (or Step, which excludes itself); any number call
// BookLegacy, BookBatch, Wake, Projected, Lag, State and Metrics.
//
// The package does not settle, compare or publish anything, does not know the
// journal's or the broker's types, and starts no goroutine.
package projection
