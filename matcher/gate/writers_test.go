package gate

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"

	"posttrade/matcher"
	"posttrade/ring/must"
)

func TestTickersAreOnlyAdded(t *testing.T) {
	g := New(4, 300)
	for id := uint32(1); id <= 300; id++ {
		name := fmt.Sprintf("T%d", id)
		if _, ok := g.Security([]byte(name)); ok {
			t.Fatalf("%s before it was registered", name)
		}
		must.OK(t, g.Register(id, name))
		if err := g.Register(id, name); err != nil {
			t.Errorf("again: %v", err)
		}
	}
	for id := uint32(1); id <= 300; id++ {
		name := fmt.Sprintf("T%d", id)
		if got, ok := g.Security([]byte(name)); !ok || got != id || g.Ticker(id) != name {
			t.Errorf("%s: got %d, %v, %q", name, got, ok, g.Ticker(id))
		}
	}
	// These two have one 32-bit hash.
	if hashTicker("altarage") != hashTicker("zinke") {
		t.Error("the hash has changed: find another colliding pair")
	}
	pair := New(1, 2)
	if err := errors.Join(pair.Register(1, "altarage"), pair.Register(2, "zinke")); err != nil {
		t.Error(err)
	}
	for id, name := range []string{1: "altarage", 2: "zinke"} {
		if got, ok := pair.Security([]byte(name)); ok != (id > 0) || got != uint32(id) {
			t.Errorf("%q: got %d, %v, want %d", name, got, ok, id)
		}
	}
	long := string(make([]byte, matcher.TickerBytes+1))
	for _, tt := range []struct {
		id     uint32
		ticker string
		want   error
	}{{0, "X", ErrSecurity}, {301, "X", ErrSecurity}, {math.MaxUint32, "X", ErrSecurity},
		{1, "X", ErrTicker}, {2, "T1", ErrTicker}, {1, "", ErrTicker}, {1, long, ErrTicker}} {
		if err := g.Register(tt.id, tt.ticker); !errors.Is(err, tt.want) {
			t.Errorf("register %d %q: got %v, want %v", tt.id, tt.ticker, err, tt.want)
		}
	}
	for _, name := range []string{"", "t1", "T", "T1 ", "T301", long} {
		if id, ok := g.Security([]byte(name)); ok {
			t.Errorf("%q is security %d", name, id)
		}
	}
}

func TestWritersRefuse(t *testing.T) {
	g := newTestGate(t)
	for id := uint32(10); id < 14; id++ {
		must.OK(t, g.SetAccount(id, true, 1))
	}
	if err := g.SetAccount(14, true, 1); !errors.Is(err, ErrCapacity) {
		t.Errorf("a ninth account: got %v, want %v", err, ErrCapacity)
	}
	if err := g.SetAccount(13, false, 2); err != nil {
		t.Errorf("a known one: %v", err)
	}
	if g.AccountKnown(14) || !g.AccountKnown(13) {
		t.Error("the refused account is known, or the disabled one is not")
	}
	for _, id := range []uint32{0, 5, 9, math.MaxUint32} {
		for name, err := range map[string]error{
			"security": g.SetSecurity(id, "", true, false, 1), "restricted": g.SetRestricted(id, true, 1),
			"price": g.SetPrice(id, 1, 1),
		} {
			if !errors.Is(err, ErrSecurity) {
				t.Errorf("set %s of %d: got %v, want %v", name, id, err, ErrSecurity)
			}
		}
		if _, _, ok := g.Price(id); ok {
			t.Errorf("security %d has a price", id)
		}
	}
	if err := g.SetSecurity(1, "MSFT", true, false, 1); !errors.Is(err, ErrTicker) {
		t.Errorf("another's ticker: got %v, want %v", err, ErrTicker)
	}
	bad := testGenesis()
	bad.Limits.PriceCollarBps = -1
	if err := g.Load(bad); !errors.Is(err, ErrLimit) {
		t.Errorf("negative limit: got %v, want %v", err, ErrLimit)
	}
	bad = testGenesis()
	bad.TickPx = -1
	if err := g.Load(bad); !errors.Is(err, ErrLimit) {
		t.Errorf("negative tick: got %v, want %v", err, ErrLimit)
	}
	bad = testGenesis()
	bad.Securities[0].Ticker = "MSFT"
	if err := g.Load(bad); !errors.Is(err, ErrTicker) {
		t.Errorf("another universe: got %v, want %v", err, ErrTicker)
	}
	bad = testGenesis()
	bad.Accounts[0].ID = 77
	if err := g.Load(bad); !errors.Is(err, ErrCapacity) {
		t.Errorf("too many accounts: got %v, want %v", err, ErrCapacity)
	}
}

func TestReadyNeedsEverySource(t *testing.T) {
	g := newTestGate(t)
	set := func(name string, state SourceState, reason string) {
		t.Helper()
		must.OK(t, g.SetSource(name, state, 7, 100, 120, reason))
	}
	steps := []struct {
		name  string
		state SourceState
		want  bool
	}{
		{AccountSource, Ready, false}, {SecuritySource, Installed, false}, {SecuritySource, Ready, true},
		{AccountSource, Quarantined, false}, {SecuritySource, Quarantined, false},
		{AccountSource, Ready, false},
		{SecuritySource, Bootstrapping, false}, {SecuritySource, Ready, true},
	}
	for i, s := range steps {
		reason := ""
		if s.state == Quarantined {
			reason = "gap"
		}
		if set(s.name, s.state, reason); g.Ready() != s.want {
			t.Errorf("step %d, %s is %v: ready %v, want %v", i, s.name, s.state, g.Ready(), s.want)
		}
	}
	want := []Source{{AccountSource, Ready, 7, 100, 120, "gap"},
		{SecuritySource, Ready, 7, 100, 120, "gap"}}
	if got := g.Snapshot().Sources; !slices.Equal(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	for _, bad := range []error{g.SetSource("accounts", Ready, 0, 0, 0, ""),
		g.SetSource(AccountSource, Quarantined+1, 0, 0, 0, "")} {
		if !errors.Is(bad, ErrSource) {
			t.Errorf("got %v, want %v", bad, ErrSource)
		}
	}
	seeds := newTestGate(t)
	if seeds.SetReady(); !seeds.Ready() {
		t.Error("seeds alone are not ready")
	}
	if got := fmt.Sprint(Bootstrapping, Installed, Ready, Quarantined,
		SourceState(9)); got != "bootstrapping installed ready quarantined unknown" {
		t.Errorf("states are named %s", got)
	}
}

func TestSnapshotShape(t *testing.T) {
	g := New(4, 4)
	err := errors.Join(g.SetAccount(22, true, 5), g.SetAccount(7, false, 6),
		g.SetSecurity(1, "MSFT", true, false, 3),
		g.SetSecurity(2, "AAPL", true, true, 4), g.SetRestricted(2, true, 9),
		g.SetSource(AccountSource, Ready, 1, 6, 6, ""),
		g.HoldAccount(7), g.HoldSecurity(2, false, true),
		g.SetOwnLimits(matcher.OwnLimits{AccountID: 22,
			Own:    1<<matcher.LimitCredit | 1<<matcher.LimitCollar,
			Values: matcher.RiskLimits{matcher.LimitCredit: 2_500_000}}))
	g.SetRiskLimits(matcher.RiskLimits{1, 2_000_000, 3, 4_000_001, 5_000_000, 6, 7})
	must.OK(t, err)
	if err := g.HoldAccount(8); !errors.Is(err, ErrAccount) {
		t.Errorf("an account that is not known is held: %v", err)
	}
	if err := g.HoldSecurity(3, true, true); !errors.Is(err, ErrSecurity) {
		t.Errorf("a security that is not registered is held: %v", err)
	}
	g.SetPolicy(11, true, 0, 0)
	got, err := json.Marshal(g.Snapshot())
	want := `{"ready":false,"killSwitch":true,"policyVersion":11,"limits":{` +
		`"maxOrderQuantity":1,"maxOrderNotional":2,"maxPositionQuantity":3,` +
		`"maxConcentrationNotional":4.000001,"creditLimit":5,"priceMaxAgeMs":6,"priceCollarBps":7},` +
		`"sources":[` +
		`{"source":"account","state":"ready","epoch":1,"watermark":6,"highWatermark":6,` +
		`"lastReason":""},` +
		`{"source":"security","state":"bootstrapping","epoch":0,"watermark":0,"highWatermark":0,` +
		`"lastReason":""}],` +
		`"accounts":[{"id":7,"enabled":false,"version":6,"heldBy":"operator"},{"id":22,"enabled":true,` +
		`"version":5,"heldBy":"source",` +
		`"limits":{"creditLimit":2.5,"priceCollarBps":0}}],` +
		`"securities":[{"ticker":"AAPL","enabled":true,"halted":true,"restricted":true,"version":9,` +
		`"heldBy":"operator"},` +
		`{"ticker":"MSFT","enabled":true,"halted":false,"restricted":false,"version":3,` +
		`"heldBy":"source"}]}`
	if err != nil || string(got) != want {
		t.Errorf("got %s, %v\nwant %s", got, err, want)
	}
}
