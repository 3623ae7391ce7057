package gate

import (
	"errors"
	"math/rand/v2"
	"testing"

	"posttrade/matcher"
	"posttrade/ring/must"
)

// randomLimits returns the commands of a change of some limits, of all accounts or of one.
func randomLimits(random *rand.Rand, version int64) []matcher.Command {
	c := matcher.LimitsChange{Version: version, Set: matcher.LimitSet(random.IntN(128))}
	if random.IntN(3) > 0 {
		c.ForAccount, c.AccountID = true, []uint32{0, 1, 2, 3, 60, 61, 62}[random.IntN(7)]
		c.Remove = matcher.LimitSet(random.IntN(128)) &^ c.Set
	}
	least := matcher.RiskLimits{10, 1_000 * unit, 1 << 30, 1 << 50, 1 << 50, 1_000, 100}
	for id := range c.Values {
		if c.Set.Has(matcher.LimitID(id)) {
			c.Values[id] = least[id] * (1 + random.Int64N(60))
		}
	}
	return c.AppendTo(nil)
}

// sameLimits compares what the gate shows with the engine.
func sameLimits(t *testing.T, g *Gate, engine *matcher.Engine) {
	t.Helper()
	image, own := g.Snapshot(), 0
	if image.Limits.Values != engine.RiskLimits() || image.PolicyVersion != engine.Policy().Version {
		t.Fatalf("limits %v of version %d, engine %v of %d", image.Limits.Values, image.PolicyVersion,
			engine.RiskLimits(), engine.Policy().Version)
	}
	engine.EachOwnLimits(func(o matcher.OwnLimits) bool {
		own++
		for _, a := range image.Accounts {
			if a.ID == o.AccountID && (a.Limits == nil || *a.Limits != LimitValues{o.Own, o.Values}) {
				t.Fatalf("account %d: %+v, engine %+v", a.ID, a.Limits, o)
			}
		}
		return true
	})
	for _, a := range image.Accounts {
		if a.Limits != nil {
			own--
		}
	}
	if own != 0 {
		t.Fatalf("%d more accounts have limits of their own in the engine", own)
	}
}

// A control of an account does not touch its limits, nor a change of all limits those it has.
func TestOwnLimitsStay(t *testing.T) {
	g := newTestGate(t)
	own := matcher.OwnLimits{AccountID: 1, Own: 1 << matcher.LimitOrderQty,
		Values: matcher.RiskLimits{5}}
	judge := func(name string, qty int32, want matcher.RiskReason) {
		t.Helper()
		c := order()
		c.Qty = qty
		if got := g.Screen(&c); got != want {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
	must := func(err error) {
		t.Helper()
		must.OK(t, err)
	}
	must(g.SetOwnLimits(own))
	judge("its own", 6, matcher.OrderSize)
	must(g.SetAccount(1, true, 9))
	judge("after a control", 6, matcher.OrderSize)
	all := g.RiskLimits()
	all[matcher.LimitOrderQty], all[matcher.LimitOrderNotional] = 2, 300*unit
	g.SetRiskLimits(all)
	judge("its own, larger than all accounts'", 3, matcher.Accepted)
	judge("all accounts'", 4, matcher.OrderNotional)
	own.Own, own.Values = 0, matcher.RiskLimits{}
	must(g.SetOwnLimits(own))
	judge("without its own", 3, matcher.OrderSize)
	own.AccountID = 77
	if err := g.SetOwnLimits(own); !errors.Is(err, ErrAccount) {
		t.Errorf("an unknown account: %v", err)
	}
}
