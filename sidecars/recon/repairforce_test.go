package recon

import (
	"testing"

	"posttrade/ring/must"
	"posttrade/ring/waittest"
	"posttrade/sidecars/store"
	"posttrade/sidecars/store/storetest"
)

// A settlement by hand commits while a repair waits for its rows: the repair finds the rows Settled
// and the notes of their settlement, and keeps both. One of the rows is right otherwise, the other
// is made again.
func TestRepairKeepsASettlementByHandThatItWaitsFor(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		if db.Dialect() != store.Postgres {
			return // one writer: no other session can hold a row
		}
		g := repairRig(t, db, 4)
		want := g.rowsNow()
		g.edit("update trades set quantity = quantity + 1 where trade_seq = 3")
		at := g.millis + 5
		g.millis += 10
		other := must.Get(db.Twin())(t)
		defer func() { must.OK(t, other.Close()) }()
		type outcome struct {
			result RepairResult
			err    error
		}
		done := make(chan outcome, 1)
		must.OK(t, other.Write(t.Context(), func(tx *store.Tx) error {
			for _, seq := range []uint64{2, 3} {
				_, err := tx.Exec("update trades set status = 'Settled', updated_at = $1 "+
					"where status = 'Processing' and trade_seq = $2", at, seq)
				if err != nil {
					return err
				}
				if err := tx.NoteForce(seq, at); err != nil {
					return err
				}
			}
			go func() {
				result, err := g.Repair(t.Context(), RepairQuery{From: 1, To: 4})
				done <- outcome{result, err}
			}()
			waittest.Until(t, "the repair waits", func() (waits bool, seen any) {
				return storetest.Awaited(tx)
			})
			return nil
		}))
		if got := <-done; got.err != nil || got.result.Checked != 4 || got.result.Repaired != 1 {
			t.Errorf("repaired %+v, %v; want trade 3 only", got.result, got.err)
		}
		for _, seq := range []uint64{2, 3} {
			row := want[seq]
			row.Status, row.UpdatedAt = store.Settled, at
			want[seq] = row
		}
		g.wantRows(want)
		g.verifyAll()
		g.sweep()
		g.want(tallies{cursor: 4, matched: 4})
	})
}
