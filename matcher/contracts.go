//perf:hot

package matcher

// contract is one OTC contract as it was booked. Contracts are only ever appended.
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

// contracts is the store: rows ascending by id.
type contracts struct {
	rows  []contract
	count int
}

func newContracts(a *arena, capacity int) contracts {
	return contracts{rows: carve[contract](a, capacity)}
}

// append adds a contract whose id is above all others. False when the store is full.
func (t *contracts) append(c contract) bool {
	if t.count == len(t.rows) {
		return false
	}
	t.rows[t.count] = c
	t.count++
	return true
}
