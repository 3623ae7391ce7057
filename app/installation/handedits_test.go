package installation

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"posttrade/app/apptest"
	"posttrade/ring/must"
	"posttrade/sidecars/store"
	"posttrade/sidecars/store/storetest"
)

// found is the break that the reconciliation must report for one edit by hand.
type found struct {
	class, trade, fields string
}

// handEdit is one change of the table by hand, the statement that undoes it, and the breaks that
// must be found in between.
type handEdit struct {
	do, undo []statement
	want     []found
}

type statement struct {
	sql  string
	args []any
}

// handEdits makes n random edits of different rows; the first ones cover every kind.
func handEdits(rows []store.Trade, n int, random *rand.Rand) (edits []handEdit) {
	kinds := []func(row *store.Trade, k int) handEdit{deleted, renamed, foreignRow, nextRow}
	for _, column := range editedColumns {
		kinds = append(kinds, func(row *store.Trade, _ int) handEdit { return edited(row, column) })
	}
	kinds = append(kinds,
		func(row *store.Trade, _ int) handEdit { return edited(row, editedColumns...) })
	for i, at := range random.Perm(len(rows))[:n] {
		kind := i
		if i >= len(kinds) {
			kind = random.IntN(len(kinds))
		}
		edits = append(edits, kinds[kind%len(kinds)](&rows[at], i))
	}
	return edits
}

func deleted(row *store.Trade, _ int) handEdit {
	return handEdit{
		do:   []statement{{"delete from trades where id = $1", []any{row.ID}}},
		undo: []statement{insertion(row)},
		want: []found{{"MISSING_IN_PROJECTION", row.ID, ""}},
	}
}

// renamed gives a row an id that no trade has. Then the trade has no row, and the row no trade.
func renamed(row *store.Trade, k int) handEdit {
	id := fmt.Sprintf("manual-%d", k)
	return handEdit{
		do:   []statement{{"update trades set id = $1 where id = $2", []any{id, row.ID}}},
		undo: []statement{{"update trades set id = $1 where id = $2", []any{row.ID, id}}},
		want: []found{{"MISSING_IN_PROJECTION", row.ID, ""}, {"ORPHAN_IN_PROJECTION", id, ""}},
	}
}

// foreignRow inserts a row of a trade that was never executed.
func foreignRow(row *store.Trade, k int) handEdit {
	return inserted(row, uint64(9_000_000_000+k), fmt.Sprintf("trd-%d", 9_000_000_000+k))
}

// nextRow inserts a row with the id of another trade sequence.
func nextRow(row *store.Trade, k int) handEdit {
	return inserted(row, uint64(8_000_000_000+k), fmt.Sprintf("trd-%d", 7_000_000_000+k))
}

func inserted(like *store.Trade, tradeSeq uint64, id string) handEdit {
	row := *like
	row.ID, row.Seq = id, tradeSeq
	return handEdit{
		do:   []statement{insertion(&row)},
		undo: []statement{{"delete from trades where id = $1", []any{id}}},
		want: []found{{"ORPHAN_IN_PROJECTION", id, ""}},
	}
}

// editedColumns are the columns that are compared, in the contract's order.
var editedColumns = []string{"account_id", "security", "side", "quantity", "price", "executed_at",
	"settlement_date", "order_id", "sequence"}

// editedFields are their names in a break.
var editedFields = map[string]string{
	"account_id": "account", "security": "security", "side": "side",
	"quantity": "quantity", "price": "price", "executed_at": "timestamp",
	"settlement_date": "settlementDate", "order_id": "orderId", "sequence": "sequence",
}

// edited changes columns of a row by the smallest possible amount.
func edited(row *store.Trade, columns ...string) handEdit {
	e, names := handEdit{}, []string{}
	for _, column := range columns {
		value := columnOf(row, column)
		other := any("Sell")
		switch v := value.(type) {
		case int64:
			other = v + 1
		case store.Date:
			other = v + 1
		case string:
			if column == "security" || column == "order_id" {
				other = v + "X"
			} else if v == "Sell" {
				other = "Buy"
			}
		}
		set := "update trades set " + column + " = $1 where id = $2"
		e.do = append(e.do, statement{set, []any{other, row.ID}})
		e.undo = append(e.undo, statement{set, []any{value, row.ID}})
		names = append(names, editedFields[column])
	}
	e.want = []found{{"FIELD_MISMATCH", row.ID, strings.Join(names, " ")}}
	return e
}

func columnOf(row *store.Trade, column string) any {
	switch column {
	case "account_id":
		return int64(row.AccountID)
	case "security":
		return row.Security
	case "side":
		if row.Side == 0 {
			return "Buy"
		}
		return "Sell"
	case "quantity":
		return row.Quantity
	case "price":
		return row.Price
	case "settlement_date":
		return row.SettlementDate
	case "order_id":
		if row.OrderID == "" {
			return nil // a market trade has no order
		}
		return row.OrderID
	case "sequence":
		return int64(row.Sequence)
	}
	return row.ExecutedAt
}

// insertion inserts a row as it is into the table.
func insertion(row *store.Trade) statement {
	var orderID, sequence any
	if row.OrderID != "" {
		orderID = row.OrderID
	}
	if row.Sequence != 0 {
		sequence = row.Sequence
	}
	return statement{`insert into trades (id, trade_seq, account_id, security, side, quantity, price,
		status,
		settlement_date, executed_at, booked_at, updated_at, order_id, sequence)
		values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)`, []any{
		row.ID, row.Seq, row.AccountID, row.Security, columnOf(row, "side"), row.Quantity, row.Price,
		row.Status.String(),
		row.SettlementDate, row.ExecutedAt, row.BookedAt, row.UpdatedAt, orderID, sequence}}
}

// TestHandEditsAreFoundAndHeal edits a hundred rows by hand while orders flow. The reconciliation
// and the orphan sweep find each of them, name it and its fields, and find nothing else. When the
// edits are undone, no break is open.
func TestHandEditsAreFoundAndHeal(t *testing.T) {
	edits := 100
	if testing.Short() {
		edits = 30
	}
	eachDatabase(t, func(t *testing.T, d store.Dialect) {
		in := install(t, t.TempDir(), databaseFlags(t, d)...)
		day := newTradingDay(t, in.Core, *daySeed)
		day.trade(t.Context(), 2000)
		in.awaitMatched()
		rows := in.rows()
		pace := time.NewTicker(time.Millisecond)
		defer pace.Stop()
		flowing := func() (end func()) {
			return during(t, func(ctx context.Context) {
				for ctx.Err() == nil {
					day.batch(1 + day.random.IntN(20))
					select {
					case <-pace.C:
					case <-ctx.Done(): // also when the test has failed and the ticker has stopped
					}
				}
			})
		}
		all := handEdits(rows, edits, rand.New(rand.NewPCG(*daySeed, 3)))
		var want []found
		end := flowing()
		for _, e := range all {
			for _, s := range e.do {
				storetest.Edit(t, in.Beside.Load().Db, s.sql, s.args...)
			}
			want = append(want, e.want...)
		}
		end()
		wantBreaks(t, in, want)

		end = flowing()
		for _, e := range all {
			for _, s := range slices.Backward(e.undo) {
				storetest.Edit(t, in.Beside.Load().Db, s.sql, s.args...)
			}
		}
		end()
		in.awaitMatched()
		wantBreaks(t, in, nil)
		replayJournal(t, in.Core).checkRows(t, in.rows())
	})
}

// wantBreaks waits until the open breaks are the wanted ones, each with its class and fields, and
// compares the tallies and the orphan sweep with them.
func wantBreaks(t *testing.T, in *installed, want []found) {
	t.Helper()
	byTrade := func(a, b found) int {
		return cmp.Or(cmp.Compare(a.trade, b.trade), cmp.Compare(a.class, b.class))
	}
	slices.SortFunc(want, byTrade)
	orphans := []string{}
	classes := map[string]uint64{}
	for _, f := range want {
		classes[f.class]++
		if f.class == "ORPHAN_IN_PROJECTION" {
			orphans = append(orphans, f.trade)
		}
	}
	sweep := must.Get(in.processor.OrphanSweep(t.Context()))(t)
	apptest.Until(t, "the breaks are those that were made", func() (bool, any) {
		var got []found
		for _, b := range allBreaks(t, in) {
			got = append(got, found{b.Class, b.TradeID, strings.Join(b.Fields, " ")})
		}
		slices.SortFunc(got, byTrade)
		return slices.Equal(got, want), fmt.Sprintf("%d of %d: %v, want %v", len(got), len(want), got,
			want)
	})
	slices.Sort(orphans)
	slices.Sort(sweep.OrphanIDs)
	if sweep.OrphanCount != uint64(len(orphans)) || !slices.Equal(sweep.OrphanIDs, orphans) {
		t.Errorf("the orphan sweep found %d: %v, want %v", sweep.OrphanCount, sweep.OrphanIDs, orphans)
	}
	n := in.tradeSeq()
	apptest.Until(t, "the tallies agree with the breaks", func() (bool, any) {
		s, err := in.processor.ReconStatus(t.Context())
		return err == nil && s.MissingInProjection == classes["MISSING_IN_PROJECTION"] &&
			s.FieldMismatch == classes["FIELD_MISMATCH"] && s.Orphans == uint64(len(orphans)) &&
			s.Cursor == n && s.Matched == n-s.MissingInProjection-s.FieldMismatch, s
	})
}
