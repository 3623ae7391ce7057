package projection

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"posttrade/ring/must"
	"posttrade/sidecars/store"
	"posttrade/sidecars/store/storetest"
)

// wantBatches checks that the records of three batches cover the rows up to the last, each once:
// one up to first, and two of the others.
func wantBatches(t *testing.T, db *store.DB, first, last uint64) {
	t.Helper()
	var found []store.Batch
	must.OK(t, db.Read(t.Context(), func(tx *store.Tx) error {
		return tx.Batches(1, last, func(b store.Batch) { found = append(found, b) })
	}))
	if len(found) != 3 || found[0].LastSeq != first || found[2].LastSeq != last {
		t.Fatalf("batches %+v", found)
	}
	next := uint64(1)
	for _, b := range found {
		if b.FirstSeq != next || b.LastSeq < next || !b.Whole || b.BookedAt != bookedAt {
			t.Errorf("batches %+v", found)
		}
		next = b.LastSeq + 1
	}
}

// TestABatchEndsForAnotherWriter: a writer that waits behind a batch has its turn before the batch
// is whole, and Run goes on at once where it stopped. The poll is an hour by the clock of the test.
func TestABatchEndsForAnotherWriter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := storetest.Open(t, store.SQLite)
		random := seeded(t)
		h := newHistory(random, 10)
		o := options(h, db)
		o.BatchRows, o.Poll = 5000, time.Hour
		p := New(o)
		drain(t, p)
		const all = 10 + 1000
		h.grow(random, all-10)

		hold, seen := make(chan struct{}), make(chan int64, 1)
		go func() {
			if err := db.Write(t.Context(), func(*store.Tx) error { <-hold; return nil }); err != nil {
				t.Error(err)
			}
		}()
		synctest.Wait()
		stop := running(t, p) // waits for the first writer
		synctest.Wait()
		begun := time.Now()
		go func() { // waits for the batch
			err := db.Write(t.Context(), func(tx *store.Tx) error {
				n, err := tx.CountTrades()
				at, err2 := tx.Cursor(cursorTrades)
				mark, err3 := tx.Cursor(cursorMark)
				input, err4 := tx.Cursor(cursorInput)
				if err := errors.Join(err, err2, err3, err4); err != nil {
					return err
				}
				last := h.fills[n-1]
				if at != uint64(n) || mark != markOf(&last) || input != last.InputSeq-1 {
					t.Errorf("%d rows with cursors %d, %d, %d", n, at, mark, input)
				}
				seen <- n
				return nil
			})
			if err != nil {
				t.Error(err)
				seen <- 0
			}
		}()
		synctest.Wait()
		close(hold)
		synctest.Wait()
		if n := <-seen; n <= 10 || n >= all {
			t.Errorf("the other writer saw %d rows of %d: it did not wait, or for the whole batch", n, all)
		}
		wantProjected(t, p, h.trade, h.input)
		wantTable(t, db, rows(h.fills))
		wantBatches(t, db, 10, all)
		if took := time.Since(begun); took != 0 {
			t.Errorf("the rest of the batch waited %v", took)
		}
		if m := p.Metrics(); m.Booked != all || m.Batches != 3 || m.Duplicates != 0 || m.Failures != 0 {
			t.Errorf("metrics %+v", m)
		}
		must.OK(t, stop())
	})
}
