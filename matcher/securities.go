//perf:hot

package matcher

import (
	"math/bits"

	"posttrade/ring"
)

// security is the state of one security beside its ladder: half a cache line. The zero value is a
// security that is registered and that no control has made known.
type security struct {
	lastPx    int64 // the market price x 1e6: of the newest trade or tick; 0 = none yet
	lastTime  int64 // event time of lastPx, epoch milliseconds
	lastTrade int64 // price of the last executed fill x 1e6; 0 = none yet
	flags     uint32
	// 1 for every security, because no command sets another; a column of the snapshot.
	multiplier uint32
}

// The bits of security.flags.
const (
	securityKnown      uint32 = 1 << 0 // a control has made it known to trading
	securityEnabled    uint32 = 1 << 1
	securityHalted     uint32 = 1 << 2
	securityRestricted uint32 = 1 << 3

	// The one value of flags with which orders and trades are admitted.
	securityTradable = securityKnown | securityEnabled
)

// traded records an execution. Its price becomes the market price, unless late marks it as older
// than that; it is the last trade's price in any case.
func (s *security) traded(px, time int64, late uint16) {
	s.lastTrade = px
	if late == 0 {
		s.lastPx, s.lastTime = px, time
	}
}

// control sets what a SECURITY_CONTROL carries, and makes the security known. A restriction stays.
func (s *security) control(enabled, halted bool) {
	s.flags &^= securityEnabled | securityHalted
	s.flags |= securityKnown | oneIf(enabled)*securityEnabled | oneIf(halted)*securityHalted
}

// securities is the table of all securities and their tickers. Ids are positions: the first
// registered is 1. A security without a control is registered but unknown to trading. No ticker is
// ever removed or renamed.
type securities struct {
	table   table[uint32, security]
	rows    []security          // the same
	tickers [][TickerBytes]byte // zero padded
	slots   []uint32            // open addressing over the tickers: id, 0 is empty
	count   int
}

// newSecurities reserves room for capacity tickers and at least twice as many slots, a power of
// two.
func newSecurities(a *ring.Arena, capacity int) securities {
	rows := ring.Carve[security](a, capacity)
	return securities{
		table:   tableOf[uint32](rows),
		rows:    rows,
		tickers: ring.Carve[[TickerBytes]byte](a, capacity),
		slots:   ring.Carve[uint32](a, 1<<bits.Len(uint(2*capacity-1))),
	}
}

// at returns the row of an id that is known to trading, nil if there is none. A ticker that is only
// registered gives nil too. Any id may be asked for.
func (t *securities) at(id uint32) *security {
	if id-1 >= uint32(t.count) {
		return nil
	}
	s := &t.rows[id-1]
	if s.flags&securityKnown == 0 {
		return nil
	}
	return s
}

// find returns the id of a registered ticker (0 if there is none) and the slot for it. The ticker
// is zero padded; the caller has checked its form. The slot is valid until the next registration.
func (t *securities) find(ticker *[TickerBytes]byte) (id uint32, slot uint64) {
	mask := uint64(len(t.slots) - 1)
	for at := hashTicker(ticker); ; at++ {
		at &= mask
		id := t.slots[at]
		if id == 0 || t.tickers[id-1] == *ticker {
			return id, at
		}
	}
}

// register returns the id of a ticker. A new ticker gets the next free id, 0 when the table is
// full.
func (t *securities) register(ticker *[TickerBytes]byte) uint32 {
	id, slot := t.find(ticker)
	if id == 0 && t.count < len(t.rows) {
		t.tickers[t.count] = *ticker
		t.rows[t.count].multiplier = 1
		t.count++
		id = uint32(t.count)
		t.slots[slot] = id
	}
	return id
}

// hashTicker is 64-bit FNV-1a over all 32 bytes, the padding too.
func hashTicker(ticker *[TickerBytes]byte) uint64 {
	h := uint64(14695981039346656037)
	for _, b := range ticker {
		h = (h ^ uint64(b)) * 1099511628211
	}
	return h
}
