package matcher

import (
	"slices"
	"testing"
)

// booking makes a booking from a word of the tape, mostly a valid one.
func (p *pilot) booking(c *Command, w []byte) {
	c.Type = SwapBook + CommandType(w[3]&1)
	c.Qty, c.LimitPx = int32(w[4])*24-24, (int64(w[3])-128)*250
	c.PriceTicks = int64(max(w[5], 215) - 215)
	effective := uint32(w[6])
	c.OrderRef = effective | (effective+uint32(w[7]%16))<<16
	c.SecurityID = uint32(w[2]) % 6
	if c.Type == SwaptionBook {
		c.SecurityID |= uint32(w[2]>>3%4)<<8 | uint32(w[5]%128)<<16
	}
	c.Flags = []uint16{0, 0, 0, 0, 0, 0, FlagShadow, FlagIOC}[w[1]%8]
}

// TestBookingsLeaveEquitiesAlone runs a tape with and without its bookings: the other events are
// all the same, apart from their sequences.
func TestBookingsLeaveEquitiesAlone(t *testing.T) {
	rnd := seeded(t)
	g := crowded()
	// Both families share the memory: none of the tape's keys may leave it.
	g.Limits.IdempotencyCapacity = 1024
	g.Limits.MaxContracts = 1 << 12
	with, without := newRig(t, g), newRig(t, g)
	p := newPilot()
	booked, refused := 0, 0
	for range min(runLength(), 20_000) {
		var word [wordBytes]byte
		for i := range word {
			word[i] = byte(rnd.Uint32())
		}
		c := p.command(word[:])
		got := with.do(c)
		p.saw(got)
		if c.books() {
			if refused++; got[0].Kind == EventContract {
				booked++
			}
			continue
		}
		want := without.do(c)
		if !slices.Equal(renumbered(got), renumbered(want)) {
			t.Fatalf("%+v\n with bookings %q\nwithout them  %q", c, describe(got), describe(want))
		}
	}
	if booked == 0 || booked == refused {
		t.Fatalf("%d of %d bookings made: the tape is too tame", booked, refused)
	}
	if got, want := equitiesOf(with.e), equitiesOf(without.e); !slices.Equal(got, want) {
		t.Errorf("with bookings\n%v\nwithout them\n%v", got, want)
	}
	if n := without.e.Counts().Contracts; n != 0 {
		t.Errorf("%d contracts without a booking", n)
	}
	t.Logf("%d bookings made of %d, %d fills", booked, refused, with.e.TradeSeq())
}

// renumbered returns events without their input sequences. A repeated market trade names its first
// booking by sequence, so that reference is also removed.
func renumbered(events []Event) []Event {
	out := slices.Clone(events)
	for i := range out {
		ev := &out[i]
		ev.InputSeq = 0
		if ev.Flags&EventFirst != 0 {
			ev.Cmd().InputSeq = 0
		}
		if kind, _, _ := ev.Duplicated(); ev.Reason == Duplicate && kind == KeyTrade {
			ev.TradeSeq = 0
		}
	}
	return out
}

// equitiesOf returns the engine's whole state except for its contracts and keys.
func equitiesOf(e *Engine) (all []any) {
	e.EachOrder(func(o OrderInfo) bool { all = append(all, o); return true })
	e.EachPosition(func(p PositionInfo) bool { all = append(all, p); return true })
	e.EachAccount(func(a AccountInfo) bool { all = append(all, a); return true })
	e.EachSecurity(func(s SecurityInfo) bool { all = append(all, s); return true })
	return append(all, e.Policy(), e.TradeSeq(), e.nextRef)
}
