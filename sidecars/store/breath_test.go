package store_test

import (
	"context"
	"testing"

	"posttrade/ring"
	"posttrade/ring/ringtest"
	"posttrade/sidecars/store"
	"posttrade/sidecars/store/storetest"
)

// On a thread with a low priority, SQLite, which works in this process, yields between rows.
func TestPoliteStatementsBreathe(t *testing.T) {
	db := storetest.Open(t, store.SQLite)
	breaths := func(first uint64) (writing, reading int) {
		err := db.Write(context.Background(), func(tx *store.Tx) error {
			if _, err := tx.InsertTrades(someTrades(first, 100)); err != nil {
				return err
			}
			writing = store.Breaths(tx)
			err := tx.Query("select id from trades", func(*store.Row) error { return nil })
			reading = store.Breaths(tx)
			return err
		})
		if err != nil {
			t.Error(err)
		}
		return writing, reading
	}
	if ring.Niceness() <= 0 { // the normal case, unless the whole test runs at a low priority
		if writing, reading := breaths(1); writing != 0 || reading != 0 {
			t.Errorf("at the usual priority: %d breaths of the insert, %d of the query", writing, reading)
		}
	}
	ringtest.Politely(t, func() {
		if writing, reading := breaths(101); writing == 0 || reading == 0 {
			t.Errorf("at a low priority: %d breaths of the insert, %d of the query", writing, reading)
		}
	})
}
