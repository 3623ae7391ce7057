package blotter

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"posttrade/matcher"
	"posttrade/ring/must"
)

// raiseBy raises the engine of a source by a few places of each kind.
func raiseBy(s *source) matcher.Command {
	c := s.engine.Capacities()
	return matcher.NewCapacityControl(matcher.Capacities{
		Accounts: c.Accounts + s.rng.IntN(4), Securities: c.Securities + s.rng.IntN(3),
		Contracts: c.Contracts + s.rng.IntN(9),
		OrderRoom: matcher.OrderRoom{Open: c.Open + s.rng.IntN(40), Retained: c.Retained + s.rng.IntN(9),
			Keys: c.Keys + s.rng.IntN(9)},
	})
}

// TestRaisedViewsFollowTheEngine raises capacities in a flow that fills them, and after each raise
// compares views and engine, and an image and the views read from it.
func TestRaisedViewsFollowTheEngine(t *testing.T) {
	g := smallGenesis()
	s, v := newSource(t, g, 81), newTestViews(t, g)
	for raise := range 12 {
		for range 150 {
			observe(v, s.step())
		}
		if raise%3 > 0 {
			observe(v, s.apply(raiseBy(s)))
		}
		must.OK(t, v.Check(s.engine))
		var image, again bytes.Buffer
		must.Get(v.WriteTo(&image))(t)
		restored := must.Get(ReadImage(g, bytes.NewReader(image.Bytes())))(t)
		if err := restored.Check(s.engine); err != nil {
			t.Error(err)
		}
		if _, err := restored.WriteTo(&again); err != nil || !bytes.Equal(again.Bytes(), image.Bytes()) {
			t.Errorf("the image of what was read from an image differs, %v", err)
		}
		if err := restored.Close(); err != nil {
			t.Error(err)
		}
	}
	if got, was := v.Capacities(),
		g.Limits.Capacities(); got == was || len(v.Accounts()) <= was.Accounts ||
		len(v.Securities()) <= was.Securities {
		t.Errorf("%+v of %+v, %d accounts, %d securities: the flow has not used the room", got, was,
			len(v.Accounts()), len(v.Securities()))
	}
}

// sameOrders reports that readers find the orders that were open.
func sameOrders(t *testing.T, v *Views, rng *rand.Rand, open []OrderRow) bool {
	want := &open[rng.IntN(len(open))]
	got, ok := v.Order(want.Ref)
	listed, _ := v.Orders(OrderFilter{Statuses: OpenOrders}, 0, 1000, nil)
	var scanned []OrderRow
	for from, begun := uint32(0), false; from != 0 || !begun; begun = true {
		scanned, from = v.ScanOrders(OrderFilter{Statuses: OpenOrders}, from, 16, scanned)
	}
	if !ok || got.Number() != want.Number() || got.Leaves != want.Leaves || len(listed) != len(open) ||
		len(scanned) != len(open) {
		t.Errorf("order %d: %+v; %d listed, %d scanned of %d", want.Number(), got, len(listed),
			len(scanned), len(open))
		return false
	}
	return true
}

// TestReadersGoOnWhileTablesMove: a reader finds the earlier rows in the old tables and in the new
// ones.
func TestReadersGoOnWhileTablesMove(t *testing.T) {
	g := smallGenesis()
	s, v := newSource(t, g, 82), newTestViews(t, g)
	for range 400 {
		observe(v, s.step())
	}
	accounts, contracts := len(v.Accounts()), int(v.contracts.count.Load())
	var held []Position
	held = v.AllPositions(held)
	open, _ := v.Orders(OrderFilter{Statuses: OpenOrders}, 0, 1000, nil)
	if len(open) == 0 {
		t.Fatal("no order is open")
	}
	together(t, 3, func(step int) {
		if step < 60 {
			observe(v, s.apply(raiseBy(s)))
		}
		c := matcher.NewCommand(matcher.AccountControl)
		c.AccountID, c.Side = uint32(5000+step%40), 1
		observe(v, s.apply(c))
	}, func(rng *rand.Rand) bool {
		p := held[rng.IntN(len(held))]
		got, ok := v.Position(p.AccountID, p.SecurityID)
		a, known := v.Account(p.AccountID)
		x, registered := v.Security(1)
		all, _ := v.Contracts(ContractFilter{}, 0, 1000, nil)
		same := ok && got == p && known && a.ID == p.AccountID && registered && x.Ticker == "AAA" &&
			len(v.Accounts()) >= accounts && len(all) == contracts && len(v.AllPositions(nil)) == len(held)
		if !same {
			t.Errorf("position %+v is %+v, account %+v, security %+v, %d contracts", p, got, a, x, len(all))
		}
		return same && sameOrders(t, v, rng, open)
	})
	if err := v.Check(s.engine); err != nil {
		t.Error(err)
	}
}
