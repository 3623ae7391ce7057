package ring

import "testing"

// Looks that find something, but less than a burst, twice in a row are a flow; a look
// that finds nothing or a burst ends it.
func TestConsumerKeepsItsLooksApartOnlyWhileMessagesFlow(t *testing.T) {
	const none, some, burst = 0, 1, burstSlots
	tests := []struct {
		name     string
		capacity int
		found    []int
		flows    bool
	}{
		{"a fresh ring", 1024, nil, false},
		{"one message", 1024, []int{some}, false},
		{"two looks with something", 1024, []int{some, some}, true},
		{"a request and its answer, again and again", 1024, []int{some, none, some, none, some}, false},
		{"a flow that stops", 1024, []int{some, some, some, none}, false},
		{"bursts", 1024, []int{burst, burst, burst}, false},
		{"a flow that becomes a burst", 1024, []int{some, some, burst}, false},
		{"something after a burst", 1024, []int{burst, some}, false},
		{"a small ring has small bursts", 16, []int{4, 4, 4}, false},
		{"less than a burst of a small ring", 16, []int{3, 3}, true},
		{"the smallest ring has no flow", 2, []int{some, some, some}, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := newTestSPSC(t, tt.capacity)
			for _, n := range tt.found {
				for range n {
					if r.Claim() == nil {
						t.Fatalf("no room for %d", n)
					}
				}
				r.Publish()
				lo, hi := r.Ready(tt.capacity)
				if hi-lo != int64(n) {
					t.Fatalf("a look finds %d slots, want %d", hi-lo, n)
				}
				r.Release(hi)
			}
			if got := r.consumer.pace.flowing(); got != tt.flows {
				t.Errorf("flowing is %v, want %v", got, tt.flows)
			}
		})
	}
}

// A look finds the published slots for every distance of looks: also with a clock that was set
// back, with one that stands still, and without a clock.
func TestPacedLookAlwaysReturnsWithWhatIsThere(t *testing.T) {
	const always = 1 << 62
	tests := []struct {
		name   string
		apart  int64
		looked func() int64
	}{
		{"the distance has passed", 1, func() int64 { return 0 }},
		{"the clock was set back", always, func() int64 { return ticks() + 1<<40 }},
		{"the clock stands still", always, ticks},
		{"there is no clock", 0, ticks},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := newTestSPSC(t, 64)
			c := &r.consumer
			c.pace.short, c.pace.looked, c.pace.apart = 2, tt.looked(), tt.apart
			r.Claim()
			r.Publish()
			if lo, hi := r.Ready(8); lo != 0 || hi != 1 {
				t.Errorf("ready [%d, %d), want [0, 1)", lo, hi)
			}
		})
	}
}

// A producer can claim exactly the free slots, lap after lap, with every kind of claim, and its
// private numbers keep their order.
func TestProducerKeepsItsInvariant(t *testing.T) {
	rng := seeded(t)
	for _, capacity := range []int{2, 16, 64, 512} {
		r := newTestSPSC(t, capacity)
		size := int64(capacity)
		var claimed, sent, released int64
		for step := range 20_000 {
			switch rng.IntN(4) {
			case 0:
				if slot := r.Claim(); (slot != nil) != (claimed-released < size) {
					t.Fatalf("step %d: claim gave %p at %d of %d", step, slot, claimed-released, capacity)
				} else if slot != nil {
					claimed++
				}
			case 1:
				most := 1 + rng.IntN(2*capacity)
				lo, hi := r.ClaimSome(most)
				if lo != claimed || hi-lo > int64(most) || hi > released+size ||
					(lo == hi) != (claimed-released == size) {
					t.Fatalf("step %d: claim of at most %d gave [%d, %d), claimed %d, released %d", step, most, lo,
						hi, claimed, released)
				}
				claimed = hi
			case 2:
				sent += rng.Int64N(claimed - sent + 1)
				r.PublishTo(sent)
			case 3:
				_, hi := r.Ready(1 + rng.IntN(capacity))
				r.Release(hi)
				released = hi
			}
			p := &r.producer
			if p.claimed != claimed || p.claimed > p.limit || p.limit > p.free || p.free > released+size ||
				p.warm > p.free {
				t.Fatalf("step %d: claimed %d <= limit %d <= free %d <= %d, warm %d: broken",
					step, p.claimed, p.limit, p.free, released+size, p.warm)
			}
		}
		if released < size {
			t.Errorf("capacity %d: only %d slots went through", capacity, released)
		}
	}
}

// A full ring refuses ClaimSome, and the slots left from an earlier claim stay the producer's.
func TestClaimSomeOfAFullRingIsNone(t *testing.T) {
	r := newTestSPSC(t, 8)
	for range 8 {
		r.ClaimSome(1)
	}
	if lo, hi := r.ClaimSome(8); lo != 8 || hi != 8 {
		t.Errorf("claimed [%d, %d) of a full ring", lo, hi)
	}
	r.PublishTo(3)
	if _, hi := r.Ready(8); hi != 3 {
		t.Errorf("ready up to %d, want 3", hi)
	}
	r.Release(2)
	if lo, hi := r.ClaimSome(8); lo != 8 || hi != 10 {
		t.Errorf("claimed [%d, %d), want [8, 10)", lo, hi)
	}
}
