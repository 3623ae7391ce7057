package orderflow

import (
	"io"
	"testing"

	"posttrade/matcher"
	"posttrade/ring/must"
)

func mustSynthetic(t *testing.T, o SyntheticOptions) *Synthetic {
	t.Helper()
	return must.Get(NewSynthetic(o))(t)
}

var flowOptions = SyntheticOptions{
	Seed: 7, Steps: 20_000, Accounts: []uint32{1, 2, 3}, Securities: []string{"AAPL", "MSFT"},
	Prefix: "p-", Live: 500,
}

func TestSameSeedSameFlow(t *testing.T) {
	a, b := mustSynthetic(t, flowOptions), mustSynthetic(t, flowOptions)
	other := flowOptions
	other.Seed++
	c := mustSynthetic(t, other)
	differs := false
	for n := 0; ; n++ {
		var x, y, z Step
		errX, errY := a.Next(&x), b.Next(&y)
		if x != y || errX != errY {
			t.Fatalf("step %d: %+v %v and %+v %v", n, x, errX, y, errY)
		}
		c.Next(&z)
		differs = differs || x != z
		if errX == io.EOF {
			if n != 20_000 {
				t.Errorf("%d steps, want 20000", n)
			}
			break
		}
	}
	if !differs {
		t.Error("another seed gives the same flow")
	}
}

// TestFlowStaysWithinLimits replays the flow without a venue. Every step is valid, a cancel names
// an order once and after it was sent, the table of live orders and the net positions stay small,
// and both sides are used.
func TestFlowStaysWithinLimits(t *testing.T) {
	o := flowOptions
	o.Steps = 200_000
	s := mustSynthetic(t, o)
	alive := map[string]bool{}
	actions := map[string]int{}
	net := map[uint32]int64{}
	for {
		var step Step
		if err := s.Next(&step); err == io.EOF {
			break
		}
		cells := make([]string, len(header))
		cells[colAction] = step.Action.String()
		for c := 1; c < len(header); c++ {
			if step.Action == New || c == colRef {
				cells[c] = step.column(c)
			}
		}
		if _, err := parseStep(cells); err != nil {
			t.Fatalf("%+v: %v", step, err)
		}
		switch {
		case step.Action == Cancel:
			actions["cancel"]++
			if !alive[step.Ref] {
				t.Fatalf("cancel of %s, which was never sent or is cancelled already", step.Ref)
			}
			delete(alive, step.Ref)
			continue
		case step.TimeInForce == IOC:
			actions["marketable"]++
		default:
			actions["new"]++
			alive[step.ClientOrderID] = true
			if len(alive) > o.Live {
				t.Fatalf("%d orders alive, want at most %d", len(alive), o.Live)
			}
		}
		if step.Type == Limit && (step.LimitPx < 70*matcher.PriceScale ||
			step.LimitPx > 130*matcher.PriceScale) {
			t.Fatalf("price %d has wandered off", step.LimitPx)
		}
		signed := int64(step.Quantity)
		if step.Side == matcher.Sell {
			signed = -signed
		}
		net[step.AccountID] += signed
	}
	for action, least := range map[string]int{"new": 80_000, "cancel": 70_000, "marketable": 10_000} {
		if actions[action] < least {
			t.Errorf("%d %s, want at least %d: %v", actions[action], action, least, actions)
		}
	}
	for account, qty := range net {
		if qty > 100_000 || qty < -100_000 {
			t.Errorf("account %d is one-sided: %d if all were filled", account, qty)
		}
	}
	if cap(s.live) > 2*o.Live {
		t.Errorf("the live table grew to %d", cap(s.live))
	}
}

func TestFlowWithoutEndHasNone(t *testing.T) {
	o := flowOptions
	o.Steps = 0
	s := mustSynthetic(t, o)
	var step Step
	for range 30_000 {
		must.OK(t, s.Next(&step))
	}
}

func TestSyntheticRefusesBadOptions(t *testing.T) {
	for name, change := range map[string]func(*SyntheticOptions){
		"no accounts":    func(o *SyntheticOptions) { o.Accounts = nil },
		"no securities":  func(o *SyntheticOptions) { o.Securities = nil },
		"mid too small":  func(o *SyntheticOptions) { o.MidPx = 10_000 },
		"mid off tick":   func(o *SyntheticOptions) { o.MidPx = 100_000_001 },
		"negative tick":  func(o *SyntheticOptions) { o.TickPx = -1 },
		"negative live":  func(o *SyntheticOptions) { o.Live = -1 },
		"negative steps": func(o *SyntheticOptions) { o.Steps = -1 },
	} {
		o := flowOptions
		change(&o)
		if _, err := NewSynthetic(o); err == nil {
			t.Errorf("%s is accepted", name)
		}
	}
}
