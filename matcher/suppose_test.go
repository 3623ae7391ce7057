package matcher

import "testing"

// TestSupposedLimitsAreThoseOfAnotherGenesis compares an engine that supposes a limit with the model
// of a journal that was created with it.
func TestSupposedLimitsAreThoseOfAnotherGenesis(t *testing.T) {
	for limit, value := range map[Limit]int64{
		OrderQtyLimit: 25, OrderNotionalLimit: 2_500 * unit, PositionQtyLimit: 90,
		ConcentrateLimit: 7_000 * unit, CreditUseLimit: 9_000 * unit, PriceAgeLimit: 20, CollarLimit: 200,
	} {
		t.Run(string(limit), func(t *testing.T) {
			g := crowded()
			r := newRig(t, crowded())
			l := &g.Limits
			*map[Limit]*int64{
				OrderQtyLimit: &l.MaxOrderQty, OrderNotionalLimit: &l.MaxOrderNotional,
				PositionQtyLimit: &l.MaxPositionQty, ConcentrateLimit: &l.MaxConcentrationNotional,
				CreditUseLimit: &l.CreditLimit, PriceAgeLimit: &l.PriceMaxAgeMillis,
				CollarLimit: &l.PriceCollarBps,
			}[limit] = value
			if !r.e.Suppose(limit, value) {
				t.Fatal("there is no such limit")
			}
			rnd := seeded(t)
			tape := make([]byte, runLength()/5*wordBytes)
			for i := range tape {
				tape[i] = byte(rnd.Uint32())
			}
			compare(t, r, newNaive(g), tape, func([]Event) {})
		})
	}
	if newRig(t, crowded()).e.Suppose("risk.none", 1) {
		t.Error("a limit that there is not was supposed")
	}
}
