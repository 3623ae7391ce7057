package matcher

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// mostRules are the rules whose observed value is above the limit when they refuse.
var mostRules = []string{"risk.max-order-quantity", "risk.max-order-notional", "risk.credit-limit",
	"risk.max-position-quantity", "risk.max-concentration-notional", "risk.price.max-age-ms",
	"risk.price.collar-bps", "open-orders", "risk.max-contracts", "risk.max-accounts"}

// judgedReasons are those that random commands meet. Some are rare in one run.
var judgedReasons = []RiskReason{Invalid, UnknownAccount, AccountDisabled, UnknownSecurity,
	SecurityDisabled, Restricted, KillSwitch, PriceMissing, PriceStale, PriceCollar, OrderSize,
	OrderNotional, CreditLimit, PositionLimit, ConcentrationLimit, Duplicate, Capacity}

// TestJudgeIsTheEnginesDecision judges every command of random runs before it is decided: the
// reason is the engine's own, the observed value breaks the limit, and nothing changes. It makes
// runs until each reason has been met, unless the runs are short: one of those meets only some.
func TestJudgeIsTheEnginesDecision(t *testing.T) {
	rnd := seeded(t)
	met := map[RiskReason]int{}
	unmet := func() []RiskReason {
		return slices.DeleteFunc(slices.Clone(judgedReasons),
			func(reason RiskReason) bool { return met[reason] > 0 })
	}
	const most = 20
	long := runLength() >= 50_000
	for n := 0; n == 0 || long && n < most && len(unmet()) > 0; n++ {
		judgedRun(t, rnd, met)
	}
	t.Log(met)
	if left := unmet(); long && len(left) > 0 {
		t.Errorf("no command of %d runs was refused for %v", most, left)
	}
}

// judgedRun is one run on an empty engine. It counts in met what it judged.
func judgedRun(t *testing.T, rnd *rand.Rand, met map[RiskReason]int) {
	t.Helper()
	r, p := newRig(t, crowded()), newPilot()
	for step := range runLength() {
		var w [wordBytes]byte
		for i := range w {
			w[i] = byte(rnd.Uint32())
		}
		c := p.command(w[:])
		before := r.e.StateHash()
		j := r.e.Judge(&c)
		if step%16 == 0 && r.e.StateHash() != before {
			t.Fatalf("step %d: to judge %+v has changed the state", step, c)
		}
		events := r.do(c)
		p.saw(events)
		if c.TemplateID != TemplateCommand || c.Type == CapacityControl {
			continue
		}
		decided := events[0].Reason
		verdict := (c.Type == OrderNew || c.Type == TradeNew) && c.OrderRef != 0 && decided != Duplicate
		if events[0].Kind != EventRejected {
			decided = Accepted
		}
		if j.Reason != decided && !verdict {
			t.Fatalf("step %d %+v: judged %v, decided %v", step, c, j.Reason, decided)
		}
		if j.Reason == Accepted {
			continue
		}
		if !verdict {
			met[j.Reason]++
		}
		if j.Rule == "" && decided != Invalid || j.Rule != "" && j.Observed.String() == "" {
			t.Fatalf("step %d %+v: %v without a rule: %+v", step, c, j.Reason, j)
		}
		if slices.Contains(mostRules, j.Rule) && j.Observed.Value.Cmp(j.Limit.Value) <= 0 {
			t.Fatalf("step %d %+v: %v: %s is within %s", step, c, j.Reason, j.Observed, j.Limit)
		}
	}
}
