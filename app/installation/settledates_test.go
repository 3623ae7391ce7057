package installation

import (
	"bytes"
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
