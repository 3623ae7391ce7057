package pace

import (
	"testing"
	"time"
)

func TestRestIsAShareOfTheWork(t *testing.T) {
	for _, tt := range []struct {
		name  string
		share int
		took  time.Duration
		rows  int
		want  time.Duration
	}{
		{"a batch that only worked", 4, 30 * time.Millisecond, 8192, 120 * time.Millisecond},
		{"a few rows", 4, 2 * time.Millisecond, 3, 8 * time.Millisecond},
		{"a stall of 12 s with one row", 4, 12 * time.Second, 1, 4 * (batchWork + rowWork)},
		{"a stall of 12 s with a whole batch", 4, 12 * time.Second, 8192, LongestRest},
		{"a stall of minutes", 4, 3 * time.Minute, 1 << 20, LongestRest},
		{"a slow disk, always busy", 4, 200 * time.Millisecond, 8192, LongestRest},
		{"no rest at all", -1, time.Second, 8192, 0},
		{"a clock that went back", 4, -time.Second, 8192, 0},
		{"nothing was done", 4, time.Second, -1, 4 * batchWork},
	} {
		if got := Rest(tt.share, tt.took, tt.rows); got != tt.want {
			t.Errorf("%s: rests %v, want %v", tt.name, got, tt.want)
		}
	}
}

func TestBackoffDoublesToHalfASecond(t *testing.T) {
	var b Backoff
	for round := range 2 {
		if b.Failing() {
			t.Error("fails before it has failed")
		}
		for i, ms := range []time.Duration{100, 200, 400, 500, 500, 500} {
			if got := b.Next(); got != ms*time.Millisecond || !b.Failing() {
				t.Errorf("round %d: pause after %d failures: %v, want %v ms", round, i+1, got, int(ms))
			}
		}
		b.Reset()
	}
	for range 1000 {
		if b.Next() > LastPause {
			t.Fatal("grows beyond its bound")
		}
	}
	b.Most = 5 * time.Second
	for range 10 {
		b.Next()
	}
	if got := b.Next(); got != b.Most {
		t.Errorf("pause %v, want %v", got, b.Most)
	}
}
