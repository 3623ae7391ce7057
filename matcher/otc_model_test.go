package matcher

import (
	"encoding/binary"
	"math/big"
	"slices"
	"testing"
)

// The model's half of OTC bookings. It reads the record at the offsets of the format and has its
// own table of conventions.

// book decides a SWAP_BOOK or SWAPTION_BOOK.
func (m *naive) book() {
	if m.known() {
		m.said[0].SecurityID = 0
		return
	}
	c := &m.cmd
	info := ContractInfo{ID: m.seq, ContractTerms: termsAt(c.Bytes()[8:])}
	reason := m.judgeBooking(&info.ContractTerms)
	m.remember(KeyContract, m.seq, reason)
	ev := Event{Kind: EventContract, Side: c.Side, Px: c.LimitPx, AccountID: c.AccountID, Qty: c.Qty,
		Reason: reason}
	if reason != Accepted {
		ev.Kind = EventRejected
	} else {
		m.contracts = append(m.contracts, info)
	}
	m.say(ev)
}

// termsAt reads the block of a booking.
func termsAt(block []byte) ContractTerms {
	u16 := func(at int) uint16 { return binary.LittleEndian.Uint16(block[at:]) }
	t := ContractTerms{
		FixedRate: int64(binary.LittleEndian.Uint64(block[16:])),
		Effective: u16(32), Maturity: u16(34),
		AccountID:  binary.LittleEndian.Uint32(block[36:]),
		Convention: binary.LittleEndian.Uint32(block[40:]),
		Notional:   int32(binary.LittleEndian.Uint32(block[44:])),
		Side:       Side(block[53]),
	}
	if block[52] == 13 {
		t.Swaption, t.Convention = true, uint32(block[40])
		t.Style, t.Expiry = ExerciseStyle(block[41]), u16(42)
	}
	return t
}

func (m *naive) judgeBooking(t *ContractTerms) RiskReason {
	a := m.accounts[t.AccountID]
	switch {
	case m.kill:
		return KillSwitch
	case a == nil:
		return UnknownAccount
	case !a.enabled:
		return AccountDisabled
	case t.Notional < 1, t.FixedRate == 0, t.Maturity <= t.Effective, t.Convention > 4, t.Side > 1,
		m.cmd.Flags > 1, t.Swaption && (t.Expiry > t.Effective || t.Style > 2):
		return Invalid
	case m.tooMuch(PriceScale, t.Notional):
		return OrderNotional
	}
	for _, side := range []Side{Buy, Sell} {
		used := new(big.Int).Set(a.executed)
		if side == Sell {
			used.Neg(used)
		}
		add := func(px int64, qty int32) {
			used.Add(used, new(big.Int).Mul(big.NewInt(px), big.NewInt(int64(qty))))
		}
		for _, o := range m.open {
			if o.account == t.AccountID && o.side == side {
				add(o.limit, o.leaves)
			}
		}
		add(PriceScale, t.Notional)
		if used.Cmp(big.NewInt(m.limit(LimitCredit))) > 0 {
			return CreditLimit
		}
	}
	if len(m.contracts) == m.limits.MaxContracts {
		return Capacity
	}
	return Accepted
}

// compareContracts reads the engine's contracts and compares them.
func (m *naive) compareContracts(t *testing.T, e *Engine) {
	t.Helper()
	at := 0
	e.EachContract(func(got ContractInfo) bool {
		if at == len(m.contracts) || got != m.contracts[at] {
			t.Fatalf("contract number %d is %+v, want one of %d: %+v", at, got, len(m.contracts),
				m.contracts[at:])
		}
		at++
		return true
	})
	if at != len(m.contracts) || e.Counts().Contracts != at {
		t.Fatalf("%d contracts, counted %d, want %d", at, e.Counts().Contracts, len(m.contracts))
	}
}

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
