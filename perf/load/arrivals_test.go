package load

import (
	"math"
	"testing"
	"time"

	"posttrade/ring/must"
)

func TestConstantDoesNotDrift(t *testing.T) {
	a := constantOf(t, 3) // a gap that is no whole number of nanoseconds
	var due time.Duration
	for range 3_000_001 {
		due = a.Next()
	}
	if want := 1_000_000 * time.Second; due < want-1 || due > want {
		t.Errorf("request 3000000 is due at %v, want %v", due, want)
	}
}

func TestPoissonIsExponentialAndReplayable(t *testing.T) {
	const n, rate, seed = 200_000, 1000.0, 7
	t.Logf("seed %d", seed)
	first := must.Get(Poisson(rate, seed))(t)
	again, _ := Poisson(rate, seed)
	other, _ := Poisson(rate, seed+1)
	var last time.Duration
	var sum, squares float64
	longer, same := 0, 0
	for i := range n {
		due := first.Next()
		if due < last || due != again.Next() {
			t.Fatalf("request %d: %v after %v, or not what the seed gave before", i, due, last)
		}
		if due == other.Next() {
			same++
		}
		gap := (due - last).Seconds() * rate
		sum += gap
		squares += gap * gap
		if gap > 1 {
			longer++
		}
		last = due
	}
	mean := sum / n
	variance := squares/n - mean*mean
	if math.Abs(mean-1) > 0.02 || math.Abs(variance-1) > 0.05 ||
		math.Abs(float64(longer)/n-1/math.E) > 0.01 {
		t.Errorf("mean %v, variance %v of the gap, %v are longer; want 1, 1 and 1/e", mean, variance,
			float64(longer)/n)
	}
	if same > 10 {
		t.Errorf("another seed gave %d of the same times", same)
	}
}

func TestRatesThatAreNone(t *testing.T) {
	for _, rate := range []float64{0, -1, math.NaN(), math.Inf(1), 2e9} {
		if _, err := Constant(rate); err == nil {
			t.Errorf("constant %v", rate)
		}
		if _, err := Poisson(rate, 1); err == nil {
			t.Errorf("poisson %v", rate)
		}
	}
}
