package matcher

// The constants of the 64-bit FNV-1a hash.
const (
	fnvOffset = 14695981039346656037
	fnvPrime  = 1099511628211
)

// IdempotencyKey is the key of an admission: 64-bit FNV-1a over
// "<accountId>:<clientOrderId>", so that one account never meets another's. No
// client order id is key 0; a hash of 0 becomes 1.
func IdempotencyKey[T string | []byte](accountID uint32, clientOrderID T) uint64 {
	if len(clientOrderID) == 0 {
		return 0
	}
	var digits [10]byte
	at := len(digits)
	for n := accountID; ; n /= 10 {
		at--
		digits[at] = byte('0' + n%10)
		if n < 10 {
			break
		}
	}
	h := uint64(fnvOffset)
	for _, c := range digits[at:] {
		h = (h ^ uint64(c)) * fnvPrime
	}
	h = (h ^ ':') * fnvPrime
	for i := range len(clientOrderID) {
		h = (h ^ uint64(clientOrderID[i])) * fnvPrime
	}
	if h == 0 {
		return 1
	}
	return h
}
