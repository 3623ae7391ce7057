// Package projection writes every executed fill of the journal into the SQL table trades, once. It
// also books trades that arrive as messages, into the same table and under the same ids.
//
//	journal ── Head, Fills ──► Step ──┐  one transaction:
//	                                  │    read cursor (and hold it)
//	          (Run: polls)            ├──►  InsertTrades          ──► trades
//	                                  │    set cursors
//	trades.booking ── BookBatch ──────┘  one transaction: InsertTrades
//
// What holds, each with a test that would fail without it:
//
//   - One transaction writes rows and cursor. So whatever happens to the process or to the
//     database, the table holds exactly the fills up to the cursor, plus the trades that messages
//     booked. A transaction whose outcome is unknown does not change that: the next one starts from
//     the cursor that it finds in the database.
//   - A row is booked once. A second delivery, on either path and in any order, has no effect and
//     is counted as a duplicate; the row stays as it was booked first.
//   - Nothing is skipped. A fill out of order, or a hole between fills, is ErrSequence and stops
//     the projection. A database that was filled from another history is ErrForeign and stops it
//     too. Everything else is retried for ever.
//   - The row of a fill is a pure function of the fill, except for booked_at and updated_at. A
//     message gives the same row, with two differences: it has no input sequence, and it has the
//     order id only if it names it.
//   - The projection reads durable fills only and never writes to the journal: SQL may be down for
//     any time without an effect on orders.
//
// Three cursors are written together. "projection" is the last trade sequence in the table.
// "projection.input" is the input sequence up to which every fill is in the table.
// "projection.mark" is a digest of the fill at the cursor. By it a start recognises that journal
// and database belong together. A journal that lost its end in a power cut (mode os), or a new
// journal over an old database, must not be continued silently: its new fills would count as fills
// that are in the table already. A start refuses this as OLDER_JOURNAL or OTHER_HISTORY; the
// operator puts the right journal back, or accepts the older one (docs/operations.md).
//
// The digest carries the low bits of its sequence. So a cursor that was set by hand is recognised
// as unmarked and trusted, and the input sequence is then taken from the journal.
//
// The database also carries the mark of the history that fills it (store.Bind): the journal's
// genesis record, and Origin, the digest of trade 1. The transaction that books trade 1 writes it.
// Agrees recognises a database of a build without marks.
//
// Beside the rows the database keeps the rules by which their settlement dates were computed, and
// the first trade of each set of rules: see rules.go.
//
// A transaction ends early when another caller waits for SQLite's one write lock. Between two
// batches while trades come, and after a failure, Run leaves the database alone for as long as
// sidecars/pace says.
//
// Projected may be ahead of the stored cursor: commands without fills leave nothing to write, so
// the input sequence then follows the durable head in memory alone.
//
// A message that cannot be read is ErrMalformed: a repetition would fail in the same way, so its
// consumer terminates it. The error names fields of this package and contains nothing of the body.
// Times are exact or refused, like prices: digits after the millisecond must be zeros. The years
// are those of every date of the product, 1970-01-01 to 2149-06-06.
//
// Goroutines: one calls Run (or Step; calls of Step exclude one another); any number call
// BookLegacy, BookBatch, Projected, Lag and Metrics.
//
// The package does not settle, compare or publish anything, does not know the journal's or the
// broker's types, and starts no goroutine.
package projection
