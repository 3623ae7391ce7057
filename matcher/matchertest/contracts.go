package matchertest

import (
	"encoding/binary"
	"math/big"
	"testing"

	"posttrade/matcher"
)

// The model's half of OTC bookings. It reads the record at the offsets of the format and has its
// own table of conventions.

// book decides a SWAP_BOOK or SWAPTION_BOOK. The event of a refusal as DUPLICATE has no security
// either.
func (m *Model) book() {
	if m.known() {
		m.said[0].SecurityID = 0
		return
	}
	c := &m.cmd
	info := matcher.ContractInfo{ID: m.seq, ContractTerms: termsAt(c.Bytes()[8:])}
	reason := m.judgeBooking(&info.ContractTerms)
	m.remember(matcher.KeyContract, m.seq, reason)
	ev := matcher.Event{Kind: matcher.EventContract, Side: c.Side, Px: c.LimitPx,
		AccountID: c.AccountID, Qty: c.Qty, Reason: reason}
	if reason != matcher.Accepted {
		ev.Kind = matcher.EventRejected
	} else {
		m.contracts = append(m.contracts, info)
	}
	m.say(ev)
}

// termsAt reads the block of a booking: the bytes behind the record's 8-byte header. It repeats the
// offsets in place of calling Command.ContractTerms, which is what the comparison tests.
func termsAt(block []byte) matcher.ContractTerms {
	u16 := func(at int) uint16 { return binary.LittleEndian.Uint16(block[at:]) }
	t := matcher.ContractTerms{
		FixedRate: int64(binary.LittleEndian.Uint64(block[16:])),
		Effective: u16(32), Maturity: u16(34),
		AccountID:  binary.LittleEndian.Uint32(block[36:]),
		Convention: binary.LittleEndian.Uint32(block[40:]),
		Notional:   int32(binary.LittleEndian.Uint32(block[44:])),
		Side:       matcher.Side(block[53]),
	}
	if block[52] == 13 {
		t.Swaption, t.Convention = true, uint32(block[40])
		t.Style, t.Expiry = matcher.ExerciseStyle(block[41]), u16(42)
	}
	return t
}

// judgeBooking is the verdict on a booking. Its notional must fit into the credit of both sides,
// together with what the open orders of each could still use.
func (m *Model) judgeBooking(t *matcher.ContractTerms) matcher.RiskReason {
	a := m.accounts[t.AccountID]
	switch {
	case m.kill:
		return matcher.KillSwitch
	case a == nil:
		return matcher.UnknownAccount
	case !a.enabled:
		return matcher.AccountDisabled
	case t.Notional < 1, t.FixedRate == 0, t.Maturity <= t.Effective, t.Convention > 4, t.Side > 1,
		m.cmd.Flags > 1, t.Swaption && (t.Expiry > t.Effective || t.Style > 2):
		return matcher.Invalid
	case m.tooMuch(matcher.PriceScale, t.Notional):
		return matcher.OrderNotional
	}
	for _, side := range []matcher.Side{matcher.Buy, matcher.Sell} {
		used := new(big.Int).Set(a.executed)
		if side == matcher.Sell {
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
		add(matcher.PriceScale, t.Notional)
		if used.Cmp(big.NewInt(m.limit(matcher.LimitCredit))) > 0 {
			return matcher.CreditLimit
		}
	}
	if len(m.contracts) == m.limits.MaxContracts {
		return matcher.Capacity
	}
	return matcher.Accepted
}

// compareContracts reads the engine's contracts and compares them, and their count, with the
// model's.
func (m *Model) compareContracts(t testing.TB, e *matcher.Engine) {
	t.Helper()
	at := 0
	e.EachContract(func(got matcher.ContractInfo) bool {
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
