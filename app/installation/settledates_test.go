package installation

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"posttrade/ring/must"
	"posttrade/sidecars/store"
	"posttrade/sidecars/store/storetest"
)

// A settlement date that is edited in SQL is named, also one that is not a date, which is never
// shown as a date. A forced trade does not count as edited, and T+N may change between two starts.
func TestEditedSettlementDateIsNamedAndNeverShown(t *testing.T) {
	eachDatabase(t, func(t *testing.T, d store.Dialect) {
		data, flags := t.TempDir(), databaseFlags(t, d)
		in := traded(t, data, 1, 50, flags...)
		in.awaitMatched()
		in.stop()
		in = traded(t, data, 2, 100, append(slices.Clone(flags), "settlement.t-plus-days", "2")...)
		in.awaitMatched()
		for _, row := range in.rows()[:20] {
			must.Get(in.processor.ForceSettlement(t.Context(), row.ID))(t)
		}
		in.awaitMatched()
		wantBreaks(t, in, nil)
		none := "9999-99-99"
		if d == store.Postgres {
			storetest.Edit(t, in.Beside.Load().Db,
				"alter table trades drop constraint trades_settlement_date_check")
			none = "-infinity"
		}
		for id, day := range map[string]string{"trd-30": "2001-01-02", "trd-31": none} {
			storetest.Edit(t, in.Beside.Load().Db,
				"update trades set settlement_date = '"+day+"' where id = '"+id+"'")
		}
		wantBreaks(t, in, []found{{"FIELD_MISMATCH", "trd-30", "settlementDate"},
			{"FIELD_MISMATCH", "trd-31", "settlementDate"}})
		status, body := in.get("trade-processor", "/trades/trd-31")
		if status != 200 || !bytes.Contains(body, []byte(`"settlementDate":null`)) ||
			strings.Contains(string(body), "-5877641") {
			t.Errorf("%d %s", status, body)
		}
	})
}

// A database that was lost is made again from the journal: its rows, and what operators settled by
// hand.
func TestALostDatabaseGetsItsSettlementsBack(t *testing.T) {
	eachDatabase(t, func(t *testing.T, d store.Dialect) {
		data := t.TempDir()
		flags := func() []string { return append(databaseFlags(t, d), "settlement.t-plus-days", "365") }
		in := traded(t, data, 1, 50, flags()...)
		in.awaitMatched()
		for _, id := range []string{"trd-7", "trd-50"} {
			must.Get(in.processor.ForceSettlement(t.Context(), id))(t)
		}
		want := in.rows()
		in.stop()
		if d == store.SQLite {
			files := must.Get(filepath.Glob(filepath.Join(data, "posttrade.db*")))(t)
			for _, name := range files {
				must.OK(t, os.Remove(name))
			}
		}
		in = install(t, data, flags()...)
		in.awaitMatched()
		got := in.rows()
		for i := range got { // when a row was written is not in the journal
			got[i].BookedAt, got[i].UpdatedAt = want[i].BookedAt, want[i].UpdatedAt
		}
		if !slices.Equal(got, want) || got[6].Status != store.Settled ||
			got[7].Status != store.Processing {
			t.Errorf("%d rows, not those of before: %+v, %+v", len(got), got[6], want[6])
		}
		wantBreaks(t, in, nil)
	})
}
