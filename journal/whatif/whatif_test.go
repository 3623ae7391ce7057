package whatif

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/big"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"

	"posttrade/journal/asof"
	"posttrade/journal/asof/asoftest"
	"posttrade/matcher"
	"posttrade/ring/must"
)

const unit = matcher.PriceScale

func testGenesis() *matcher.Genesis {
	g := &matcher.Genesis{
		Format: matcher.GenesisFormat, TickPx: 1000,
		Securities: []matcher.GenesisSecurity{{Ticker: "AAA", Enabled: true},
			{Ticker: "BBB", Enabled: true}},
		Limits: matcher.Limits{
			MaxOrderQty: 60, MaxOrderNotional: 6_000 * unit, MaxPositionQty: 300,
			MaxConcentrationNotional: 25_000 * unit, CreditLimit: 30_000 * unit,
			PriceMaxAgeMillis: 300, PriceCollarBps: 1_000, IdempotencyCapacity: 64, MaxAccounts: 16,
			MaxSecurities: 16, MaxContracts: 4000, MaxOpenOrders: 4000, RetainedOrders: 500,
		},
	}
	for id := range uint32(5) {
		g.Accounts = append(g.Accounts, matcher.GenesisAccount{ID: id + 1, Enabled: true})
	}
	return g
}

// randomCommands writes a busy history, some of it refused by a gate that knew more or less than
// the engine.
func randomCommands(w *asoftest.Writer, rnd *rand.Rand, n int) (all []matcher.Command) {
	now, version := int64(1_772_445_600_000), int64(0)
	var live []matcher.Event
	for len(all) < n {
		c := matcher.NewCommand(matcher.OrderNew)
		c.AccountID, c.SecurityID = 1+rnd.Uint32N(5), 1+rnd.Uint32N(2)
		c.Side, c.Qty = matcher.Side(rnd.IntN(2)), 1+rnd.Int32N(40)
		c.LimitPx = (96 + rnd.Int64N(9)) * unit
		now += rnd.Int64N(8)
		var of matcher.Event
		if len(live) > 0 {
			of = live[rnd.IntN(len(live))]
		}
		switch k := rnd.IntN(100); {
		case k < 4:
			c.Qty = 50 + rnd.Int32N(20)
		case k < 8:
			c.LimitPx = 0
		case k < 12:
			c.Flags = []uint16{matcher.FlagIOC, matcher.FlagFOK, matcher.FlagPostOnly}[rnd.IntN(3)]
		case k < 15:
			c.PriceTicks = 1 + rnd.Int64N(40)
		case k < 18: // the gate refuses as the engine would, or knows something else
			c.OrderRef = uint32([]matcher.RiskReason{matcher.OrderSize, matcher.PriceStale,
				matcher.NotEntitled}[rnd.IntN(3)])
			c.Qty = 70
		case k < 22:
			c.Type, c.LimitPx = matcher.TradeNew, 0
		case k < 26:
			c = matcher.NewCommand(matcher.PriceTick)
			c.SecurityID, c.PriceTicks = 1+rnd.Uint32N(2), (97+rnd.Int64N(7))*unit
		case k < 45 && len(live) > 0:
			c = matcher.NewCommand(matcher.OrderCancel)
			c.OrderRef, c.AccountID = of.OrderRef, of.AccountID
		case k < 53 && len(live) > 0:
			c.Type, c.OrderRef = matcher.OrderReplace, of.OrderRef
			c.AccountID, c.SecurityID, c.Side = of.AccountID, of.SecurityID, of.Side
		case k < 54 && len(live) > 0:
			c.Type, c.OrderRef, c.AccountID, c.Qty = matcher.ForceFill, of.OrderRef, of.AccountID, 1
		case k < 57:
			c = (&matcher.ContractTerms{AccountID: 1 + rnd.Uint32N(5), Notional: 100 + rnd.Int32N(7000),
				FixedRate: 40_000, Effective: 20_000, Maturity: 21_000}).Command()
		case k < 58:
			version++
			c = matcher.NewCommand(matcher.PolicyControl)
			c.PriceTicks, c.Qty, c.LimitPx = version, 250+rnd.Int32N(100), (20_000+rnd.Int64N(9_000))*unit
		case k < 59:
			c = matcher.NewCommand(matcher.SecurityControl)
			c.SecurityID, c.Side = 1+rnd.Uint32N(2), 1|matcher.Side(rnd.IntN(3)/2)<<1
		case k < 60:
			c = matcher.NewCommand(matcher.RestrictionControl)
			c.SecurityID, c.Side = 1+rnd.Uint32N(2), matcher.Side(rnd.IntN(9)/8)
		case k < 61:
			now += 250 - 200*rnd.Int64N(3) // the clock may be set back
		case k < 62: // all accounts, or one of them
			version++
			change := matcher.LimitsChange{Version: version, Set: 1<<matcher.LimitOrderQty |
				1<<matcher.LimitCollar, ForAccount: rnd.IntN(2) == 0}
			change.Values[matcher.LimitOrderQty] = 40 + rnd.Int64N(40)
			change.Values[matcher.LimitCollar] = 200 + rnd.Int64N(900)
			if change.ForAccount {
				change.AccountID = 5
			}
			parts := change.AppendTo(nil)
			for _, part := range parts[:len(parts)-1] {
				part.EventTimeMillis = now
				w.Do(part)
				all = append(all, *w.Firsts[len(w.Firsts)-1].Cmd())
			}
			c = parts[len(parts)-1]
		}
		c.EventTimeMillis = now
		if ev := w.Do(c); ev.Kind == matcher.EventAccepted {
			live = append(live, ev)
			live = live[max(0, len(live)-30):]
		}
		all = append(all, *w.Firsts[len(w.Firsts)-1].Cmd())
	}
	w.Settle()
	return all[:n]
}

// TestChangesAgainstTheOracle changes a random history in every way that there is.
func TestChangesAgainstTheOracle(t *testing.T) {
	w := asoftest.New(t, t.TempDir(), testGenesis())
	const n = 6000
	all := randomCommands(w, rand.New(rand.NewPCG(5, 3)), n)
	h := must.Get(asof.New(w.Journal, asof.Options{}))(t)
	defer h.Close()
	oracle := tell(t, all, n, 5000)
	set := func(l matcher.LimitID, v int64) Changes {
		return Changes{Limits: map[matcher.LimitID]int64{l: v}}
	}
	for name, c := range map[string]Changes{
		"no change":        {},
		"order quantity":   set(matcher.LimitOrderQty, 20),
		"wider quantity":   set(matcher.LimitOrderQty, 1000),
		"order notional":   set(matcher.LimitOrderNotional, 2_000*unit),
		"position":         set(matcher.LimitPosition, 60),
		"concentration":    set(matcher.LimitConcentration, 5_000*unit),
		"credit":           set(matcher.LimitCredit, 6_000*unit),
		"price age":        set(matcher.LimitPriceAge, 5),
		"collar":           set(matcher.LimitCollar, 150),
		"no collar":        set(matcher.LimitCollar, 0),
		"without accounts": {Without: []uint32{2, 4}},
		"halt":             {Acts: []Act{Halt(2500, 1), Halt(2600, 2), Halt(3300, 1), Halt(4100, 2)}},
		"price": {Acts: []Act{Price(3000, 2, 60*unit), Price(2100, 1, 130*unit),
			Price(2200, 1, 80*unit), Price(2300, 2, 112*unit), Price(4000, 1, 90*unit),
			Price(4000, 2, 110*unit), Price(4500, 1, 115*unit)}},
		"latency": {Latency: []Latency{{AccountID: 3, Millis: 5}, {AccountID: 5, Millis: 40}}},
		"together": {Limits: map[matcher.LimitID]int64{matcher.LimitOrderQty: 30}, Without: []uint32{1},
			Acts: []Act{Halt(2200, 2)}, Latency: []Latency{{AccountID: 2, Millis: 12}}},
	} {
		for _, r := range [][2]uint64{{1, n}, {2000, 5000}} {
			t.Run(fmt.Sprint(name, " from ", r[0]), func(t *testing.T) {
				want, made := oracle.expected(r[0], r[1], &c)
				got, result := found(t, h, r[0], r[1], c)
				if result.Commands != r[1]-r[0]+1 || result.To != r[1] {
					t.Errorf("%+v", result)
				}
				if (len(want) == 0) != (name == "no change") {
					t.Errorf("the oracle finds %d differences", len(want))
				}
				if !slices.Equal(got, want) {
					i := 0
					for i < len(got) && i < len(want) && got[i] == want[i] {
						i++
					}
					t.Fatalf("%d differences, want %d; the first that differ:\n%s\nwant\n%s", len(got),
						len(want), first(got[i:]), first(want[i:]))
				}
				text := ""
				for _, p := range result.Accounts {
					text += fmt.Sprintf("account %d: %s -> %s\n", p.AccountID, p.Before, p.After)
				}
				if text != made {
					t.Errorf("profit and loss:\n%swant\n%s", text, made)
				}
			})
		}
	}
}

// TestProfitIsCashAndPositions checks profit and loss on a small history.
func TestProfitIsCashAndPositions(t *testing.T) {
	w := asoftest.New(t, t.TempDir(), testGenesis())
	order := func(account uint32, side matcher.Side, qty int32, px int64) {
		c := matcher.NewCommand(matcher.OrderNew)
		c.AccountID, c.SecurityID, c.Side, c.Qty, c.LimitPx = account, 1, side, qty, px*unit
		w.Do(c)
	}
	order(1, matcher.Sell, 10, 100)
	order(2, matcher.Buy, 10, 100) // 2: trades at 100
	order(3, matcher.Sell, 5, 104)
	order(1, matcher.Buy, 5, 104) // 4: trades at 104
	w.Settle()
	h := must.Get(asof.New(w.Journal, asof.Options{}))(t)
	defer h.Close()
	_, r := found(t, h, 1, 4, Changes{Without: []uint32{3}})
	want := "1 -40 0; 2 40 0; "
	got := ""
	for _, p := range r.Accounts {
		got += fmt.Sprintf("%d %s %s; ", p.AccountID, p.Before.Div(p.Before, big.NewInt(unit)),
			p.After.Div(p.After, big.NewInt(unit)))
	}
	if got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// TestStoppedRunSaysHowFarItCame ends the context, and has the report fail.
func TestStoppedRunSaysHowFarItCame(t *testing.T) {
	w := asoftest.New(t, t.TempDir(), testGenesis())
	randomCommands(w, rand.New(rand.NewPCG(1, 1)), 9000)
	h, err := asof.New(w.Journal, asof.Options{})
	must.OK(t, err)
	defer h.Close()
	ctx, stop := context.WithCancel(t.Context())
	r, err := Run(ctx, h, Options{From: 1, To: 9000, Report: func(Difference) error { return nil },
		Progress: func(uint64) { stop() }})
	if !errors.Is(err, context.Canceled) || r.To == 0 || r.To == 9000 || r.Commands != r.To {
		t.Errorf("%+v %v", r, err)
	}
	full := errors.New("no space left")
	_, err = Run(t.Context(), h, Options{From: 1, To: 9000,
		Report:  func(Difference) error { return full },
		Changes: Changes{Without: []uint32{1}}})
	if !errors.Is(err, full) || errors.Is(err, context.Canceled) {
		t.Error(err) // it is not the caller's stop
	}
	for _, bad := range [][2]uint64{{0, 5}, {5, 4}, {1, 9001}} {
		if _, err := Run(t.Context(), h, Options{From: bad[0], To: bad[1]}); err == nil {
			t.Errorf("the range %v was taken", bad)
		}
	}
}

// TestACopyThatFailsHasEnded: nothing reads the engine any more when there is no copy of it, so it
// may be closed.
func TestACopyThatFailsHasEnded(t *testing.T) {
	ended := false
	e, err := copyOf(testGenesis(), func(w io.Writer) error {
		block := make([]byte, 1<<10)
		for {
			if _, err := w.Write(block); err != nil { // zeros are no snapshot
				runtime.Gosched()
				ended = true
				return err
			}
		}
	})
	if e != nil || err == nil || !ended {
		t.Errorf("%v %v, ended: %t", e, err, ended)
	}
}

// TestNoChangeNoDifference decides a million commands anew.
func TestNoChangeNoDifference(t *testing.T) {
	w := asoftest.New(t, t.TempDir(), testGenesis())
	w.PerBlock = 4096
	const n = 1_000_000
	randomCommands(w, rand.New(rand.NewPCG(8, 8)), n)
	h := must.Get(asof.New(w.Journal, asof.Options{}))(t)
	defer h.Close()
	diff, r := found(t, h, 1, n, Changes{})
	if len(diff) != 0 || r.Orders+r.Appeared+r.Vanished+r.Changed != 0 || r.Commands != n {
		t.Errorf("%+v: %s", r, first(diff))
	}
	for _, p := range r.Accounts {
		if p.Change().Sign() != 0 {
			t.Errorf("account %d differs by %s", p.AccountID, p.Change())
		}
	}
}
