package matcher

import (
	"fmt"
	"slices"
	"testing"
)

// TestOrdersAreNumberedBeyond32Bits passes the end of the first era, with an order that is as old
// as the era. It does so once more with a restore from a snapshot before every command.
func TestOrdersAreNumberedBeyond32Bits(t *testing.T) {
	const era = 1 << 32
	for _, reread := range []bool{false, true} {
		t.Run(fmt.Sprint("reread=", reread), func(t *testing.T) {
			r := newRig(t, testGenesis())
			r.reread = reread
			r.e.nextRef = 2
			r.must(buy(1, 5, 90)) // order 2, which stays open
			r.e.nextRef = era - 2
			wants := func(c Command, want ...string) {
				t.Helper()
				var got []string
				for _, ev := range r.do(c) {
					text := fmt.Sprintf("%d %d", ev.Kind, ev.Order())
					if ev.Kind == EventFilled {
						text += fmt.Sprintf(" with %d", ev.Detail().Counter())
						if f := ev.Fill(); f.Order() != ev.Order() || f.CounterEra != ev.Detail().CounterEra {
							t.Errorf("fill %+v of %+v", f, ev)
						}
					}
					got = append(got, text)
				}
				if !slices.Equal(got, want) {
					t.Errorf("%+v: %q, want %q", c, got, want)
				}
			}
			wants(keyed(buy(1, 5, 91), 70), "1 4294967294")
			wants(buy(1, 5, 92), "1 4294967295")
			wants(keyed(buy(1, 5, 93), 71), "1 4294967297") // there is no reference 0
			wants(buy(1, 5, 94), "1 4294967299")            // order 2 has reference 2
			wants(limit(4, Buy, 5, 95), "2 4294967300")     // refused, and numbered too
			wants(keyed(buy(1, 5, 93), 70), "2 4294967294") // a repetition names the first
			wants(keyed(buy(1, 5, 93), 71), "2 4294967297")
			wants(sell(2, 7, 93), "1 4294967301", "3 4294967301 with 4294967299",
				"3 4294967299 with 4294967301",
				"3 4294967301 with 4294967297", "3 4294967297 with 4294967301")
			wants(keyed(replace(1, Buy, 1, 4, 93), 72), "5 4294967297")
			wants(keyed(replace(1, Buy, 1, 4, 93), 72), "2 4294967297")
			wants(keyed(replace(1, Buy, 1, 1, 93), 73), "2 4294967297") // refused: 2 are filled
			wants(keyed(replace(1, Buy, 77, 4, 93), 74), "2 77")        // from the era before
			wants(cancel(1, 2), "4 2")
			wants(cancel(1, 1), "4 4294967297")
			wants(cancel(1, 1), "2 4294967297")
			wants(cancel(1, 6), "2 6")
			wants(cancel(1, 4294967295), "4 4294967295")
			keys := map[uint64]uint64{}
			r.e.EachKey(func(k KeyInfo) bool { keys[k.Key] = k.Ref; return true })
			want := map[uint64]uint64{70: era - 2, 71: era + 1, 72: era + 1, 73: era + 1, 74: 77}
			if fmt.Sprint(keys) != fmt.Sprint(want) {
				t.Errorf("keys %v, want %v", keys, want)
			}
			r.e.nextRef = maxOrderNumber - 2
			wants(buy(1, 5, 91), fmt.Sprint("1 ", uint64(maxOrderNumber-2)))
			// The last two have the references of orders that are still held.
			if said := r.do(buy(1, 5, 91)); said[0].Reason != Capacity || said[0].Order() != 0 {
				t.Errorf("behind the last number: %q", describe(said))
			}
		})
	}
}

// Records of version 1 were refused when the references were used up, and they still are.
func TestVersion1EndsWithTheFirstEra(t *testing.T) {
	r := newRig(t, testGenesis())
	old := func(c Command) Command { c.Version = OldestVersion; return c }
	r.e.nextRef = maxOrderRef
	r.must(old(buy(1, 5, 90)))
	if said := r.do(old(buy(1, 5, 90))); said[0].Reason != Capacity || said[0].Order() != 0 {
		t.Errorf("%q", describe(said))
	}
	if said := r.do(buy(1, 5, 90)); said[0].Order() != 1<<32+1 {
		t.Errorf("%q", describe(said))
	}
}

func TestLastNumberOfAReference(t *testing.T) {
	for _, tt := range []struct {
		last uint64
		ref  uint32
		want uint64
	}{
		{0, 0, 0}, {0, 1, 0}, {7, 7, 7}, {7, 8, 0}, {1<<32 - 1, 1<<32 - 1, 1<<32 - 1},
		{1<<32 + 3, 0, 0}, {1<<32 + 3, 3, 1<<32 + 3}, {1<<32 + 3, 4, 4}, {5<<32 + 3, 4, 4<<32 + 4},
	} {
		if got := LastNumber(tt.last, tt.ref); got != tt.want {
			t.Errorf("reference %d up to %d: %d, want %d", tt.ref, tt.last, got, tt.want)
		}
	}
}
