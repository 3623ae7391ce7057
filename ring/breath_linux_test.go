package ring

import (
	"testing"
	"time"

	"posttrade/ring/ringtest"
)

func TestOnlyAPoliteThreadBreathes(t *testing.T) {
	var zero Breather
	zero.Breathe()
	if got := zero.Breaths(); got != 0 {
		t.Errorf("the zero Breather took %d breaths", got)
	}
	if Niceness() <= 0 { // true unless the whole test runs at low priority
		b := NewBreather()
		b.Breathe()
		if got := b.Breaths(); got != 0 {
			t.Errorf("a thread of the usual priority took %d breaths", got)
		}
	}
	ringtest.Politely(t, func() {
		b := NewBreather()
		b.Breathe()
		if got := b.Breaths(); got != 1 {
			t.Errorf("a polite thread took %d breaths, want 1", got)
		}
		b.until = time.Now().Add(time.Hour)
		b.Breathe()
		if got := b.Breaths(); got != 1 {
			t.Errorf("%d breaths, want none before the time that it is due", got-1)
		}
		if got := b.Points(); got != 2 {
			t.Errorf("%d points, want 2", got)
		}
	})
}

func TestABreathEveryFewSteps(t *testing.T) {
	ringtest.Politely(t, func() {
		b := NewBreather()
		for step := range 3 * 64 {
			b.Step(64)
			if got, want := b.Points(), (step+1)/64; got != want {
				t.Errorf("%d steps: %d points, want %d", step+1, got, want)
			}
		}
	})
}

// After a breath the work continues without another for an eighth of the breath's time, up to a
// tick.
func TestABreathIsFollowedByWork(t *testing.T) {
	begun := time.Now()
	for took, want := range map[time.Duration]time.Duration{
		0: 0, 800 * time.Nanosecond: 100 * time.Nanosecond, 8 * time.Millisecond: time.Millisecond,
		32 * time.Millisecond: 4 * time.Millisecond, 190 * time.Millisecond: 4 * time.Millisecond,
	} {
		var b Breather
		b.hold(begun, begun.Add(took))
		if got := b.until.Sub(begun) - took; got != want {
			t.Errorf("after %v: %v without a breath, want %v", took, got, want)
		}
	}
}
