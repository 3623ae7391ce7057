package recon

import (
	"fmt"
	"sync/atomic"

	"posttrade/sidecars/store"
)

// books is the one row of recon_books and the two cursors, read in one snapshot.
//
// What holds: swept is at least missing + pending + mismatches, and each of those three is the
// number of entries in its table. A books value is a copy: only commit writes one back.
type books struct {
	generation uint64 // raised by every transaction of this package
	swept      uint64 // cursor: entries 1..swept are in the books
	verified   uint64 // cursor: the last entry of the verification's present round

	missing, pending, mismatches, orphans uint64 // counts of open breaks

	orphanSweeps       uint64 // how many orphan sweeps have begun
	sweptMillis        int64  // of the last sweep that wrote anything
	recheckedMillis    int64  // start of the last complete round of the re-check
	orphansSweptMillis int64  // the last orphan sweep that ended
}

// matched is how many entries are in no table.
func (b *books) matched() uint64 { return b.swept - b.missing - b.pending - b.mismatches }

// classified is how many entries have a class.
func (b *books) classified() uint64 { return b.swept - b.pending }

// ownTime is the time that this process has noted, else the one in the books.
//
// A later time in the books does not count: a clock that was ahead has written it.
func ownTime(own *atomic.Int64, stored int64) int64 {
	if at := own.Load(); at != 0 {
		return at
	}
	return stored
}

// open is how many breaks there are.
func (b *books) open() uint64 { return b.missing + b.mismatches + b.orphans }

// apply moves the tallies.
//
// It leaves orphans alone: the orphan walks count those by what their statements have touched.
func (b *books) apply(c change) {
	b.missing += uint64(c.missing) // a negative number wraps to the right sum
	b.pending += uint64(c.pending)
	b.mismatches += uint64(c.mismatches)
}

// readBooks reads the present books.
//
// Everything comes from the snapshot of tx, so tallies, cursors and exceptions agree.
func readBooks(tx *store.Tx) (b books, err error) {
	err = tx.Query("select generation, missing, pending, mismatches, orphans, orphan_sweeps, "+
		"swept_at, rechecked_at, "+
		"coalesce((select max(swept_at) from recon_orphan_sweep), 0) from recon_books where id = 1",
		func(r *store.Row) error {
			b = books{
				generation: uint64(r.Int64(0)),
				missing:    uint64(r.Int64(1)), pending: uint64(r.Int64(2)),
				mismatches: uint64(r.Int64(3)), orphans: uint64(r.Int64(4)),
				orphanSweeps: uint64(r.Int64(5)),
				sweptMillis:  r.Int64(6), recheckedMillis: r.Int64(7), orphansSweptMillis: r.Int64(8),
			}
			return nil
		})
	if err != nil {
		return b, err
	}
	if b.swept, err = tx.Cursor(cursorFast); err != nil {
		return b, err
	}
	b.verified, err = tx.Cursor(cursorVerify)
	return b, err
}

// claim raises the generation of the books, if they are still as they were read; else it returns
// errMoved. It comes before any other write, so that no stale finding is written or causes an
// error. A second transaction waits here for the first.
//
// The row is the lock of this package across processes: its generation tells a stale reader from a
// current one, also when both run on one database after a change of leaders.
func claim(tx *store.Tx, was books) error {
	n, err := tx.Exec("update recon_books set generation = $1 where id = 1 and generation = $2",
		was.generation+1, was.generation)
	if err == nil && n != 1 {
		err = fmt.Errorf("generation=%d: %w", was.generation, errMoved)
	}
	return err
}

// writeBooks replaces old, which this transaction has claimed, by b.
//
// A cursor that did not move is not written, so that recon does not wait for a lock that it does
// not need.
func writeBooks(tx *store.Tx, old, b books) error {
	_, err := tx.Exec(
		"update recon_books set missing = $1, pending = $2, mismatches = $3, orphans = $4, "+
			"orphan_sweeps = $5, swept_at = $6, rechecked_at = $7 where id = 1",
		b.missing, b.pending, b.mismatches, b.orphans, b.orphanSweeps, b.sweptMillis, b.recheckedMillis)
	if err != nil {
		return err
	}
	if b.swept != old.swept {
		if err := tx.SetCursor(cursorFast, b.swept); err != nil {
			return err
		}
	}
	if b.verified != old.verified {
		return tx.SetCursor(cursorVerify, b.verified)
	}
	return nil
}

// publish copies the books to Metrics. The caller holds mu.
func (r *Recon) publish(b *books) {
	r.cursor.Store(b.classified())
	r.openBreaks.Store(b.open())
}
