package source

import (
	"fmt"

	"posttrade/sidecars/control"
	"posttrade/sidecars/store"
)

// Capacity describes the engine's table for the records of a source. Any goroutine may call it.
//
// The order-matcher's tables never give a place back, so what it holds only grows. Without this
// check a source could take a record that the engine can never hold.
type Capacity interface {
	// Places returns how many records the engine holds, and how many it can hold.
	//
	// It may be called in a transaction, so it must not wait and must not use the database.
	Places() (held, capacity int)
	// Holds reports whether the engine holds the record's account or security. That takes a place for
	// good.
	Holds(r *control.Record) bool
}

// fits returns control.ErrCapacity when the engine could not take a record. Records of the table
// that the engine does not hold yet need places too: they are under way, or there is no place for
// them. The caller holds the counter row, so no other writer adds a record meanwhile.
//
// It costs a count of the table. Only when the engine is almost full does it read all records.
func (t *Table) fits(tx *store.Tx, r *control.Record) error {
	engine := t.o.Capacity
	if engine == nil || engine.Holds(r) {
		return nil
	}
	for {
		held, capacity := engine.Places()
		waiting, err := t.waiting(tx, capacity-held)
		if err != nil {
			return err
		}
		if now, _ := engine.Places(); now != held {
			continue // the engine took one meanwhile, which may be counted twice or not at all
		}
		if held+waiting >= capacity {
			return fmt.Errorf("source: %s %s: %d of %d places are taken: %w",
				t.source, r.Key(t.source), held+waiting, capacity, control.ErrCapacity)
		}
		return nil
	}
}

// waiting returns how many records the engine does not hold. When there are fewer records than free
// places, it returns the number of all records without looking at them.
//
// The shortcut is safe because the number of all records is an upper bound of those that wait.
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
		if !t.o.Capacity.Holds(&all[i]) {
			n++
		}
	}
	return n, err
}
