package store_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"posttrade/sidecars/store"
	"posttrade/sidecars/store/storetest"
)

// TestInsertSomeGivesWay: it writes all rows while no other caller waits, and one turn when one
// does. A caller whose wait has ended counts no more.
func TestInsertSomeGivesWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := storetest.Open(t, store.SQLite)
		next := uint64(1)
		some := func(rows int, meanwhile func(), wantDone int) {
			t.Helper()
			write(t, db, func(tx *store.Tx) error {
				meanwhile()
				synctest.Wait()
				done, inserted, err := tx.InsertSome(someTrades(next, rows))
				if done != wantDone || inserted != wantDone {
					t.Errorf("%d of %d rows done, %d inserted, want %d", done, rows, inserted, wantDone)
				}
				next += uint64(done)
				return err
			})
			synctest.Wait()
		}
		const many = 4*store.RowsPerTurn + 7
		order := make(chan int64, 3)
		other := func() {
			go func() {
				err := db.Write(t.Context(), func(tx *store.Tx) error {
					n, err := tx.CountTrades()
					order <- n
					return err
				})
				if err != nil {
					t.Error(err)
				}
			}()
		}
		reader := func() { // does not wait for the write lock
			go func() {
				err := db.Read(t.Context(), func(tx *store.Tx) error {
					_, err := tx.CountTrades()
					return err
				})
				if err != nil {
					t.Error(err)
				}
			}()
		}
		some(many, func() {}, many)
		some(many, reader, many)
		some(many, other, store.RowsPerTurn)
		some(store.RowsPerTurn-1, other, store.RowsPerTurn-1)
		some(0, other, 0)
		some(many, func() { // waits no longer
			ctx, cancel := context.WithCancel(t.Context())
			gone := make(chan error)
			go func() { gone <- db.Write(ctx, func(*store.Tx) error { return nil }) }()
			synctest.Wait()
			cancel()
			if err := <-gone; !errors.Is(err, context.Canceled) {
				t.Errorf("the caller that was cancelled: %v", err)
			}
		}, many)
		some(many, func() {}, many)
		close(order)
		behind := int64(2*many + store.RowsPerTurn)
		for _, want := range []int64{behind, behind + store.RowsPerTurn - 1,
			behind + store.RowsPerTurn - 1} {
			if n := <-order; n != want {
				t.Errorf("the other writer saw %d rows, want %d: its turn came too early or late", n, want)
			}
		}
	})
}

// TestInsertSomeTakesRowsAsInsertTrades: on both databases it refuses what InsertTrades refuses,
// and leaves the rows that are there.
func TestInsertSomeTakesRowsAsInsertTrades(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		insert(t, db, someTrades(5, 1))
		write(t, db, func(tx *store.Tx) error {
			bad := someTrades(1, 3)
			bad[2].ID = ""
			if done, inserted, err := tx.InsertSome(bad); done != 0 || inserted != 0 || err == nil {
				t.Errorf("a row without an id: %d, %d, %v", done, inserted, err)
			}
			done, inserted, err := tx.InsertSome(someTrades(1, 600))
			if done != 600 || inserted != 599 {
				t.Errorf("%d done, %d inserted, want 600 and 599", done, inserted)
			}
			return err
		})
		err := db.Write(t.Context(), func(tx *store.Tx) error {
			if _, err := tx.Exec("no statement"); err == nil {
				t.Error("a statement that is none ran")
			}
			done, inserted, err := tx.InsertSome(someTrades(700, 1))
			if done != 0 || inserted != 0 || err == nil {
				t.Errorf("in a doomed transaction: %d, %d, %v", done, inserted, err)
			}
			return nil
		})
		if err == nil {
			t.Error("a doomed transaction was committed")
		}
	})
}
