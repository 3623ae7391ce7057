// Package settlement computes when a trade settles and settles it.
//
//	fill time ──► Calendar.SettlementDate ──► trades.settlement_date   (projection)
//
//	ticker ──► Sweep ──┐
//	                   ├──► trades.status  Processing ──► Settled     (this package)
//	caller ──► Force ──┘
//
// A Calendar depends on the execution's time and on nothing else: a rule file of a version, a time
// zone and N give one date for a moment, in every call. NewCalendar turns it into one table, so
// that the projection pays two array reads per row. The rule files are in calendars/. A file never
// changes without its version, and Version names every file that was used. A row keeps the date it
// was booked with: a later version of a calendar applies only to rows that are booked after it.
//
// What must hold, on SQLite and on PostgreSQL, with any number of sweeps, forces and processes on
// the same table:
//
//  1. A trade goes from Processing to Settled once and never back.
//  2. The scheduled sweep moves a trade only when its clock, read within the transaction that moves
//     it, shows a date in the calendar's zone at or after the settlement date. A clock that was
//     stepped back settles nothing new, and undoes no settlement; Force overrides the date.
//  3. The transaction that moved a trade counts it, under Swept or under Forced, and no other does.
//  4. updated_at never falls.
//
// The statement's own condition (status = 'Processing') decides each race. The sweep works in
// transactions of at most BatchRows rows, so that the projection never waits long for SQLite's one
// writer. On PostgreSQL it skips rows that another transaction holds, and finds them in the next
// round.
//
// Swept is svc_settlement_swept_total: the trades that scheduled sweeps of this process settled,
// counted when their commit is known. A commit whose answer was lost is counted when a later batch
// finds its mark in the database (see marks.go). It is never counted when the process ends first.
// So the counter may be late or low, but never high.
//
// Force records a trade that it settles in settlement_forces, in the same transaction: by that
// record reconciliation distinguishes it from one whose status was edited. A force that waits for a
// lock in vain names the lock and its holder (store.LockedError).
//
// Settlement dates are not restated, trades are not netted, and the package sends no notification:
// it only writes rows. The caller checks entitlement.
package settlement
