//perf:hot

package matcher

import (
	"math/bits"

	"posttrade/ring"
)

// account is the risk state of one account: half a cache line.
type account struct {
	executed int64    // x 1e6: paid for purchases less received for sales
	open     [2]int64 // x 1e6, by side: what open orders could still pay or receive
	id       uint32
	flags    uint32 // accountEnabled; from bit boundsAt on the row of its limits
}

// The bits of account.flags. The account and the row of its limits are in one word, so
// screenParties reads both with one load. A row number is at most the number of accounts, which is
// below 2^31.
const (
	accountEnabled = 1 << 0
	boundsAt       = 1
)

// bounds returns the row of the account's own limits, 0 for none.
func (a *account) bounds() uint32 { return a.flags >> boundsAt }

// setBounds sets the row of the account's own limits.
func (a *account) setBounds(row uint32) { a.flags = a.flags&accountEnabled | row<<boundsAt }

// enable enables or disables the account. Open orders stay; only later commands are refused.
func (a *account) enable(enabled bool) { a.flags = a.flags&^accountEnabled | oneIf(enabled) }

// accounts is the table of all accounts, in the order in which they appeared. An account's index
// never changes; rows and positions are addressed by it. No account is ever removed.
//
// Ids are the caller's, any uint32. The look-up is open addressing with at least two slots for each
// account, so a probe is short and always meets an empty slot.
type accounts struct {
	table table[uint32, account]
	index table[uint32, uint64] // slots
	mask  uint32                // of slots
	shift uint
	rows  []account // table again; the first count are in use
	slots []uint64  // open addressing: id in the upper half, index + 1 in the lower; 0 is empty
	count int
}

// newAccounts reserves room for capacity accounts and their slots, a power of two.
func newAccounts(a *ring.Arena, capacity int) accounts {
	slots := 1 << bits.Len(uint(2*capacity-1))
	t := accounts{
		rows:  ring.Carve[account](a, capacity),
		slots: ring.Carve[uint64](a, slots),
		mask:  uint32(slots - 1),
		shift: uint(32 - bits.Len(uint(slots-1))),
	}
	t.table, t.index = tableOf[uint32](t.rows), tableOf[uint32](t.slots)
	return t
}

// find returns the index of an account, or -1 if no account has that id.
func (t *accounts) find(id uint32) int { return int(t.seek(id)) - 1 }

// seek returns the index of an account + 1, or 0 if no account has that id. An empty slot is 0 and
// ends the probe with that result. Id 0 is an id like any other: its slots are not 0, because the
// lower half holds the index + 1.
func (t *accounts) seek(id uint32) uint32 {
	for at := t.home(id); ; at++ {
		slot := *t.index.at(at & t.mask)
		if uint32(slot>>32) == id || slot == 0 {
			return uint32(slot)
		}
	}
}

// add appends an account that find does not know. It returns false when the table is full, which a
// command reports as CAPACITY.
func (t *accounts) add(id uint32, enabled bool) bool {
	if t.count == len(t.rows) {
		return false
	}
	t.rows[t.count] = account{id: id, flags: oneIf(enabled)}
	t.count++
	at := t.home(id)
	for t.slots[at&t.mask] != 0 {
		at++
	}
	t.slots[at&t.mask] = uint64(id)<<32 | uint64(t.count)
	return true
}

// home spreads ids over the slots, so that consecutive ids do not cluster. The factor is 2^32
// divided by the golden ratio (Fibonacci hashing); the upper bits of the product select the slot.
func (t *accounts) home(id uint32) uint32 { return (id * 2654435769) >> (t.shift & 31) }

// reserve sets aside notional (x 1e6) for an order that rests on side. exposure has found that the
// sum fits.
func (a *account) reserve(side Side, notional int64) { a.open[side&1] += notional }

// release undoes reserve.
func (a *account) release(side Side, notional int64) { a.open[side&1] -= notional }

// settle books the cash of a fill, x 1e6: a purchase adds, a sale subtracts. At the end of the
// int64 range the sum saturates and does not wrap: see doc.go. It never becomes MinInt64, so its
// negation fits.
func (a *account) settle(side Side, notional int64) {
	m := mirror(side)
	notional = notional ^ m - m // negated for a seller
	sum := a.executed + notional
	if (a.executed^sum)&(notional^sum) < 0 || sum == minInt64 {
		sum = maxInt64
		if notional < 0 {
			sum = -maxInt64
		}
	}
	a.executed = sum
}

const (
	maxInt64 = 1<<63 - 1
	minInt64 = -1 << 63
)

func oneIf(b bool) uint32 {
	if b {
		return 1
	}
	return 0
}
