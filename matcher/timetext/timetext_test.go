package timetext

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

func TestTimesAreRFC3339(t *testing.T) {
	const seed = 20260302
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 1))
	times := []int64{0, -1, 1, 951782400000, 951868799999, 4107542399999, 253402300799999,
		-62167219200000, 1772445600000}
	for range 20_000 {
		times = append(times, rng.Int64N(253402300799999+62167219200000)-62167219200000)
	}
	for _, ms := range times {
		want := time.UnixMilli(ms).UTC().Format("2006-01-02T15:04:05.000Z")
		if got := Of(ms); got != want {
			t.Fatalf("%d: %s, want %s", ms, got, want)
		}
	}
	for ms, want := range map[int64]string{math.MaxInt64: "9999-12-31T23:59:59.999Z",
		math.MinInt64: "0000-01-01T00:00:00.000Z"} {
		if got := Of(ms); got != want {
			t.Errorf("%d: %s, want %s", ms, got, want)
		}
	}
}
