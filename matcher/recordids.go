package matcher

import (
	"math"
	"strconv"
	"strings"
)

// The prefixes of an order's id and of a trade's.
const (
	orderPrefix = "ord-"
	tradePrefix = "trd-"
)

// AppendOrderID appends the text of an order's id.
func AppendOrderID(b []byte, number uint64) []byte {
	return strconv.AppendUint(append(b, orderPrefix...), number, 10)
}

// AppendTradeID appends the text of a trade's id. Each fill of a match has its own.
func AppendTradeID(b []byte, tradeSeq uint64) []byte {
	return strconv.AppendUint(append(b, tradePrefix...), tradeSeq, 10)
}

// OrderID is AppendOrderID as a string.
func OrderID(number uint64) string {
	var room [len(orderPrefix) + 20]byte
	return string(AppendOrderID(room[:0], number))
}

// TradeID is AppendTradeID as a string.
func TradeID(tradeSeq uint64) string {
	var room [len(tradePrefix) + 20]byte
	return string(AppendTradeID(room[:0], tradeSeq))
}

// ParseOrderID reads exactly what AppendOrderID writes, of a number from 1 to 2^63 - 1: no sign, no
// leading zero, nothing around it. So an order has one text. It does not know whether the order
// exists, and allocates nothing.
func ParseOrderID[T ~string | ~[]byte](id T) (number uint64, ok bool) {
	return parseID(id, orderPrefix)
}

// ParseTradeID is ParseOrderID for a trade.
func ParseTradeID[T ~string | ~[]byte](id T) (tradeSeq uint64, ok bool) {
	return parseID(id, tradePrefix)
}

func parseID[T ~string | ~[]byte](id T, prefix string) (n uint64, ok bool) {
	const digits = 19 // of 2^63 - 1
	if len(id) <= len(prefix) || len(id) > len(prefix)+digits ||
		string(id[:len(prefix)]) != prefix || id[len(prefix)] == '0' {
		return 0, false
	}
	for at := len(prefix); at < len(id); at++ {
		if id[at] < '0' || id[at] > '9' {
			return 0, false
		}
		n = n*10 + uint64(id[at]-'0')
	}
	return n, n <= math.MaxInt64
}

// The prefixes of a contract id. The product is in the text, so that a client sees it without a
// look-up; the number alone is unique.
const (
	swapPrefix     = "SW-"
	swaptionPrefix = "SWPT-"
)

// ContractID is the text of a contract's id: SW-<id>, or SWPT-<id> for a swaption.
func ContractID(swaption bool, id uint64) string {
	prefix := swapPrefix
	if swaption {
		prefix = swaptionPrefix
	}
	return prefix + strconv.FormatUint(id, 10)
}

// ParseContractID reads exactly what ContractID writes: no other case, no sign, no leading zero. So
// a contract has one text, and a comparison of texts is one of contracts. It does not know whether
// the contract exists.
func ParseContractID(text string) (swaption bool, id uint64, ok bool) {
	digits, swap := strings.CutPrefix(text, swapPrefix)
	if !swap {
		if digits, swaption = strings.CutPrefix(text, swaptionPrefix); !swaption {
			return false, 0, false
		}
	}
	id, err := strconv.ParseUint(digits, 10, 64)
	if err != nil || id == 0 || digits[0] == '0' || digits[0] == '+' {
		return false, 0, false
	}
	return swaption, id, true
}
