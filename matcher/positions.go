//perf:hot

package matcher

import (
	"math/bits"

	"posttrade/ring"
)

// position is the holding of one account in one security: half a cache line.
//
// Invariants: average is 0 exactly when quantity is 0; open are the leaves of the account's open
// orders in the security.
type position struct {
	quantity int64    // negative = short
	average  int64    // x 1e6
	open     [2]int64 // by side
}

// maxPositions bounds accounts times securities: the table reserves a row for every pair, 8 GiB of
// addresses at most, and row numbers fit 32 bits.
const maxPositions = 1 << 28

// positions holds a row for every pair of account and security. The accounts of one security lie
// side by side, because they trade with each other. A row costs memory from its first write; held
// lists the rows that ever had a fill, in the order of their first fills.
//
// The stride is an odd number of cache lines, so that an account's rows in many securities do not
// all fall into the same few sets of the caches.
type positions struct {
	table  table[uint32, position]
	rows   []position // the same
	seen   []uint64   // one bit per row: the row is in held
	held   []uint32   // the first count are row numbers
	count  int
	stride int
	last   uint32 // the highest row number
}

// newPositions reserves the rows. The stride is at least the number of accounts, so a few rows at
// the end of each security belong to no account.
func newPositions(a *ring.Arena, accounts, securities int) positions {
	stride := 2 * (accounts/2 | 1) // two rows per line
	if stride < accounts {
		stride += 4
	}
	n := stride * securities
	rows := ring.CarveSparse[position](a, n)
	return positions{
		table:  tableOf[uint32](rows),
		rows:   rows,
		seen:   ring.Carve[uint64](a, (n+63)/64),
		held:   ring.Carve[uint32](a, n),
		stride: stride,
		last:   uint32(n - 1),
	}
}

// at returns the row of an account index and a security id (from 1). Index -1, of an unknown
// account, and an id beyond the table give a number that need not be a row: near bounds it for a
// prefetch, and screening refuses the command before the row is used.
func (t *positions) at(account int, security uint32) uint32 {
	return (security-1)*uint32(t.stride) + uint32(account)
}

// near returns the row with a number, or the last row when the number is past it.
func (t *positions) near(row uint32) *position { return t.table.at(min(row, t.last)) }

// account and security split a row number into its parts: the index of the account, and the id of
// the security.
func (t *positions) account(row uint32) int     { return int(row) % t.stride }
func (t *positions) security(row uint32) uint32 { return row/uint32(t.stride) + 1 }

// fill books an execution into a row and returns it. px is x 1e6, qty above 0. A row enters held
// with its first fill; the test of the quantity spares most fills the look at seen.
func (t *positions) fill(row uint32, side Side, px int64, qty int32) *position {
	p := t.table.at(row)
	if p.quantity == 0 {
		t.touch(row)
	}
	p.trade(side, px, int64(qty))
	return p
}

// touch adds a row to held unless it is there.
func (t *positions) touch(row uint32) {
	word, bit := &t.seen[row/64], uint64(1)<<(row%64)
	if *word&bit == 0 {
		*word |= bit
		t.held[t.count] = row
		t.count++
	}
}

// trade updates quantity and average. The average is recomputed while the position grows, stays
// while it shrinks, is the trade's price after a change of sign and 0 when flat.
func (p *position) trade(side Side, px, qty int64) {
	m := mirror(side)
	qty = qty ^ m - m // negated for a seller
	was, now := p.quantity, p.quantity+qty
	p.quantity = now
	switch {
	case now == 0:
		p.average = 0
	case was == 0 || was^now < 0:
		p.average = px
	case was^qty >= 0:
		p.average = average(abs(was), p.average, abs(qty), px)
	}
}

// average returns (q1*px1 + q2*px2) / (q1+q2) for positive numbers, half away from zero, exact in
// 128 bits. It lies between the prices, so it always fits.
func average(q1, px1, q2, px2 int64) int64 {
	h1, l1 := bits.Mul64(uint64(q1), uint64(px1))
	h2, l2 := bits.Mul64(uint64(q2), uint64(px2))
	lo, carry := bits.Add64(l1, l2, 0)
	hi := h1 + h2 + carry
	by := uint64(q1) + uint64(q2)
	var quo, rem uint64
	if hi == 0 {
		quo, rem = lo/by, lo%by
	} else {
		quo, rem = bits.Div64(hi, lo, by)
	}
	if rem >= by-rem {
		quo++
	}
	return int64(quo)
}

// abs needs n above MinInt64, whose negation does not fit.
func abs(n int64) int64 {
	if n < 0 {
		return -n
	}
	return n
}

// reserve sets aside quantity for an order that rests on side.
func (p *position) reserve(side Side, qty int64) { p.open[side&1] += qty }

// release undoes reserve.
func (p *position) release(side Side, qty int64) { p.open[side&1] -= qty }
