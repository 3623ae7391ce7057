package asof

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"posttrade/journal"
	"posttrade/matcher"
)

// testGenesis has two accounts, two securities and small tables.
func testGenesis() *matcher.Genesis {
	return &matcher.Genesis{
		Format: matcher.GenesisFormat, TickPx: 1000,
		Accounts:   []matcher.GenesisAccount{{ID: 1, Enabled: true}, {ID: 2, Enabled: true}},
		Securities: []matcher.GenesisSecurity{{Ticker: "AAA", Enabled: true}, {Ticker: "BBB", Enabled: true}},
		Limits: matcher.Limits{
			MaxOrderQty: 1000, MaxOrderNotional: 1e14, MaxPositionQty: 100_000,
			MaxConcentrationNotional: 1e15, CreditLimit: 1e15, PriceMaxAgeMillis: 30_000,
			PriceCollarBps: 5000, IdempotencyCapacity: 256, MaxAccounts: 16, MaxSecurities: 16,
			MaxContracts: 64, MaxOpenOrders: 4096, RetainedOrders: 4096,
		},
	}
}

// record writes a journal with n commands, a few to a block, and returns the state of the engine
// after each of them.
func record(t *testing.T, dir string, n int) (j *journal.Journal, states [][32]byte) {
	t.Helper()
	g := testGenesis()
	j, err := journal.Open(dir, journal.Options{})
	if err == nil {
		err = j.Create(g.Marshal())
	}
	if err != nil {
		t.Fatal(err)
	}
	e, err := matcher.New(g)
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	states = append(states, e.StateHash())
	rnd := rand.New(rand.NewPCG(1, 2))
	var block journal.Block
	out := matcher.NewOutlet(1024, func(events []matcher.Event) {
		for i := range events {
			block.Add(&events[i], nil)
		}
	})
	for i := range n {
		c := matcher.NewCommand(matcher.OrderNew)
		c.EventTimeMillis = int64(1000 + i)
		c.AccountID, c.SecurityID = 1+rnd.Uint32N(2), 1+rnd.Uint32N(2)
		c.Side, c.Qty = matcher.Side(rnd.IntN(2)), int32(1+rnd.IntN(20))
		c.LimitPx = int64(95+rnd.IntN(11)) * matcher.PriceScale
		if rnd.IntN(5) == 0 {
			c = matcher.NewCommand(matcher.OrderCancel)
			c.EventTimeMillis, c.AccountID = int64(1000+i), 1+rnd.Uint32N(2)
			c.OrderRef = 1 + rnd.Uint32N(uint32(i+1))
		}
		e.Apply(&c, out)
		out.Flush()
		states = append(states, e.StateHash())
		if i%7 == 6 || i == n-1 {
			commit(t, j, &block)
		}
	}
	return j, states
}
