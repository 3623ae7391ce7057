package source

import (
	"context"
	"errors"
	"fmt"
	"math"

	"posttrade/sidecars/control"
	"posttrade/sidecars/store"
)

// ErrLast reports a row that cannot be a last message of the stream.
var ErrLast = errors.New("not a message of the stream")

// BumpEpoch begins a new epoch: after the database was restored from a backup, or when stream and
// database differ for any other reason. last is the last message of this source on the stream, as
// outbox.LastOnStream finds it, Version 0 for none: versions go on above it. Waiting rows are
// superseded, and one record is written again with its own values, so that every replica sees the
// new epoch and takes a snapshot. record is called in the same transaction, with the epoch that
// was, 0 for none, and the new one; nil: nothing is called.
//
// A table without records gets the epoch and no change. ErrLast, and any error of record, change
// nothing.
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
		UnsetFlags{Enabled: true, Halted: true}.keep(&first, &first)
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
