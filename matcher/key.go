package matcher

import (
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math/bits"
)

// The constants of the 64-bit FNV-1a hash, as its authors give them.
const (
	fnvOffset = 14695981039346656037
	fnvPrime  = 1099511628211
)

// clientKeyBytes is the length of Genesis.ClientKey before it is written in hex.
const clientKeyBytes = 16

// ClientKey makes the idempotency keys of an installation from client order ids. The zero value is
// for a journal without a ClientKey in its genesis record, from a build without this field.
type ClientKey struct {
	k0, k1 uint64
	secret bool
}

// NewClientKey returns the ClientKey for the genesis record of a new journal: 16 bytes of the
// system's random numbers, in hex.
func NewClientKey() string {
	var key [clientKeyBytes]byte
	rand.Read(key[:]) // never fails
	return hex.EncodeToString(key[:])
}

// ParseClientKey reads Genesis.ClientKey. An empty text gives the zero value: see ClientKey. The
// error does not repeat the text, which is a secret.
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

// Of returns the idempotency key of an admission: SipHash-2-4 over the account, 8 bytes, and the
// client order id. A client that does not know the secret cannot find two ids with one key. Without
// a secret it is 64-bit FNV-1a over "<accountId>:<clientOrderId>", for which every client can. So
// every look-up of a key also compares the account, and the client order id with it.
//
// An admission without a client order id has key 0; a hash of 0 becomes 1. No allocation.
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
	a, b := k0^0x736f6d6570736575, k1^0x646f72616e646f6d
	c, d := k0^0x6c7967656e657261, k1^0x7465646279746573
	a, b, c, d = sipWord(a, b, c, d, head)
	last := uint64(8+len(tail)) << 56
	for ; len(tail) >= 8; tail = tail[8:] {
		a, b, c, d = sipWord(a, b, c, d, binary.LittleEndian.Uint64(tail))
	}
	for i, t := range tail {
		last |= uint64(t) << (8 * i & 63)
	}
	a, b, c, d = sipWord(a, b, c, d, last)
	c ^= 0xff
	a, b, c, d = sipRound(a, b, c, d)
	a, b, c, d = sipRound(a, b, c, d)
	a, b, c, d = sipRound(a, b, c, d)
	a, b, c, d = sipRound(a, b, c, d)
	return a ^ b ^ c ^ d
}

// sipWord adds a word of the message to the state.
func sipWord(a, b, c, d, word uint64) (_, _, _, _ uint64) {
	a, b, c, d = sipRound(a, b, c, d^word)
	a, b, c, d = sipRound(a, b, c, d)
	return a ^ word, b, c, d
}

// sipRound is SipRound of the SipHash paper. The state stays in four registers.
func sipRound(a, b, c, d uint64) (_, _, _, _ uint64) {
	a += b
	b = bits.RotateLeft64(b, 13) ^ a
	a = bits.RotateLeft64(a, 32)
	c += d
	d = bits.RotateLeft64(d, 16) ^ c
	a += d
	d = bits.RotateLeft64(d, 21) ^ a
	c += b
	b = bits.RotateLeft64(b, 17) ^ c
	c = bits.RotateLeft64(c, 32)
	return a, b, c, d
}

// The record of an order or a trade holds a ticker that no security has as a number that no
// security can have: this bit and a hash of the ticker. Ids of securities have 24 bits
// (maxSecurity).
const unknownTicker uint32 = 1 << 31

// UnknownTicker returns what Command.SecurityID of an order or a market trade holds for a ticker
// that no security has. So the record still says what was asked for when a security has the ticker
// later.
func UnknownTicker(ticker []byte) uint32 {
	h := uint64(fnvOffset)
	for _, c := range ticker {
		h = (h ^ uint64(c)) * fnvPrime
	}
	return uint32(h>>32^h) | unknownTicker
}

// IsUnknownTicker distinguishes the numbers that UnknownTicker returns from the ids of securities.
func IsUnknownTicker(securityID uint32) bool { return securityID&unknownTicker != 0 }
