package settlement

import (
	"context"
	"fmt"
	"time"

	"posttrade/sidecars/pace"
	"posttrade/sidecars/store"
)

// A batch chooses its rows once, before it changes any, and then finds them by their ids. So its
// cost does not depend on the number of rows in the table. On PostgreSQL the array makes the
// statement choose only once. There the statement also locks the rows that it chooses, and skips
// rows that another transaction holds. The condition on the status is repeated for the row itself:
// it ensures that the transition happens once.
//
// $1 is the time of the settlement in epoch milliseconds, $2 the date of that time in the
// calendar's zone, $3 the most rows. Trades that were given up do not settle; the index of what is
// due is without them. Oldest dates come first, so a backlog settles in order.
const (
	sweepSQLite = settleSQL + ` where status = 'Processing' and id in (` + dueSQL +
		` and date(settlement_date) = settlement_date` + oldestSQL + `)`
	sweepPostgres = settleSQL + ` where status = 'Processing' and id = any(array(` +
		dueSQL + oldestSQL +
		` for update skip locked))`

	settleSQL = `update trades set status = 'Settled',
	updated_at = case when updated_at > $1 then updated_at else $1 end`
	// A date that was edited and is no date any more is never due; reconciliation reports its row.
	dueSQL = `select id from trades where ` + store.Due +
		` and settlement_date between '0001-01-01' and $2`
	oldestSQL = ` order by settlement_date limit $3`
)

// Run sweeps at once and then repeatedly until ctx ends, and then returns nil. After a failed sweep
// it pauses and tries again.
//
// One goroutine calls it. The pauses after failures are those of package pace.
func (s *Settlement) Run(ctx context.Context) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	var failures pace.Backoff
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-timer.C:
		}
		_, err := s.Sweep(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			if !failures.Failing() {
				s.o.Logger.Warn("settlement sweep is interrupted and will be retried", "error", err)
			}
			timer.Reset(failures.Next())
		default:
			if failures.Failing() {
				s.o.Logger.Info("settlement sweep works again")
			}
			failures.Reset()
			timer.Reset(s.o.Interval)
		}
		s.seen(err)
	}
}

// Sweep settles every due trade, in transactions of at most BatchRows rows, and returns how many of
// them are known to be committed. Sweeps of one process run one after the other. After an error
// settled trades stay settled and the next sweep handles the rest.
//
// A batch that is not full ends the sweep: there is nothing due, or the rest is held by other
// transactions.
func (s *Settlement) Sweep(ctx context.Context) (settled int, err error) {
	select {
	case s.turn <- struct{}{}:
		defer func() { <-s.turn }()
	case <-ctx.Done():
		return 0, fmt.Errorf("settlement: sweep: %w", ctx.Err())
	}
	for {
		moved, err := s.batch(ctx)
		settled += moved
		switch {
		case err != nil:
			if ctx.Err() == nil {
				s.failures.Add(1)
			}
			return settled, fmt.Errorf("settlement: sweep: %w", err)
		case moved < s.o.BatchRows:
			s.lastSweepMillis.Store(s.o.Now().UnixMilli())
			return settled, nil
		}
	}
}

// batch settles up to BatchRows due trades in one transaction and counts them.
//
// rows, late and toCommit are set anew in each try, since the database may ask for another one. An
// error returns 0, also when the outcome of the commit is unknown: a later batch finds the mark.
func (s *Settlement) batch(ctx context.Context) (moved int, err error) {
	var rows int64
	var late uint64
	var toCommit bool // the transaction's function has succeeded: only the commit remains
	err = s.write(ctx, func(tx *store.Tx) error {
		rows, late, toCommit = 0, 0, false
		// The clock is read here, for each batch and each try: a trade that is not due by a clock that
		// was stepped back is not settled.
		now := s.o.Now().UnixMilli()
		sql := sweepSQLite
		if tx.Dialect() == store.Postgres {
			sql = sweepPostgres
		}
		var err error
		rows, err = tx.Exec(sql, now, s.o.Calendar.LocalDate(now), s.o.BatchRows)
		if err != nil {
			return err
		}
		if late, err = s.marks.resolve(tx); err != nil {
			return err
		}
		if rows > 0 {
			err = s.marks.leave(tx, now)
		}
		toCommit = err == nil
		return err
	})
	s.marks.end(err == nil, toCommit, uint64(rows))
	s.swept.Add(late)
	if err != nil {
		return 0, err
	}
	s.swept.Add(uint64(rows))
	return int(rows), nil
}
