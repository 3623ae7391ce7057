// Package store is the relational database behind the post-trade services: the
// trade rows, the cursors of those who follow the journal, and whatever tables
// the sidecars' migrations add. It is SQLite in a file of the data directory
// unless a PostgreSQL URL is given; nothing above this package knows which.
//
//	sidecars ─► Write(fn) ─► one transaction ─► SQLite   one writer connection, BEGIN IMMEDIATE
//	         └► Read(fn)  ─► one snapshot    ─► PostgreSQL   pooled connections
//
// What holds:
//
//   - Write is one transaction: everything fn did is there, or nothing. The cursor of a
//     follower is written with the rows it stands for, so a batch counts once however
//     often it is tried.
//   - Read is one snapshot: two queries in it see the same moment.
//   - A statement that fails dooms its transaction, in both dialects: later statements give
//     the same error and Write rolls back, even when fn swallows it.
//   - InsertTrades is idempotent on the id and on the trade sequence: what is there stays.
//   - A commit of SQLite is on the disk when Write returns (WAL, synchronous=FULL). On
//     PostgreSQL that is the server's setting.
//   - The database may be away, locked or full at any time: every call then ends with
//     ErrUnavailable within a bounded time, nothing panics, and a later call finds its own way
//     back. A commit whose outcome is unknown is an error as well: callers are idempotent.
//   - The schema is what the embedded migrations say. One whose text changed since it was
//     applied, or one that this build does not know, is refused by name (ErrMigration).
//   - A DB that is bound to a history (Bind) reads and writes only a database that carries the
//     mark of that history: each transaction looks first, and ends with ErrForeign otherwise.
//   - No password shows in an error, a state or a log line.
//
// SQL is written once for both: lower-case standard SQL, placeholders $1..$n, bigint
// numbers, text, booleans, dates. In SQLite a boolean is 0 or 1 and a date is text in the
// form yyyy-MM-dd; Row and the arguments hide that.
//
// Any goroutine may call a DB. A Tx and a Row belong to the function they were given to,
// and while a query's rows are being walked no other statement may run on that Tx.
package store
