package journal

import (
	"encoding/binary"
	"fmt"
)

// ClientIDs are the client ids of one commit, ascending by input sequence. The zero value has none.
// A callback may use the memory only until it returns. It is a cursor: Next and Of use it up, and a
// copy of it goes on from the same place.
//
// An entry, one behind the other without padding: the distance to the sequence of the id before as
// a uvarint, the length of the id as a byte, its bytes.
type ClientIDs struct {
	// The sequence from which the next id's distance counts.
	first uint64
	// The entries that are left, as in an i block (FORMAT.md, section 2); check has read them.
	raw []byte
}

// Next removes the first id and returns it; ok is false when there is none left.
func (c *ClientIDs) Next() (inputSeq uint64, id []byte, ok bool) {
	if len(c.raw) == 0 {
		return 0, nil, false
	}
	delta, n := binary.Uvarint(c.raw)
	size := int(c.raw[n])
	inputSeq, id = c.first+delta, c.raw[n+1:n+1+size]
	c.first, c.raw = inputSeq, c.raw[n+1+size:]
	return inputSeq, id, true
}

// Of returns the id of inputSeq, nil for none, and drops those before it: for
// callers that go through the commands in order.
func (c *ClientIDs) Of(inputSeq uint64) []byte {
	for {
		rest := *c
		at, id, ok := rest.Next()
		if !ok || at > inputSeq {
			return nil
		}
		*c = rest
		if at == inputSeq {
			return id
		}
	}
}

// until drops the ids after inputSeq. It reads the entries up to there.
func (c *ClientIDs) until(inputSeq uint64) {
	rest := *c
	for len(rest.raw) > 0 {
		before := len(rest.raw)
		if at, _, _ := rest.Next(); at > inputSeq {
			c.raw = c.raw[:len(c.raw)-before]
			return
		}
	}
}

// check reads the entries once, so that Next need not check for damage: count entries of 1 to
// MaxClientID bytes, for ascending commands up to last. Errors are ErrCorrupt.
func (c ClientIDs) check(last uint64, count uint32) error {
	at, n := c.first, uint32(0)
	for raw := c.raw; len(raw) > 0; n++ {
		delta, w := binary.Uvarint(raw)
		if w <= 0 || w == len(raw) {
			return fmt.Errorf("client id %d: truncated: %w", n, errSizes)
		}
		size := int(raw[w])
		if size == 0 || size > MaxClientID || w+1+size > len(raw) {
			return fmt.Errorf("client id %d: %d bytes of %d: %w", n, size, len(raw)-w-1, errSizes)
		}
		if (delta == 0 && n > 0) || delta > last-at {
			return fmt.Errorf("client id %d: delta %d after %d, commit ends at %d: %w", n, delta, at, last,
				errSizes)
		}
		at += delta
		raw = raw[w+1+size:]
	}
	if n != count {
		return fmt.Errorf("%d client ids, want %d: %w", n, count, errSizes)
	}
	return nil
}

// IDsOf returns the client ids of a block's payload that begins at an input sequence. The payload
// is one that this package has written: damaged bytes would make Next panic.
func IDsOf(first uint64, payload []byte) ClientIDs { return ClientIDs{first: first, raw: payload} }
