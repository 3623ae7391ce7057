package matcher

import (
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math/bits"
)

// The constants of the 64-bit FNV-1a hash.
const (
	fnvOffset = 14695981039346656037
	fnvPrime  = 1099511628211
)

// clientKeyBytes is the length of Genesis.ClientKey before it is written in hex.
const clientKeyBytes = 16

// ClientKey makes the idempotency keys of an installation out of client order ids. Its
// zero value is that of a journal whose genesis has none, from before there was one.
type ClientKey struct {
	k0, k1 uint64
	secret bool
}

// NewClientKey is what a new journal's genesis gets as its ClientKey.
func NewClientKey() string {
	var key [clientKeyBytes]byte
	rand.Read(key[:]) // never fails
	return hex.EncodeToString(key[:])
}

// ParseClientKey reads Genesis.ClientKey.
func ParseClientKey(text string) (k ClientKey, err error) {
	if text == "" {
		return k, nil
	}
	key, err := hex.DecodeString(text)
	if err != nil || len(key) != clientKeyBytes {
		return k, fmt.Errorf("matcher: genesis clientKey is not %d bytes in hex", clientKeyBytes)
	}
	return ClientKey{
		k0: binary.LittleEndian.Uint64(key), k1: binary.LittleEndian.Uint64(key[8:]), secret: true,
	}, nil
}

// Of is the idempotency key of an admission: SipHash-2-4 over the account, 8 bytes, and the
// client order id. Who does not have the secret can find no two ids of one key. Without a
// secret it is 64-bit FNV-1a over "<accountId>:<clientOrderId>", for which anybody can: so
// the account is compared wherever a key is looked up, and the id where it is kept.
//
// No client order id is key 0; a hash of 0 becomes 1. No allocation.
func (k *ClientKey) Of(accountID uint32, clientOrderID []byte) (key uint64) {
	switch {
	case len(clientOrderID) == 0:
		return 0
	case k.secret:
		key = sipHash(k.k0, k.k1, uint64(accountID), clientOrderID)
	default:
		key = fnvKey(accountID, clientOrderID)
	}
	return max(key, 1)
}

// fnvKey is FNV-1a over "<accountId>:<clientOrderId>".
func fnvKey(accountID uint32, clientOrderID []byte) uint64 {
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
	for _, c := range clientOrderID {
		h = (h ^ uint64(c)) * fnvPrime
	}
	return h
}

// sipHash is SipHash-2-4 over the eight bytes of head, little endian, and then tail.
func sipHash(k0, k1, head uint64, tail []byte) uint64 {
	s := sipState{
		k0 ^ 0x736f6d6570736575, k1 ^ 0x646f72616e646f6d,
		k0 ^ 0x6c7967656e657261, k1 ^ 0x7465646279746573,
	}
	s.take(head)
	last := uint64(8+len(tail)) << 56
	for ; len(tail) >= 8; tail = tail[8:] {
		s.take(binary.LittleEndian.Uint64(tail))
	}
	for i, b := range tail {
		last |= uint64(b) << (8 * i)
	}
	s.take(last)
	s.c ^= 0xff
	s.round()
	s.round()
	s.round()
	s.round()
	return s.a ^ s.b ^ s.c ^ s.d
}

type sipState struct{ a, b, c, d uint64 }

func (s *sipState) take(word uint64) {
	s.d ^= word
	s.round()
	s.round()
	s.a ^= word
}

func (s *sipState) round() {
	s.a += s.b
	s.b = bits.RotateLeft64(s.b, 13) ^ s.a
	s.a = bits.RotateLeft64(s.a, 32)
	s.c += s.d
	s.d = bits.RotateLeft64(s.d, 16) ^ s.c
	s.a += s.d
	s.d = bits.RotateLeft64(s.d, 21) ^ s.a
	s.c += s.b
	s.b = bits.RotateLeft64(s.b, 17) ^ s.c
	s.c = bits.RotateLeft64(s.c, 32)
}

// A ticker that no security has goes into the record of an order or a trade as a number
// that no security can have: this bit and a hash of the ticker.
const unknownTicker uint32 = 1 << 31

// UnknownTicker is what Command.SecurityID of an order or a market trade holds for a ticker
// that no security has, so that the record says what was asked for also when one has it later.
func UnknownTicker(ticker []byte) uint32 {
	h := uint64(fnvOffset)
	for _, c := range ticker {
		h = (h ^ uint64(c)) * fnvPrime
	}
	return uint32(h>>32^h) | unknownTicker
}

// IsUnknownTicker tells the numbers that UnknownTicker gives from the ids of securities.
func IsUnknownTicker(securityID uint32) bool { return securityID&unknownTicker != 0 }
