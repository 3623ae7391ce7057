package gate

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"posttrade/matcher"
	"posttrade/ring/must"
)

// TestGrowKeepsTheImage raises the room of a full gate again and again while readers use it: every
// answer about the old content stays the same, and there is room for more.
func TestGrowKeepsTheImage(t *testing.T) {
	g := New(4, 3)
	err := errors.Join(g.SetLimits(matcher.Limits{MaxOrderQty: 100, MaxOrderNotional: 1e12,
		PriceMaxAgeMillis: 1000}),
		g.SetAccount(7, true, 3), g.SetAccount(8, false, 4), g.SetSecurity(1, "AAPL", true, false, 5),
		g.SetSecurity(2, "MSFT", true, true, 6), g.SetRestricted(2, true, 7),
		g.SetPrice(1, 100*1_000_000, 50), g.HoldAccount(8), g.HoldSecurity(2, false, true),
		g.SetOwnLimits(matcher.OwnLimits{AccountID: 7, Own: 1, Values: matcher.RiskLimits{900}}))
	must.OK(t, err)
	g.SetReady()
	want := g.Snapshot()
	order := matcher.NewCommand(matcher.OrderNew)
	order.AccountID, order.SecurityID, order.Qty, order.LimitPx = 7, 1, 800, 100*1_000_000
	var stop atomic.Bool
	var readers sync.WaitGroup
	for range 2 {
		readers.Go(func() {
			for !stop.Load() {
				if r := g.Screen(&order); r != matcher.Accepted {
					t.Errorf("an order: %v", r)
					return
				}
				id, ok := g.Security([]byte("MSFT"))
				if px, _, known := g.Price(1); !ok || id != 2 || g.Ticker(2) != "MSFT" || !known ||
					px < 100*1_000_000 {
					t.Errorf("MSFT is %d, the price %d", id, px)
					return
				}
			}
		})
	}
	for i := range 60 {
		c := matcher.NewCapacityControl(matcher.Capacities{Accounts: 4 + i, Securities: 3 + i/2,
			Contracts: 1})
		g.Observe(event(matcher.EventApplied, uint64(1+2*i), c))
		tick := event(matcher.EventApplied, uint64(2+2*i), matcher.NewCommand(matcher.PriceTick))
		tick.SecurityID, tick.Cmd().SecurityID, tick.Cmd().PriceTicks = 1, 1, 100*1_000_000+int64(i)
		g.Observe(tick)
	}
	stop.Store(true)
	readers.Wait()
	got := g.Snapshot()
	if !reflect.DeepEqual(got.Accounts, want.Accounts) ||
		!slices.Equal(got.Securities, want.Securities) ||
		g.Missed() != 0 {
		t.Errorf("got %+v, %d missed\nwant %+v", got, g.Missed(), want)
	}
	if px, _, _ := g.Price(1); px != 100*1_000_000+59 {
		t.Errorf("the price is %d", px)
	}
	for n := range uint32(61) {
		if err := g.SetAccount(1000+n, true, 1); err != nil {
			t.Fatal(n, err)
		}
	}
	for n := uint32(3); n <= 32; n++ {
		if err := g.Register(n, fmt.Sprint("T", n)); err != nil {
			t.Fatal(n, err)
		}
	}
	for _, source := range []string{AccountSource, SecuritySource} {
		if held, capacity, err := g.Places(source); held != capacity || err != nil {
			t.Errorf("source %s: %d of %d places, %v", source, held, capacity, err)
		}
	}
	if _, _, err := g.Places("x"); !errors.Is(err, ErrSource) {
		t.Errorf("places of no source: %v", err)
	}
	if err := g.SetAccount(9999, true, 1); !errors.Is(err, ErrCapacity) {
		t.Errorf("one more account: %v", err)
	}
}
