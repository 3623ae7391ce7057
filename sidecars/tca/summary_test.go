package tca

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strings"
	"testing"

	"posttrade/matcher"
	"posttrade/ring/must"
	"posttrade/sidecars/store"
	"posttrade/sidecars/store/storetest"
)

// insert puts rows into the table trades.
func insert(t testing.TB, db *store.DB, rows []store.Trade) {
	t.Helper()
	err := db.Write(t.Context(), func(tx *store.Tx) error {
		n, err := tx.InsertTrades(rows)
		if err == nil && n != len(rows) {
			err = fmt.Errorf("inserted %d of %d rows", n, len(rows))
		}
		return err
	})
	must.OK(t, err)
}

// sums are the oracle's averages of a set of reports.
type sums struct {
	trades      int
	twap, other []*big.Rat
}

func (s *sums) text() string {
	mean := func(values []*big.Rat) string {
		if len(values) == 0 {
			return "null"
		}
		sum := new(big.Rat)
		for _, v := range values {
			sum.Add(sum, v)
		}
		sum.Mul(sum, big.NewRat(100, int64(len(values))))
		return decimal(halfUp(sum), 2)
	}
	return fmt.Sprintf(
		`"trades":%d,"withBenchmark":%d,"averageSlippageBps":%s,"averageArrivalSlippageBps":%s`,
		s.trades, len(s.twap), mean(s.twap), mean(s.other))
}

// summarize makes the JSON of a summary from reports in JSON.
func summarize(t *testing.T, reports []string) string {
	t.Helper()
	total, bySecurity := &sums{}, map[string]*sums{}
	for _, report := range reports {
		var r struct {
			Security                        string
			SlippageBps, ArrivalSlippageBps *json.Number
		}
		must.OK(t, json.Unmarshal([]byte(report), &r))
		if bySecurity[r.Security] == nil {
			bySecurity[r.Security] = &sums{}
		}
		for _, s := range []*sums{total, bySecurity[r.Security]} {
			s.trades++
			if r.SlippageBps != nil {
				v, _ := new(big.Rat).SetString(r.SlippageBps.String())
				s.twap = append(s.twap, v)
			}
			if r.ArrivalSlippageBps != nil {
				v, _ := new(big.Rat).SetString(r.ArrivalSlippageBps.String())
				s.other = append(s.other, v)
			}
		}
	}
	var names []string
	for name := range bySecurity {
		names = append(names, name)
	}
	slices.Sort(names)
	for i, name := range names {
		names[i] = fmt.Sprintf(`{"security":%q,%s}`, name, bySecurity[name].text())
	}
	return fmt.Sprintf(`{%s,"bySecurity":[%s]}`, total.text(), strings.Join(names, ","))
}

func TestSummariesEqualTheOracle(t *testing.T) {
	rnd := seeded(t)
	v := newVenue(t)
	(&flow{v: v, rnd: rnd}).steps(max(scaled(3_000), 1_000))
	o := v.options()
	oracle := newOracle(o.Window, v.events)
	// Rows by hand: one edited, one without a fill, one without a security.
	rows := slices.Clone(v.trades)
	rows[5].Quantity++
	last := rows[len(rows)-1]
	odd := []store.Trade{last, last}
	for i := range odd {
		odd[i].Seq += uint64(i) + 10
		odd[i].ID = matcher.TradeID(odd[i].Seq)
	}
	odd[1].Security = "ZZZ"
	reports := make([]string, len(rows))
	for i, row := range rows {
		reports[i] = oracle.report(row)
	}
	id, _ := securityID(rows[5].Security)
	reports[5] = oracle.render(rows[5], id, 0, nil)
	id, _ = securityID(last.Security)
	reports = append(reports, oracle.render(odd[0], id, 0, nil), oracle.render(odd[1], 99, 0, nil))
	rows = append(rows, odd...)

	storetest.EachInFull(t, func(t *testing.T, db *store.DB) {
		o := o
		o.DB, o.Dir = db, t.TempDir()
		insert(t, db, rows)
		x := open(t, o)
		follow(t, x, v)
		queries := []SummaryQuery{{}, {Accounts: []uint32{}}, {Accounts: []uint32{2}},
			{Accounts: []uint32{1, 5, 77}}}
		for range 10 {
			from, to := rows[rnd.IntN(len(rows))].ExecutedAt, rows[rnd.IntN(len(rows))].ExecutedAt
			queries = append(queries, SummaryQuery{FromMillis: from}, SummaryQuery{ToMillis: to},
				SummaryQuery{FromMillis: from, ToMillis: to, Accounts: []uint32{1, 2, 3}})
		}
		for _, q := range queries {
			var chosen []string
			for i, row := range rows {
				if (q.Accounts == nil || slices.Contains(q.Accounts, row.AccountID)) &&
					row.ExecutedAt >= q.FromMillis &&
					(q.ToMillis == 0 || row.ExecutedAt < q.ToMillis) {
					chosen = append(chosen, reports[i])
				}
			}
			s := must.Get(x.Summary(t.Context(), q))(t)
			if got, want := string(s.AppendJSON(nil)), summarize(t, chosen); got != want {
				t.Errorf("%+v\n got %s\nwant %s", q, got, want)
			}
		}
	})
}

func TestASummaryCountsWhatHasNoBenchmarkAndDoesNotAverageIt(t *testing.T) {
	v := newVenue(t)
	v.at(0).must(limit(1, ddd, matcher.Sell, 5, 50*unit))
	v.at(10).must(limit(2, ddd, matcher.Buy, 5, 50*unit)) // no price before
	v.at(1010).must(tick(ddd, 55*unit))
	v.at(2010).must(trade(1, ddd, matcher.Buy, 1)) // TWAP 52.5
	db := storetest.Open(t, store.SQLite)
	insert(t, db, v.trades)
	o := v.options()
	o.DB = db
	x := open(t, o)
	follow(t, x, v)
	s, err := x.Summary(t.Context(), SummaryQuery{})
	const costs = `"trades":3,"withBenchmark":1,"averageSlippageBps":476.19,` +
		`"averageArrivalSlippageBps":0`
	want := `{` + costs + `,"bySecurity":[{"security":"DDD",` + costs + `}]}`
	if got := string(s.AppendJSON(nil)); err != nil || got != want {
		t.Errorf("%v\n got %s\nwant %s", err, got, want)
	}
	s, err = x.Summary(t.Context(), SummaryQuery{ToMillis: 1})
	const none = `{"trades":0,"withBenchmark":0,"averageSlippageBps":null,` +
		`"averageArrivalSlippageBps":null,` +
		`"bySecurity":[]}`
	if got := string(s.AppendJSON(nil)); err != nil || got != none {
		t.Errorf("%v\n got %s\nwant %s", err, got, none)
	}
}

func TestASummaryWaitsForTheIndexAndStopsWithItsContext(t *testing.T) {
	v := newVenue(t)
	v.at(0).must(tick(aaa, 100*unit))
	v.at(second).must(trade(1, aaa, matcher.Buy, 3))
	db := storetest.Open(t, store.SQLite)
	insert(t, db, v.trades)
	o := v.options()
	o.DB, o.Patience = db, 1
	x := open(t, o)
	if _, err := x.Summary(t.Context(), SummaryQuery{}); !errors.Is(err, ErrBehind) {
		t.Errorf("got %v, want ErrBehind", err)
	}
	follow(t, x, v)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := x.Summary(ctx, SummaryQuery{}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want the context's end", err)
	}
	if s, err := x.Summary(t.Context(), SummaryQuery{}); err != nil || s.Trades != 1 ||
		s.WithBenchmark != 1 {
		t.Errorf("%+v, %v", s, err)
	}
}
