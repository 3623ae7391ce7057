package source

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"posttrade/sidecars/control"
	"posttrade/sidecars/store"
)

// Options of New, shared by the services.
type Options struct {
	DB      *store.DB
	Now     func() time.Time // nil: the system's clock
	Changed func()           // called after a change is committed; nil: no call

	// Flagged is called in the transaction of an operator's change that sets a flag of an existing
	// record to another value: it puts the act on record. nil: no call.
	Flagged func(tx *store.Tx, by *store.Act, was, is *control.Record) error

	// Capacity is for what the engine behind the replicas has room; nil: for any record.
	Capacity Capacity

	// Seed fills the table if it is empty. It runs before the first change, which would otherwise
	// leave the table without its seeds for good. nil: there are no seeds.
	Seed func(context.Context) (int, error)
}

// Columns describe how a table stores the records of a source.
type Columns struct {
	Table  string // its name
	Select string // all columns of all records, without condition or order
	Key    string // the column that names a record
	Upsert string // one record, with the arguments that Args gives
	Args   func(r *control.Record) []any
	Scan   func(row *store.Row) control.Record
}

// ValidName reports whether a name can be stored and sent: not blank, no more than control.MaxName
// bytes, and text without control characters. A replica would treat any other name as a malformed
// message, and never become ready.
func ValidName(name string) bool {
	isControl := func(r rune) bool { return r < ' ' }
	return strings.TrimSpace(name) != "" && len(name) <= control.MaxName &&
		utf8.ValidString(name) && !strings.ContainsFunc(name, isControl)
}

// Table holds the records of one source.
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

// Unsaid names the flags that a change does not set. They keep their values; those of a new record
// have the values in the record.
type Unsaid struct{ Enabled, Halted bool }

// keep copies the flags that a change does not set, and their versions, from the old record.
func (u Unsaid) keep(r, old *control.Record) {
	if u.Enabled {
		r.Enabled, r.EnabledVersion = old.Enabled, old.SaidEnabled()
	}
	if u.Halted {
		r.Halted, r.HaltedVersion = old.Halted, old.SaidHalted()
	}
}

// Upsert makes a record or changes the one of its key, and adds the change to the outbox in the
// same transaction. It returns the record as stored, with the change's version, and whether it is
// new. The caller has checked the record. by is the operator, nil for none. When the replica's
// engine has no room for a new record, the error is control.ErrCapacity and nothing is written.
func (t *Table) Upsert(ctx context.Context, r control.Record, unsaid Unsaid, by *store.Act,
	key any) (stored control.Record, created bool, err error) {
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
			unsaid.keep(&stored, &old)
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
func (t *Table) change(tx *store.Tx, r *control.Record) error {
	now := t.o.Now().UnixMilli()
	epoch, version, err := tx.NextVersion(string(t.source), now)
	if err != nil {
		return err
	}
	return t.put(tx, r, epoch, version, now)
}

// put writes a record and its outbox row under a version.
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
		// A source that has never changed has no epoch yet: it is drawn here, once.
		if err := t.o.DB.Write(ctx, func(tx *store.Tx) error {
			return tx.DrawEpoch(string(t.source), t.o.Now().UnixMilli())
		}); err != nil {
			return snapshot, err
		}
	}
}

// Version is the version of the last change, 0 before the first.
func (t *Table) Version(ctx context.Context) (version uint64, err error) {
	err = t.o.DB.Read(ctx, func(tx *store.Tx) (err error) {
		_, version, _, err = tx.Source(string(t.source))
		return err
	})
	return version, err
}

// ErrLast reports a row that cannot be a last message of the stream.
var ErrLast = errors.New("not a message of the stream")

// BumpEpoch begins a new epoch: after the database was restored from a backup, or when stream and
// database differ for any other reason. last is the last message of this source on the stream, as
// outbox.LastOnStream finds it, Version 0 for none: versions go on above it. Waiting rows are
// superseded, and one record is written again with its own values, so that every replica sees the
// new epoch and takes a snapshot. record is called in the same transaction, with the epoch that
// was, 0 for none, and the new one; nil: nothing is called.
func (t *Table) BumpEpoch(ctx context.Context, last store.OutboxRow,
	record func(tx *store.Tx, was, is uint64) error) (epoch uint64, err error) {
	if last.Version > 0 && (last.Epoch == 0 || last.StreamSequence == 0 || len(last.Payload) == 0) {
		return 0, fmt.Errorf("source: bump epoch source=%s version=%d: %w",
			t.source, last.Version, ErrLast)
	}
	name := string(t.source)
	err = t.o.DB.Write(ctx, func(tx *store.Tx) (err error) {
		now := t.o.Now().UnixMilli()
		was, _, _, err := tx.Source(name)
		if err != nil {
			return err
		}
		if epoch, err = tx.BumpEpoch(name, last.Epoch, now); err != nil {
			return err
		}
		if record != nil {
			if err := record(tx, was, epoch); err != nil {
				return err
			}
		}
		if _, err := tx.Supersede(name, 1, math.MaxInt64, now); err != nil {
			return err
		}
		if last.Version > 0 {
			if err := tx.RaiseVersion(name, last.Version); err != nil {
				return err
			}
			if err := tx.PutStreamRow(name, last, now); err != nil {
				return err
			}
		}
		first, found, err := t.first(tx)
		if err != nil || !found {
			return err
		}
		Unsaid{Enabled: true, Halted: true}.keep(&first, &first)
		return t.change(tx, &first)
	})
	if err != nil {
		return 0, err
	}
	t.o.Changed()
	return epoch, nil
}

// first returns the record with the lowest key, false for none.
func (t *Table) first(tx *store.Tx) (r control.Record, found bool, err error) {
	err = tx.Query(t.columns.Select+" order by "+t.columns.Key+" limit 1", func(row *store.Row) error {
		r, found = t.columns.Scan(row), true
		return nil
	})
	return r, found, err
}
