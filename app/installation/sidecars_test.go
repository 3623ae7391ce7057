package installation

import (
	"crypto/sha256"
	"flag"
	"fmt"
	"maps"
	"testing"

	"posttrade/app/apptest"
	"posttrade/httpapi/client"
	"posttrade/matcher"
	"posttrade/ring/must"
	"posttrade/sidecars/store"
	"posttrade/sidecars/store/storetest"
)

var (
	dayTrades = flag.Int("day.trades", 0,
		"fills of TestOneDayInBothDatabases, 0 = 100,000, or 10,000 with -short")
	daySeed = flag.Uint64("day.seed", 1, "seed of the trading days")
)

// TestOneDayInBothDatabases trades for a day and then compares all post-trade data with a replay of
// the journal through a new engine: the rows in SQLite, which followed the day live; the rows in
// PostgreSQL, made from the same journal by an installation started later; the journal's fills, the
// blotter, the reconciliation, the report and the costs. It does so before a restart, after it, and
// with control changes in between.
func TestOneDayInBothDatabases(t *testing.T) {
	fills, costs := 100_000, 1000
	if testing.Short() {
		fills, costs = 10_000, 200
	}
	if *dayTrades > 0 {
		fills = *dayTrades
	}
	data := t.TempDir()
	in := install(t, data)
	day := newTradingDay(t, in.Core, *daySeed)
	day.trade(t.Context(), uint64(fills))
	t.Log(day)
	tr := replayJournal(t, in.Core)
	head := uint64(len(tr.commands))
	wantKinds(t, tr)
	report, part, reports := checkDay(t, in, tr, head, costs)
	in.stop()

	for _, d := range storetest.Dialects(t) {
		t.Run(d.String(), func(t *testing.T) {
			in := install(t, data, databaseFlags(t, d)...)
			changeControls(t, in)
			tr := replayJournal(t, in.Core)
			report2, part2, reports2 := checkDay(t, in, tr, head, costs)
			if report2 != report || part2 != part {
				t.Errorf("report %s, its middle %s after a restart and control changes; before %s and %s",
					report2, part2, report, part)
			}
			if !maps.Equal(reports2, reports) {
				t.Error("the costs have changed with the restart")
			}
			in.stop()
		})
	}
}

// wantKinds checks that the day had every kind of event.
func wantKinds(t *testing.T, tr *truth) {
	t.Helper()
	for kind := matcher.EventAccepted; kind <= matcher.EventBooked; kind++ {
		if !tr.kinds[kind] {
			t.Errorf("the day had no event of kind %d: it compares less than it says", kind)
		}
	}
}

// checkDay compares all post-trade data with the replay. It returns the hash of the report up to
// head, that of a part of it in its other form, and the costs.
func checkDay(
	t *testing.T, in *installed, tr *truth, head uint64, costs int,
) (report, part string, reports map[string]string) {
	t.Helper()
	in.awaitMatched()
	apptest.Until(t, "every trade is settled", func() (bool, any) {
		n := -1
		err := in.Beside.Load().Db.Read(t.Context(), func(tx *store.Tx) error {
			return tx.Query("select count(*) from trades where status = $1", func(r *store.Row) error {
				n = int(r.Int64(0))
				return nil
			}, "Processing")
		})
		return n == 0 && err == nil, fmt.Sprint(n, " are open ", err)
	})
	rows := in.rows()
	tr.checkRows(t, rows)
	for i := range rows {
		r := &rows[i]
		if r.Status != store.Settled || r.SettlementDate.String() != nextDay || r.BookedAt == 0 ||
			r.UpdatedAt < r.BookedAt {
			t.Fatalf("row is not settled on %s: %+v", nextDay, r)
		}
	}
	tr.checkFills(t, in.Core)
	tr.checkBlotter(t, in)
	n := uint64(len(tr.fills))
	sweep, err := in.processor.OrphanSweep(t.Context())
	if err != nil || sweep.LocalTradeCount != n || sweep.FullHistoryTradeCount != n ||
		sweep.OrphanCount != 0 {
		t.Errorf("orphan sweep of %d trades: %+v, %v", n, sweep, err)
	}
	if breaks := allBreaks(t, in); len(breaks) != 0 {
		t.Errorf("%d breaks, the first %+v", len(breaks), breaks[0])
	}
	report = tr.checkReport(t, in, head)
	status, body := in.get("order-matcher", fmt.Sprintf("/regulatory/report?fromSeq=%d&toSeq=%d",
		head/3, head/3+head/5))
	if status != 200 {
		t.Fatalf("report: %d %s", status, body)
	}
	return report, fmt.Sprintf("%x", sha256.Sum256(body)), tr.checkTCA(t, in, costs, *daySeed)
}

// allBreaks reads every page of the open breaks.
func allBreaks(t *testing.T, in *installed) (all []client.Break) {
	t.Helper()
	for cursor := ""; ; {
		page := must.Get(in.processor.ReconBreaks(t.Context(), "", 0, cursor))(t)
		all = append(all, page.Items...)
		if cursor = page.NextCursor; cursor == "" {
			return all
		}
	}
}

// changeControls sequences changes that a report of earlier commands must not show.
func changeControls(t *testing.T, in *installed) {
	t.Helper()
	_, err1 := in.orders.RiskControlAccount(t.Context(), 3, false)
	_, err2 := in.orders.RiskControlSecurity(t.Context(), "AAPL", true, true)
	_, err3 := in.orders.RiskControlRestriction(t.Context(), "AA", true)
	_, err4 := in.orders.RiskControlPolicy(t.Context(), client.Policy{
		PolicyVersion: int64(in.Core.Journal.Answered()), MaxPositionQuantity: 900_000,
	})
	for _, err := range []error{err1, err2, err3, err4} {
		must.OK(t, err)
	}
}
