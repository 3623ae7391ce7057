package tca_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"posttrade/matcher"
	"posttrade/sidecars/store"
	"posttrade/sidecars/tca"
)

// replayed is a shadow over commands in memory; journal.Shadow reads them from disk.
type replayed struct {
	*matcher.Engine
	commands []matcher.Command
}

func (r *replayed) Applied() uint64 { return r.AppliedSeq() }

func (r *replayed) Follow(_ context.Context, to uint64, fn func([]matcher.Event) error) error {
	var events []matcher.Event
	out := matcher.NewOutlet(64, func(e []matcher.Event) { events = append(events, e...) })
	if _, err := r.ReplayBatch(r.commands[r.Applied():to], out); err != nil {
		return err
	}
	out.Flush()
	if fn == nil {
		return nil
	}
	return fn(events)
}

// A price of 100 for four minutes and of 103 for the fifth, then a purchase of
// 103.5: it arrived at 103, and costs more than the average of the five minutes.
func Example() {
	genesis := &matcher.Genesis{
		Format:     matcher.GenesisFormat,
		Accounts:   []matcher.GenesisAccount{{ID: 1, Enabled: true}, {ID: 2, Enabled: true}},
		Securities: []matcher.GenesisSecurity{{Ticker: "IBM", Enabled: true}},
		TickPx:     1000,
		Limits: matcher.Limits{
			MaxOrderQty: 1000, MaxOrderNotional: 1e15, MaxPositionQty: 1e6, MaxConcentrationNotional: 1e15,
			CreditLimit:       1e15,
			PriceMaxAgeMillis: 1e6, IdempotencyCapacity: 8, MaxAccounts: 2, MaxSecurities: 1,
			MaxContracts: 1, MaxOpenOrders: 8,
		},
	}
	begin := time.Date(2026, 11, 20, 14, 30, 0, 0, time.UTC)
	var commands []matcher.Command
	say := func(after time.Duration, c matcher.Command) {
		c.EventTimeMillis, c.InputSeq = begin.Add(after).UnixMilli(), uint64(len(commands)+1)
		c.SecurityID = 1
		commands = append(commands, c)
	}
	tick, order := matcher.NewCommand(matcher.PriceTick), matcher.NewCommand(matcher.OrderNew)
	tick.PriceTicks = 100 * matcher.PriceScale
	say(0, tick)
	order.AccountID, order.Side, order.Qty, order.LimitPx = 1, matcher.Sell, 10, 103_500_000
	say(time.Minute, order)
	tick.PriceTicks = 103 * matcher.PriceScale
	say(4*time.Minute, tick)
	order.AccountID, order.Side = 2, matcher.Buy
	say(5*time.Minute, order)

	dir, err := os.MkdirTemp("", "tca")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	t, err := tca.Open(tca.Options{
		Dir: dir, Window: 5 * time.Minute, Genesis: genesis.Marshal(),
		Shadow: func(uint64) (tca.Shadow, error) {
			engine, err := matcher.New(genesis)
			return &replayed{engine, commands}, err
		},
		Durable:    func() uint64 { return uint64(len(commands)) },
		SecurityID: func(ticker string) (uint32, bool) { return 1, ticker == "IBM" },
	})
	if err != nil {
		panic(err)
	}
	defer t.Close()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- t.Run(ctx) }()

	r, err := t.Report(ctx, store.Trade{
		ID: "trd-1", Seq: 1, AccountID: 2, Security: "IBM", Side: matcher.Buy, Quantity: 10,
		Price:      103_500_000,
		ExecutedAt: begin.Add(5 * time.Minute).UnixMilli(),
	})
	fmt.Println(strings.ReplaceAll(string(r.AppendJSON(nil)), `,"`, ",\n\""), err)
	cancel()
	fmt.Println(<-done)
	// Output:
	// {"tradeId":"trd-1",
	// "accountId":2,
	// "security":"IBM",
	// "side":"Buy",
	// "quantity":10,
	// "executionPrice":103.5,
	// "arrivalPrice":103,
	// "arrivalAt":"2026-11-20T14:35:00.000Z",
	// "twap":100.6,
	// "twapWindowStart":"2026-11-20T14:30:00.000Z",
	// "twapWindowEnd":"2026-11-20T14:35:00.000Z",
	// "twapSampleCount":2,
	// "slippageBps":288.27,
	// "arrivalSlippageBps":48.54} <nil>
	// <nil>
}
