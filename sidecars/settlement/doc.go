// Package settlement computes when a trade settles and settles it.
//
//	fill time ──► Calendar.SettlementDate ──► trades.settlement_date   (projection)
//
//	ticker ──► Sweep ──┐
//	                   ├──► trades.status  Processing ──► Settled     (this package)
//	caller ──► Force ──┘
//
// A Calendar is a function of the execution's time and of nothing else: a rule
// file of a version, a time zone and N give one date for a moment, whoever asks
// and whenever. It is turned into one table when it is made, so that it costs
// the projection two array reads a row. The rule files are in calendars/; a file
// never changes without its version, and Version names every file that took
// part. A row keeps the date it was booked with: a later version of a calendar
// dates only what is booked after it.
//
// What must hold, on SQLite and on PostgreSQL, with any number of sweeps, forces
// and processes on the same table:
//
//  1. A trade goes from Processing to Settled once and never back.
//  2. The scheduled sweep moves a trade only when its clock, read within the
//     transaction that moves it, shows a date in the calendar's zone at or after
//     the settlement date. A clock that was stepped back settles nothing new, and
//     takes back nothing that was settled; Force overrides the date.
//  3. The transaction that moved a trade counts it, under Swept or under Forced,
//     and no other does.
//  4. updated_at never falls.
//
// The statement's own condition (status = 'Processing') decides each race. The
// sweep works in transactions of at most BatchRows rows, so that the projection
// never waits long for SQLite's one writer; on PostgreSQL it passes over rows
// that another transaction holds, and finds them in the next round.
//
// Swept is svc_settlement_swept_total: the trades that scheduled sweeps of this
// process settled, counted when their commit is known. A commit whose answer was
// lost is counted as soon as a later batch finds its mark in the database (see
// marks.go), or never when the process ends first: the counter may be late or low,
// it is never high.
//
// A trade that is settled by hand is noted in settlement_forces, in the transaction
// that settles it: reconciliation tells it from one whose status was edited. A force
// that meets a lock says which, and who holds it (store.LockedError).
//
// Settlement dates are not restated, trades are not netted, and nobody is told:
// rows are all this package writes. Entitlement is the caller's concern.
package settlement
