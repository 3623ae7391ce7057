package source

import (
	"fmt"

	"posttrade/sidecars/control"
	"posttrade/sidecars/store"
)

// Room is the engine's table of what a source has records of. Any goroutine calls.
type Room interface {
	// Places is how many records the engine holds, and how many it can hold.
	Places() (held, capacity int)
	// Holds reports that the engine holds the record's account or security, which takes
	// a place for good.
	Holds(r *control.Record) bool
}

// fits is control.ErrCapacity when the engine could not take a record in. Records of the table
// that the engine has not met yet need places too: they are on their way, or have none.
// The caller holds the counter row, so no other writer adds one meanwhile.
func (t *Table) fits(tx *store.Tx, r *control.Record) error {
	room := t.o.Room
	if room == nil || room.Holds(r) {
		return nil
	}
	for {
		held, capacity := room.Places()
		waiting, err := t.waiting(tx, capacity-held)
		if err != nil {
			return err
		}
		if now, _ := room.Places(); now != held {
			continue // one that waited was taken in, and may have been counted twice or not at all
		}
		if held+waiting >= capacity {
			return fmt.Errorf("source: %s %s: %d of %d places are taken: %w",
				t.source, r.Key(t.source), held+waiting, capacity, control.ErrCapacity)
		}
		return nil
	}
}

// waiting is how many records the engine does not hold. Where there are fewer records than
// free places they need not be looked at.
func (t *Table) waiting(tx *store.Tx, free int) (n int, err error) {
	if err = tx.Query("select count(*) from "+t.columns.Table, func(row *store.Row) error {
		n = int(row.Int64(0))
		return nil
	}); err != nil || n < free {
		return n, err
	}
	all, err := t.all(tx)
	n = 0
	for i := range all {
		if !t.o.Room.Holds(&all[i]) {
			n++
		}
	}
	return n, err
}
