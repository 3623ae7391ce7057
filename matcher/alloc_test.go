package matcher

import (
	"testing"

	"posttrade/ring/must"
)

// Each row is a round that leaves the engine in the state for the next round.
func TestApplyDoesNotAllocate(t *testing.T) {
	g := testGenesis()
	g.Limits.MaxContracts = 4096
	r := newRig(t, g)
	e := r.e
	out := NewOutlet(64, func([]Event) {})
	apply := func(c Command) uint32 {
		c.EventTimeMillis = noon
		out.Next = 0
		e.Apply(&c, out)
		return out.Slots[0].OrderRef
	}
	apply(tick(aaa, 100))
	key, version := int64(0), int64(0)
	rounds := []struct {
		name  string
		round func()
	}{
		{"ORDER_NEW and ORDER_CANCEL", func() { apply(cancel(1, apply(buy(1, 5, 100)))) }},
		{"ORDER_NEW with a key", func() { key++; apply(cancel(1, apply(keyed(buy(1, 5, 100), key)))) }},
		{"a repeated key", func() { apply(keyed(buy(1, 5, 100), key)) }},
		{"ORDER_NEW refused", func() { apply(buy(99, 5, 100)) }},
		{"crossing orders", func() {
			apply(sell(1, 5, 100))
			apply(buy(2, 5, 100))
			apply(sell(2, 5, 100))
			apply(buy(1, 5, 100))
		}},
		{"market order", func() {
			apply(sell(1, 5, 100))
			apply(market(2, Buy, 5))
			apply(buy(1, 5, 100))
			apply(market(2, Sell, 5))
		}},
		{"fill or kill", func() { apply(flags(buy(1, 5, 100), FlagFOK)) }},
		{"immediate or cancel", func() { apply(flags(buy(1, 5, 100), FlagIOC)) }},
		{"self-trade prevention", func() {
			apply(sell(1, 5, 100))
			apply(flags(buy(1, 5, 100), FlagIOC))
		}},
		{"ORDER_REPLACE", func() {
			ref := apply(buy(1, 5, 100))
			apply(replace(1, Buy, ref, 4, 100))
			apply(replace(1, Buy, ref, 6, 101))
			apply(cancel(1, ref))
		}},
		{"FORCE_FILL", func() {
			apply(force(1, apply(buy(1, 5, 100)), 5, 100))
			apply(force(1, apply(sell(1, 5, 100)), 5, 100))
		}},
		{"PRICE_TICK", func() { apply(tick(aaa, 100)) }},
		{"TRADE_NEW", func() { apply(trade(3, Buy, 5)); apply(trade(3, Sell, 5)) }},
		{"SNAPSHOT", func() { apply(NewCommand(SnapshotMark)) }},
		{"ACCOUNT_CONTROL", func() { apply(control(AccountControl, 3, 0, 1)) }},
		{"SECURITY_CONTROL", func() { apply(control(SecurityControl, 0, bbb, 1)) }},
		{"POLICY_CONTROL", func() { version++; apply(policyOf(version, 0)) }},
		{"RESTRICTION_CONTROL", func() {
			for px := range int64(20) {
				apply(buy(1, 1, 80+px))
			}
			apply(control(RestrictionControl, 0, aaa, 1))
			apply(control(RestrictionControl, 0, aaa, 0))
		}},
		{"SWAP_BOOK", func() { apply(booked(swap(), noKey)) }},
		{"SWAPTION_BOOK with a key", func() { key++; apply(booked(swaption(), key)) }},
		{"SWAPTION_BOOK repeated", func() { apply(booked(swaption(), key)) }},
		{"SWAP_BOOK refused", func() { apply(NewCommand(SwapBook)) }},
	}
	for _, round := range rounds {
		if n := testing.AllocsPerRun(200, round.round); n != 0 {
			t.Errorf("%s allocates %v times", round.name, n)
		}
		if err := e.check(); err != nil {
			t.Errorf("%s: %v", round.name, err)
		}
		if got := e.Counts().OpenOrders; got != 0 {
			t.Errorf("%s leaves %d orders open", round.name, got)
		}
	}
	if n := e.Counts().Contracts; n < 400 {
		t.Errorf("%d contracts: the rounds did not book", n)
	}
	terms := swaption()
	symbol := NewSymbolRegister("NEW")
	marker := NewRiskExtract(1, 1)
	sequenced := NewCommand(SnapshotMark)
	batch := make([]Command, 3*farAhead)
	for i := range batch {
		batch[i] = []Command{buy(1, 1, 100), cancel(1, 1), trade(1, Buy, 1), booked(swap(), 5)}[i%4]
	}
	for name, f := range map[string]func(){
		"SymbolRegister": func() { out.Next = 0; e.Apply(&symbol, out) },
		"RiskExtract":    func() { out.Next = 0; e.Apply(&marker, out) },
		"Replay": func() {
			out.Next = 0
			sequenced.InputSeq = e.AppliedSeq() + 1
			must.OK(t, e.Replay(&sequenced, out))
		},
		"ApplyBatch": func() { out.Next = 0; e.ApplyBatch(batch, out) },
		"terms of a contract": func() {
			c := terms.Command()
			if back, ok := c.ContractTerms(); !ok || back != terms {
				t.Fatal(back)
			}
		},
		"Decode": func() {
			must.Get(Decode(sequenced.Bytes()[:]))(t)
		},
	} {
		if n := testing.AllocsPerRun(200, f); n != 0 {
			t.Errorf("%s allocates %v times", name, n)
		}
	}
}
