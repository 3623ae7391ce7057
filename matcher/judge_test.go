package matcher

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"testing"
)

// mostRules are the rules whose observed value is above the limit when they refuse.
var mostRules = []string{"risk.max-order-quantity", "risk.max-order-notional", "risk.credit-limit",
	"risk.max-position-quantity", "risk.max-concentration-notional", "risk.price.max-age-ms",
	"risk.price.collar-bps", "open-orders", "risk.max-contracts", "risk.max-accounts",
	"risk.max-securities", "force-notional"}

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

// TestJudgeNamesTheTermThatIsWrong has refusals that random commands seldom meet: the reason is the
// engine's own, and the rule is the one that the command breaks.
func TestJudgeNamesTheTermThatIsWrong(t *testing.T) {
	r := newRig(t, testGenesis())
	r.must(tick(aaa, 100))
	ref := r.must(sell(1, 10, 100))
	for _, ticker := range []string{"DDD", "EEE", "FFF"} {
		r.must(NewSymbolRegister(ticker))
	}
	for _, tt := range []struct {
		name   string
		c      Command
		reason RiskReason
		rule   string
	}{
		{"a replace that is IOC", flags(replace(1, Sell, ref, 5, 100), FlagIOC), Invalid,
			"time-in-force"},
		{"a replace that is FOK", flags(replace(1, Sell, ref, 5, 100), FlagFOK), Invalid,
			"time-in-force"},
		{"a force fill whose value has no number", force(1, ref, 10, maxInt64/unit/4), Invalid,
			"force-notional"},
		{"a ticker without room", NewSymbolRegister("GGG"), Capacity, "risk.max-securities"},
		{"a known ticker without room", NewSymbolRegister("AAA"), Accepted, ""},
		{"room that no engine has", NewCapacityControl(Capacities{Accounts: 1 << 30}), Invalid,
			"capacities"},
	} {
		j := r.e.Judge(&tt.c)
		if j.Reason != tt.reason || j.Rule != tt.rule {
			t.Errorf("%s: judged %v by %q, want %v by %q", tt.name, j.Reason, j.Rule, tt.reason, tt.rule)
		}
		if got := r.do(tt.c)[0]; got.Reason != tt.reason {
			t.Errorf("%s: decided %v, want %v", tt.name, got.Reason, tt.reason)
		}
	}
}

func TestAGenesisThatDoesNotReadIsNotGivenAway(t *testing.T) {
	g := testGenesis()
	g.EvidenceKey = NewEvidenceKey()
	text := g.Marshal()
	if got := PublicGenesis(text); bytes.Contains(got, []byte(g.EvidenceKey)) || len(got) < 100 {
		t.Errorf("the public record is %s", got)
	}
	if got := PublicGenesis(text[1:]); string(got) != "null" {
		t.Errorf("a text that does not read gives %s", got)
	}
}
