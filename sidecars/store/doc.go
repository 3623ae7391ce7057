// Package store is the relational database behind the post-trade services: the trade rows, the
// cursors of the readers that follow the journal, and the tables that the sidecars' migrations add.
// It is SQLite in a file of the data directory unless a PostgreSQL URL is given. The packages above
// this one do not depend on which it is.
//
//	sidecars ─► Write(fn) ─► one transaction ─► SQLite   one writer connection, BEGIN IMMEDIATE
//	         └► Read(fn)  ─► one snapshot    ─► PostgreSQL   pooled connections
//
// What holds:
//   - Write is one transaction: all that fn did is stored, or nothing. A follower's cursor is
//     written in the same transaction as its rows, so a batch counts once however often it is
//     tried.
//   - Read is one snapshot: two queries in it see the same moment.
//   - A statement that fails dooms its transaction, in both dialects: later statements return the
//     same error, and Write rolls back even when fn ignores the error.
//   - InsertTrades is idempotent on the id and on the trade sequence: an existing row stays.
//   - A commit of SQLite is on the disk when Write returns (WAL, synchronous=FULL). On PostgreSQL
//     the server's setting decides.
//   - The database may be away, locked or full at any time. Every call then ends with
//     ErrUnavailable within a bounded time, nothing panics, and a later call connects again by
//     itself. Transactions that are Unlimited, and callers that wait for a migration, are bounded
//     by their contexts alone. A commit with an unknown outcome is an error as well: callers are
//     idempotent.
//   - The embedded migrations define the schema. A migration is refused by name (ErrMigration) when
//     its text changed after it was applied, or when this build does not know it.
//   - A DB that is bound to a history (Bind) reads and writes only a database that carries the mark
//     of that history. Each transaction checks the mark first, and ends with ErrForeign otherwise.
//   - No password shows in an error, a state or a log line.
//
// SQL is written once for both: lower-case standard SQL, placeholders $1..$n, bigint numbers, text,
// booleans, dates. In SQLite a boolean is 0 or 1 and a date is text in the form yyyy-MM-dd; Row and
// the arguments hide that difference.
//
// Any goroutine may call a DB. A Tx and a Row belong to the function that received them. While the
// rows of a query are being walked, no other statement may run on that Tx.
package store
