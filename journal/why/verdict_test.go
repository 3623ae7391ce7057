package why

import (
	"slices"
	"strings"
	"testing"

	"posttrade/matcher"
	"posttrade/ring/must"
)

// TestVerdictsOfTheGate: a record that carries the gate's refusal is explained as the gate's, with
// the check when the engine's own checks agree, and else with what the audit has of it.
func TestVerdictsOfTheGate(t *testing.T) {
	b := newBook(t)
	refused := func(verdict uint32) uint64 {
		c := order(1, 1, matcher.Buy, 100, 100)
		c.OrderRef = verdict
		return b.do(c).InputSeq
	}
	control := func(kind matcher.CommandType, version int64, epoch uint32) uint64 {
		c := matcher.NewCommand(kind)
		c.AccountID, c.SecurityID, c.Side = 1, 0, matcher.SecurityEnabled
		if kind == matcher.SecurityControl {
			c.AccountID, c.SecurityID = 0, 1
		}
		c.PriceTicks, c.OrderRef = version, epoch
		return b.do(c).InputSeq
	}
	const none = uint32(matcher.ReasonCount)
	early := refused(uint32(matcher.ControlStateStale))
	accounts := control(matcher.AccountControl, 3, 77)
	stocks := control(matcher.SecurityControl, 5, 78)
	control(matcher.AccountControl, 4, 0) // by hand: says nothing of the source
	tests := []struct {
		at                     uint64
		reason, rule, observed string
		because                []uint64
		says                   string
	}{
		{refused(uint32(matcher.NotEntitled)), "NOT_ENTITLED", "entitlement", "", nil,
			"its token did not cover account 1: the journal has no tokens"},
		{early, "CONTROL_STATE_STALE", "control-state", "", nil, "no control from their sources is on"},
		{refused(uint32(matcher.ControlStateStale)), "CONTROL_STATE_STALE", "control-state", "",
			[]uint64{accounts, stocks}, "are those in because"},
		{refused(uint32(matcher.InternalPolicyError)), "INTERNAL_POLICY_ERROR", "gate-verdict", "20", nil,
			"its verdict is number 20."},
		{refused(none + 4), "INTERNAL_POLICY_ERROR", "gate-verdict", "26", nil,
			"number 26, which is no reason that a gate gives."},
		{refused(uint32(matcher.Duplicate)), "INTERNAL_POLICY_ERROR", "gate-verdict", "17", nil,
			"number 17, which is no reason that a gate gives."},
		{refused(uint32(matcher.KillSwitch)), "KILL_SWITCH", "", "", nil,
			"by what it knew a moment before"},
		{refused(uint32(matcher.OrderSize)), "ORDER_SIZE", "risk.max-order-quantity", "100", []uint64{0},
			"is the most"},
	}
	x := b.explainer()
	for _, tt := range tests {
		why := must.Get(x.Command(t.Context(), tt.at))(t)
		var rule, observed string
		if why.Rule != nil {
			rule = *why.Rule
		}
		if why.Observed != nil {
			observed = string(why.Observed.Value)
		}
		var because []uint64
		for _, cause := range why.Because {
			because = append(because, *cause.InputSeq)
		}
		if why.DecidedBy != "gate" || *why.Reason != tt.reason || rule != tt.rule ||
			observed != tt.observed || !slices.Equal(because, tt.because) ||
			!strings.Contains(why.Text, tt.says) {
			t.Errorf("%d: %s %s %s %v: %s", tt.at, *why.Reason, rule, observed, because, why.Text)
		}
	}
}
