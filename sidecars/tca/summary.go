package tca

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"posttrade/matcher/int128"
	"posttrade/matcher/strictjson"
	"posttrade/sidecars/store"
)

// SummaryQuery selects the trades of a summary.
//
// The zero query selects every trade. Times are epoch milliseconds of executed_at.
type SummaryQuery struct {
	Accounts   []uint32 // nil: all; empty: none
	FromMillis int64    // executed at or after; 0: open
	ToMillis   int64    // executed before; 0: open
}

// Summary aggregates the reports of many trades. A trade with a TWAP has a benchmark; one without
// is counted and not averaged. The average of the arrival slippages covers the trades that have
// one.
//
// An average is that of the reported, rounded values. It is exact, rounded half up to two decimals,
// and absent when there is nothing to average.
type Summary struct {
	Costs
	BySecurity []SecurityCosts // ascending by ticker
}

// Costs are the counts and averages of a set of trades.
type Costs struct {
	Trades                    uint64
	WithBenchmark             uint64
	AverageSlippageBps        Bps
	AverageArrivalSlippageBps Bps
}

// SecurityCosts are the Costs of one security's trades.
type SecurityCosts struct {
	Security string
	Costs
}

// tally is the data of an average.
//
// The sums are 128 bits wide: they do not overflow for any number of trades that a table can hold.
type tally struct {
	trades     uint64
	twaps      uint64
	twapSum    int128.Int
	arrivals   uint64
	arrivalSum int128.Int
}

func (a *tally) add(r *Report) {
	a.trades++
	if r.SlippageBps.known {
		a.twaps++
		a.twapSum = a.twapSum.Add(r.SlippageBps.hundredths)
	}
	if r.ArrivalSlippageBps.known {
		a.arrivals++
		a.arrivalSum = a.arrivalSum.Add(r.ArrivalSlippageBps.hundredths)
	}
}

func (a *tally) costs() Costs {
	c := Costs{Trades: a.trades, WithBenchmark: a.twaps}
	if a.twaps > 0 {
		c.AverageSlippageBps = Bps{true, average(a.twapSum, a.twaps)}
	}
	if a.arrivals > 0 {
		c.AverageArrivalSlippageBps = Bps{true, average(a.arrivalSum, a.arrivals)}
	}
	return c
}

// summing is the sums of a Summary under way.
//
// It lives inside of one database read.
type summing struct {
	t          *TCA
	total      tally
	bySecurity map[string]*tally
	complete   uint64 // the index has every fill up to this trade sequence, or never
}

// add adds a trade's costs.
//
// It waits for the index at most once in a summary: what it waits for covers all later rows as
// well.
func (s *summing) add(ctx context.Context, trade *store.Trade) error {
	if s.total.trades%1024 == 0 && ctx.Err() != nil {
		return ctx.Err()
	}
	r, reached, err := s.t.report(trade, s.complete)
	if !reached && err == nil && s.complete == never {
		// The rows were read at one moment, before the present durable head. When the index has reached
		// that head, it has every fill that the rows can come from.
		if s.complete, err = s.t.await(ctx); err != nil {
			return err
		}
		r, reached, err = s.t.report(trade, s.complete)
	}
	if err != nil {
		return err
	}
	if !reached {
		return fmt.Errorf("tca: report trade=%q: %w", trade.ID, ErrBehind)
	}
	s.total.add(&r)
	of := s.bySecurity[r.Security]
	if of == nil {
		of = &tally{}
		s.bySecurity[strings.Clone(r.Security)] = of
	}
	of.add(&r)
	return nil
}

// Summary reports on every trade that the query selects, from one consistent read of the table.
//
// Errors: those of the database and of Report; the context's. Cost: one pass over the selected
// rows, about a microsecond per row in addition to the database's own; memory for one line per
// security.
//
// It holds one of the database's read slots the whole time. Any goroutine.
func (t *TCA) Summary(ctx context.Context, q SummaryQuery) (Summary, error) {
	if t.o.DB == nil {
		return Summary{}, errors.New("tca: summary without a database")
	}
	var sums summing
	err := t.o.DB.Read(ctx, func(tx *store.Tx) error {
		// The read may start again.
		sums = summing{t: t, bySecurity: map[string]*tally{}, complete: never}
		filter := store.TradeFilter{Accounts: q.Accounts, FromMillis: q.FromMillis,
			ToMillis: q.ToMillis, BeforeSeq: store.FirstExternal} // bookings from outside have no fill
		return tx.Trades(filter, func(trade *store.Trade) error { return sums.add(ctx, trade) })
	})
	if err != nil {
		return Summary{}, fmt.Errorf("tca: summary: %w", err)
	}
	s := Summary{Costs: sums.total.costs()}
	for security, of := range sums.bySecurity {
		s.BySecurity = append(s.BySecurity, SecurityCosts{security, of.costs()})
	}
	slices.SortFunc(s.BySecurity, func(a, b SecurityCosts) int {
		return strings.Compare(a.Security, b.Security)
	})
	return s, nil
}

// AppendJSON appends the summary as a JSON object.
//
// The members are those of the HTTP interface, in its order.
func (s *Summary) AppendJSON(b []byte) []byte {
	b = s.Costs.appendFields(append(b, '{'))
	b = append(b, `,"bySecurity":[`...)
	for i := range s.BySecurity {
		if i > 0 {
			b = append(b, ',')
		}
		b = strictjson.AppendString(append(b, `{"security":`...), s.BySecurity[i].Security)
		b = s.BySecurity[i].Costs.appendFields(append(b, ','))
		b = append(b, '}')
	}
	return append(b, "]}"...)
}

func (c *Costs) appendFields(b []byte) []byte {
	b = strconv.AppendUint(append(b, `"trades":`...), c.Trades, 10)
	b = strconv.AppendUint(append(b, `,"withBenchmark":`...), c.WithBenchmark, 10)
	b = c.AverageSlippageBps.AppendJSON(append(b, `,"averageSlippageBps":`...))
	return c.AverageArrivalSlippageBps.AppendJSON(append(b, `,"averageArrivalSlippageBps":`...))
}
