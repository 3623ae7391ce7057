package source

import (
	"context"
	"sync/atomic"
	"time"

	"posttrade/sidecars/control"
	"posttrade/sidecars/store"
)

// Table holds the records of one source.
//
// It keeps no records in memory: every call reads the database. Versions, epochs and the outbox row
// of a change are written in the transaction of the change, so that no crash can separate them.
type Table struct {
	source  control.Source
	columns Columns
	o       Options
	seeded  atomic.Bool // Seed has run, or the table is known not to be empty
}

// New returns a source's table. It does no I/O.
func New(s control.Source, c Columns, o Options) *Table {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Changed == nil {
		o.Changed = func() {}
	}
	return &Table{source: s, columns: c, o: o}
}

// List returns every record in the order of their keys.
//
// They are of one moment. Cost: the whole table in memory.
func (t *Table) List(ctx context.Context) (all []control.Record, err error) {
	err = t.o.DB.Read(ctx, func(tx *store.Tx) (err error) {
		all, err = t.all(tx)
		return err
	})
	return all, err
}

func (t *Table) all(tx *store.Tx) (all []control.Record, err error) {
	err = tx.Query(t.columns.Select+" order by "+t.columns.Key, func(row *store.Row) error {
		all = append(all, t.columns.Scan(row))
		return nil
	})
	return all, err
}

// Get returns the record of a key; found is false when there is none.
//
// key has the type of the key column: uint32 for an account, string for a security.
func (t *Table) Get(ctx context.Context, key any) (r control.Record, found bool, err error) {
	err = t.o.DB.Read(ctx, func(tx *store.Tx) error {
		found = false
		return tx.Query(t.columns.Select+" where "+t.columns.Key+" = $1", func(row *store.Row) error {
			r, found = t.columns.Scan(row), true
			return nil
		}, key)
	})
	return r, found, err
}

// UnsetFlags names the flags that a change does not set. They keep their values; those of a new
// record have the values in the record.
type UnsetFlags struct{ Enabled, Halted bool }

// keep copies the flags that a change does not set, and their versions, from the old record.
//
// The version is that of the change that set the flag, never 0: it must not move with the record's
// own version.
func (u UnsetFlags) keep(r, old *control.Record) {
	if u.Enabled {
		r.Enabled, r.EnabledVersion = old.Enabled, old.EnabledSetVersion()
	}
	if u.Halted {
		r.Halted, r.HaltedVersion = old.Halted, old.HaltedSetVersion()
	}
}

// Upsert makes a record or changes the one of its key, and adds the change to the outbox in the
// same transaction. It returns the record as stored, with the change's version, and whether it is
// new. The caller has checked the record. by is the operator, nil for none. When the replica's
// engine has no room for a new record, the error is control.ErrCapacity and nothing is written.
//
// It is serial per source: a second caller waits for the counter row until the first has committed.
// When it returns, the change is stored and will be published, also after a crash. It does not wait
// for the stream or for any replica. Flagged is not called for a new record.
//
// Errors: control.ErrCapacity, those of Seed, Flagged and store.DB.Mine, and those of the database;
// with each of them nothing is stored, except when the outcome of the commit is unknown
// (store.DB.Write).
func (t *Table) Upsert(ctx context.Context, r control.Record, unset UnsetFlags, by *store.Act,
	key any) (stored control.Record, created bool, err error) {
	if err := t.o.DB.Mine(ctx); err != nil {
		return stored, false, err
	}
	if t.o.Seed != nil && !t.seeded.Load() {
		if _, err := t.o.Seed(ctx); err != nil {
			return stored, false, err
		}
	}
	err = t.o.DB.Write(ctx, func(tx *store.Tx) error {
		// The counter row comes first: after that no other transaction can change whether the record is
		// new.
		if _, _, err := tx.LockSource(string(t.source), t.o.Now().UnixMilli()); err != nil {
			return err
		}
		var was control.Record
		stored, created = r, true
		err := tx.Query(t.columns.Select+" where "+t.columns.Key+" = $1", func(row *store.Row) error {
			old := t.columns.Scan(row)
			unset.keep(&stored, &old)
			created, was = false, old
			return nil
		}, key)
		switch {
		case err != nil:
		case created:
			err = t.fits(tx, &stored)
		case by != nil && t.o.Flagged != nil &&
			(was.Enabled != stored.Enabled || was.Halted != stored.Halted):
			err = t.o.Flagged(tx, by, &was, &stored)
		}
		if err == nil {
			err = t.change(tx, &stored)
		}
		return err
	})
	if err != nil {
		return control.Record{}, false, err
	}
	t.o.Changed()
	return stored, created, nil
}

// change writes a record and its outbox row under the next version.
//
// It sets r.Version.
func (t *Table) change(tx *store.Tx, r *control.Record) error {
	now := t.o.Now().UnixMilli()
	epoch, version, err := tx.NextVersion(string(t.source), now)
	if err != nil {
		return err
	}
	return t.put(tx, r, epoch, version, now)
}

// put writes a record and its outbox row under a version.
//
// The payload of the outbox row is made here, once. What is published later is what was true in
// this transaction, not what the record has become since.
func (t *Table) put(tx *store.Tx, r *control.Record, epoch, version uint64, nowMillis int64) error {
	r.Version = version
	d := control.Delta{Source: t.source, Epoch: epoch, Version: version, Record: *r}
	if err := tx.AddOutbox(string(t.source), epoch, version,
		d.AppendJSON(nil), nowMillis); err != nil {
		return err
	}
	_, err := tx.Exec(t.columns.Upsert, t.columns.Args(r)...)
	return err
}

// Seed fills an empty table with records, each with its outbox row, in one transaction, and returns
// how many it wrote: none when the table has records. The caller has checked them.
//
// It sets the versions in records. It does not ask Capacity: the caller keeps the seeds small
// enough.
func (t *Table) Seed(ctx context.Context, records []control.Record) (written int, err error) {
	err = t.o.DB.Write(ctx, func(tx *store.Tx) error {
		written = 0
		// Of two transactions that seed at once, one waits here for the other.
		if _, _, err := tx.LockSource(string(t.source), t.o.Now().UnixMilli()); err != nil {
			return err
		}
		if _, found, err := t.first(tx); err != nil || found {
			return err
		}
		epoch, version, err := tx.NextVersions(string(t.source), len(records), t.o.Now().UnixMilli())
		if err != nil {
			return err
		}
		for i := range records {
			if err := t.put(tx, &records[i], epoch, version+uint64(i), t.o.Now().UnixMilli()); err != nil {
				return err
			}
			written++
		}
		return nil
	})
	if err != nil {
		return 0, err
	}
	t.seeded.Store(true)
	if written > 0 {
		t.o.Changed()
	}
	return written, nil
}

// Snapshot returns the whole universe at one moment.
//
// Watermark and records are read in one snapshot of the database, so the watermark is exactly what
// the records include. Cost: the whole table in memory. Of a source without an epoch it draws one,
// which can fail as a change does.
func (t *Table) Snapshot(ctx context.Context) (control.Snapshot, error) {
	snapshot := control.Snapshot{Source: t.source}
	for {
		found := false
		err := t.o.DB.Read(ctx, func(tx *store.Tx) (err error) {
			if snapshot.Epoch, snapshot.Watermark, found, err = tx.Source(string(t.source)); err != nil ||
				!found {
				return err
			}
			snapshot.Records, err = t.all(tx)
			return err
		})
		if err != nil || found {
			return snapshot, err
		}
		// A source that has never changed has no epoch yet: it is drawn here, once. A row of a source
		// makes a database one that is not empty, so this waits as a change does.
		if err := t.o.DB.Mine(ctx); err != nil {
			return snapshot, err
		}
		if err := t.o.DB.Write(ctx, func(tx *store.Tx) error {
			return tx.DrawEpoch(string(t.source), t.o.Now().UnixMilli())
		}); err != nil {
			return snapshot, err
		}
	}
}

// Version is the version of the last change, 0 before the first.
//
// A version that it returns is committed, and may still wait to be published.
func (t *Table) Version(ctx context.Context) (version uint64, err error) {
	err = t.o.DB.Read(ctx, func(tx *store.Tx) (err error) {
		_, version, _, err = tx.Source(string(t.source))
		return err
	})
	return version, err
}
