package matcher

import "testing"

// TestSupposedLimitsAreThoseOfAnotherGenesis compares an engine that supposes a limit with the
// model of a journal that was created with it.
func TestSupposedLimitsAreThoseOfAnotherGenesis(t *testing.T) {
	for limit, value := range map[LimitID]int64{
		LimitOrderQty: 25, LimitOrderNotional: 2_500 * unit, LimitPosition: 90,
		LimitConcentration: 7_000 * unit, LimitCredit: 9_000 * unit, LimitPriceAge: 20, LimitCollar: 200,
	} {
		t.Run(LimitSettings[limit], func(t *testing.T) {
			g := crowded()
			r := newRig(t, crowded())
			l := &g.Limits
			*map[LimitID]*int64{
				LimitOrderQty: &l.MaxOrderQty, LimitOrderNotional: &l.MaxOrderNotional,
				LimitPosition: &l.MaxPositionQty, LimitConcentration: &l.MaxConcentrationNotional,
				LimitCredit: &l.CreditLimit, LimitPriceAge: &l.PriceMaxAgeMillis,
				LimitCollar: &l.PriceCollarBps,
			}[limit] = value
			r.e.Suppose(limit, value)
			rnd := seeded(t)
			tape := make([]byte, runLength()/5*wordBytes)
			for i := range tape {
				tape[i] = byte(rnd.Uint32())
			}
			compare(t, r, newNaive(g), tape, func([]Event) {})
		})
	}
}
