//perf:hot

package matcher

import "posttrade/ring"

// contract is one OTC contract as it was booked. The store only appends contracts, so a row never
// changes.
type contract struct {
	id         uint64 // the InputSeq of its booking
	notional   int64  // whole currency units
	fixedRate  int64  // x 1e6
	account    uint32
	convention uint32
	effective  uint16 // epoch days, as are the next two
	maturity   uint16
	expiry     uint16 // 0 for a swap
	payFixed   uint8  // 0 receives, 1 pays
	product    uint8  // 0 swap, 1 swaption
	style      uint8  // exercise style; 0 for a swap
	_          [7]byte
}

// The products of a contract. The number is stored.
const (
	productSwap     uint8 = 0
	productSwaption uint8 = 1
)

// contracts is the store: rows ascending by id, because bookings are appended as they are decided.
// Nothing looks a contract up by id here; the views do.
type contracts struct {
	rows  []contract
	count int
}

// newContracts reserves a row for each contract that can be booked; memory becomes resident with
// use.
func newContracts(a *ring.Arena, capacity int) contracts {
	return contracts{rows: ring.Carve[contract](a, capacity)}
}

// append adds a contract with an id above all others. It returns false when the store is full.
func (t *contracts) append(c contract) bool {
	if t.count == len(t.rows) {
		return false
	}
	t.rows[t.count] = c
	t.count++
	return true
}

// book decides a SWAP_BOOK or SWAPTION_BOOK. A booking makes a contract and nothing else: no order,
// no position, no use of credit.
//
// Its OrderRef and SecurityID hold terms, so the record has no room for a verdict of the gate, and
// the event has 0 there, as no order and no security is concerned. The engine itself refuses what
// the gate would refuse.
func (e *Engine) book(c *Command) {
	key, asker, slot := uint64(c.PriceTicks), askerOf(c), keySlot{}
	if key != 0 {
		var entry *remembered
		if entry, slot = e.keys.find(contractKeys, key, asker); entry != nil {
			e.rejectDuplicate(c, entry)
			e.out.last().SecurityID = 0
			return
		}
	}
	terms, _ := c.ContractTerms()
	reason := e.screenBooking(c, &terms)
	if key != 0 {
		e.keys.remember(slot, key, e.applied, asker|uint64(KeyContract)<<8|uint64(reason))
	}
	kind := EventRejected
	if reason == Accepted {
		kind = EventContract
		e.contracts.append(contract{
			id: e.applied, notional: int64(terms.Notional), fixedRate: terms.FixedRate,
			account: terms.AccountID, convention: terms.Convention,
			effective: terms.Effective, maturity: terms.Maturity, expiry: terms.Expiry,
			payFixed: uint8(terms.Side), product: uint8(oneIf(terms.Swaption)), style: uint8(terms.Style),
		})
	}
	ev := e.first(c, head(kind, c.Side, reason, 0, EventLast), c.LimitPx)
	ev.OrderRef, ev.SecurityID = 0, 0
}

// screenBooking judges a booking: kill switch, account, terms, notional, credit, room. The notional
// counts in full and the rate is not a price. Security, market price, position and concentration
// are not judged.
func (e *Engine) screenBooking(c *Command, terms *ContractTerms) RiskReason {
	if e.policy.kill {
		return KillSwitch
	}
	i := e.accounts.find(c.AccountID)
	if i < 0 {
		return UnknownAccount
	}
	account := &e.accounts.rows[i]
	if account.flags&accountEnabled == 0 {
		return AccountDisabled
	}
	if !terms.Representable() || c.Flags&^FlagShadow != 0 {
		return Invalid
	}
	limits := &e.boundsOf(&request{bounds: account.bounds()}).RiskLimits
	notional := int64(terms.Notional) * PriceScale // below 2^52
	if notional > limits[LimitOrderNotional] {
		return OrderNotional
	}
	if used := account.used(); used > limits[LimitCredit]-notional {
		return CreditLimit
	}
	if e.contracts.count == len(e.contracts.rows) {
		return Capacity
	}
	return Accepted
}

// used is the credit that an account uses, never below 0: the larger of its purchases and its
// sales, because neither direction of a swap offsets the other. Open orders count in full.
// Contracts do not count: a booking is judged by credit and does not use it.
func (a *account) used() int64 {
	buys, sells := a.executed, -a.executed // never minInt64, see settle
	return max(sumUp(buys, a.open[Buy]), sumUp(sells, a.open[Sell]))
}

// sumUp is a + b for a b that is not negative, bounded by the end of the range.
func sumUp(a, b int64) int64 {
	if a > 0 && b > maxInt64-a {
		return maxInt64
	}
	return a + b
}
