package inspect

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"posttrade/journal/asof"
	"posttrade/journal/asof/asoftest"
	"posttrade/matcher"
	"posttrade/ring/must"
)

// onFirst is a writer that calls do at its first write.
type onFirst struct {
	do   func()
	text bytes.Buffer
}

func (w *onFirst) Write(p []byte) (int, error) {
	if w.text.Len() == 0 {
		w.do()
	}
	return w.text.Write(p)
}

// What cannot be read is no change: Diff ends with the error, and says of nothing that it is new or
// no longer kept.
func TestDiffEndsWithWhatItCannotRead(t *testing.T) {
	t.Run("context", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		w := &onFirst{do: cancel}
		err := open(t).Diff(ctx, w, 2, 6, nil)
		if !errors.Is(err, context.Canceled) || strings.Count(w.text.String(), "\n") != 1 {
			t.Errorf("%v, printed:\n%s", err, &w.text)
		}
	})
	t.Run("history", func(t *testing.T) {
		p := open(t)
		w := &onFirst{do: func() { must.OK(t, p.h.Close()) }}
		err := p.Diff(t.Context(), w, 2, 6, nil)
		if !errors.Is(err, asof.ErrClosed) || strings.Count(w.text.String(), "\n") != 1 {
			t.Errorf("%v, printed:\n%s", err, &w.text)
		}
	})
}

// A position is found on every page of the account's list.
func TestDiffFindsAPositionBeyondTheFirstPage(t *testing.T) {
	const securities = 1002 // a page has 1000 at most
	dir := t.TempDir()
	g := &matcher.Genesis{
		Format: matcher.GenesisFormat, TickPx: 1000,
		Accounts: []matcher.GenesisAccount{{ID: 1, Enabled: true}, {ID: 2, Enabled: true}},
		Limits: matcher.Limits{
			MaxOrderQty: 50, MaxOrderNotional: 1e14, MaxPositionQty: 1000,
			MaxConcentrationNotional: 1e15, CreditLimit: 1e15, PriceMaxAgeMillis: 30_000,
			PriceCollarBps: 5000, IdempotencyCapacity: 64, MaxAccounts: 8, MaxSecurities: 1024,
			MaxContracts: 8, MaxOpenOrders: 64, RetainedOrders: 64,
		},
	}
	for i := range securities {
		g.Securities = append(g.Securities,
			matcher.GenesisSecurity{Ticker: fmt.Sprintf("S%d", i+1), Enabled: true})
	}
	w := asoftest.New(t, filepath.Join(dir, "journal"), g)
	w.PerBlock = 500
	for i := range securities {
		security := uint32(i + 1)
		do := func(c matcher.Command) {
			c.SecurityID, c.EventTimeMillis = security, 1_772_445_600_000
			w.Do(c)
		}
		tick := matcher.NewCommand(matcher.PriceTick)
		tick.PriceTicks = 100 * unit
		do(tick)
		for account, side := range []matcher.Side{matcher.Sell, matcher.Buy} {
			c := matcher.NewCommand(matcher.OrderNew)
			c.AccountID, c.Side, c.Qty, c.LimitPx = uint32(account+1), side, 5, 101*unit
			do(c)
		}
	}
	w.Settle()
	p := must.Get(Open(dir, ""))(t)
	defer func() { must.OK(t, p.Close()) }()
	head := p.h.Head()
	var b bytes.Buffer
	must.OK(t, p.Diff(t.Context(), &b, head-2, head, []string{"account", "2"}))
	want := fmt.Sprintf("position 2 S%d: new, accountId 2, security S%d, quantity 5, averageCost 101"+
		"  (by %d)\n", securities, securities, head)
	if !strings.Contains(b.String(), want) {
		t.Errorf("diff lacks %q:\n%s", want, &b)
	}
}

// Limits of all accounts are the policy's, own limits the account's, also when they are removed. A
// change that is refused is none.
func TestDiffShowsLimits(t *testing.T) {
	dir := t.TempDir()
	w := asoftest.New(t, filepath.Join(dir, "journal"), &matcher.Genesis{
		Format: matcher.GenesisFormat, TickPx: 1000,
		Accounts:   []matcher.GenesisAccount{{ID: 1, Enabled: true}, {ID: 2, Enabled: true}},
		Securities: []matcher.GenesisSecurity{{Ticker: "AAA", Enabled: true}},
		Limits: matcher.Limits{
			MaxOrderQty: 50, MaxOrderNotional: 1e14, MaxPositionQty: 1000, MaxConcentrationNotional: 1e15,
			CreditLimit: 1e15, PriceMaxAgeMillis: 30_000, PriceCollarBps: 5000, IdempotencyCapacity: 64,
			MaxAccounts: 8, MaxSecurities: 8, MaxContracts: 8, MaxOpenOrders: 64, RetainedOrders: 64,
		},
	})
	limits := func(c matcher.LimitsChange) {
		for _, cmd := range c.AppendTo(nil) {
			w.Do(cmd)
		}
	}
	const size, collar = matcher.LimitOrderQty, matcher.LimitCollar
	set := matcher.LimitSet(1<<size | 1<<collar)
	limits(matcher.LimitsChange{Version: 1, Set: set, // 1, 2
		Values: matcher.RiskLimits{size: 60, collar: 4000}})
	limits(matcher.LimitsChange{Version: 2, ForAccount: true, AccountID: 2, Set: set, // 3, 4
		Values: matcher.RiskLimits{size: 7, collar: 100}})
	limits(matcher.LimitsChange{Version: 3, ForAccount: true, AccountID: 2, Remove: set}) // 5, 6
	limits(matcher.LimitsChange{Version: 1, Set: 1 << size,                               // 7, refused
		Values: matcher.RiskLimits{size: 70}})
	w.Settle()
	p := must.Get(Open(dir, ""))(t)
	defer func() { must.OK(t, p.Close()) }()
	all := "policy: policyVersion 0 -> 1, limits.maxOrderQuantity 50 -> 60," +
		" limits.priceCollarBps 5000 -> 4000  (by 2)\n"
	own := "account 2: limits.maxOrderQuantity - -> 7, limits.priceCollarBps - -> 100  (by 4)\n"
	for _, tt := range []struct {
		from, to      uint64
		account, want string
	}{
		{0, 2, "", all + "2 commands, 1 things changed\n"},
		{2, 4, "", own + "2 commands, 1 things changed\n"},
		{2, 4, "account 2", own + "2 commands, 1 things changed\n"},
		{2, 4, "account 1", "2 commands, 0 things changed\n"},
		{4, 6, "", "account 2: limits.maxOrderQuantity 7 -> -, limits.priceCollarBps 100 -> -  (by 6)\n" +
			"2 commands, 1 things changed\n"},
		{6, 7, "", "1 commands, 0 things changed\n"},
	} {
		var b bytes.Buffer
		must.OK(t, p.Diff(t.Context(), &b, tt.from, tt.to, strings.Fields(tt.account)))
		if b.String() != tt.want {
			t.Errorf("diff %d to %d %s:\n%s\nwant\n%s", tt.from, tt.to, tt.account, &b, tt.want)
		}
	}
}
