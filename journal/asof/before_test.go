package asof

import (
	"testing"

	"posttrade/journal/asof/asoftest"
	"posttrade/matcher"
	"posttrade/ring/must"
)

// TestBeforeFindsTheLastSequenceOfATime compares with a look at every command, in a history whose
// prices say times of their own and whose controls say none.
func TestBeforeFindsTheLastSequenceOfATime(t *testing.T) {
	w := asoftest.New(t, t.TempDir(), testGenesis())
	times := []int64{0} // of the admissions, by sequence; 0: it is none
	for i := range int64(700) {
		c, time := matcher.NewCommand(matcher.OrderNew), 10_000+i/3*10
		c.AccountID, c.SecurityID, c.Qty, c.LimitPx = 1, 1, 1, matcher.PriceScale
		switch {
		case i%5 == 1 || i > 690:
			c = matcher.NewCommand(matcher.PriceTick)
			c.SecurityID, c.PriceTicks = 1, matcher.PriceScale
			c.EventTimeMillis, time = 1+i*7919%20_000, 0
		case i%5 == 2:
			c = matcher.NewCommand(matcher.AccountControl)
			c.AccountID, c.Side, c.PriceTicks, time = 1, 1, i+1, 0
		default:
			c.EventTimeMillis = time
		}
		w.Do(c)
		times = append(times, time)
	}
	w.Settle()
	h := must.Get(New(w.Journal, Options{}))(t)
	defer h.Close()
	for _, millis := range []int64{1, 9_999, 10_000, 10_001, 11_110, 12_225, 12_290, 12_291, 12_300,
		12_301, 12_310, 1 << 40} {
		want := uint64(len(times) - 1)
		for at, time := range times {
			if time >= millis && time != 0 {
				want = uint64(at) - 1
				break
			}
		}
		got, err := h.Before(t.Context(), millis)
		if err != nil || got != want {
			t.Errorf("before %d: %d, %v, want %d", millis, got, err, want)
		}
	}
	empty := must.Get(New(asoftest.New(t, t.TempDir(), testGenesis()).Journal, Options{}))(t)
	defer empty.Close()
	if got, err := empty.Before(t.Context(), 1); got != 0 || err != nil {
		t.Errorf("an empty journal: %d, %v", got, err)
	}
}
