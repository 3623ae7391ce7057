//go:build linux && !race

package matcher

import (
	"testing"

	"posttrade/ring/ringtest"
)

// TestIdleBookCostsNothing makes a book for four million orders, 6 GiB of
// addresses, and a few orders in it.
func TestIdleBookCostsNothing(t *testing.T) {
	before := ringtest.Resident(t)
	book := newTortured(t, 1<<22, nil)
	for id := uint32(1); id <= 1_000; id++ {
		book.Limit(id, 0, Buy, int64(id)<<32, 1)
	}
	if grown := ringtest.Resident(t) - before; grown > 32<<20 {
		t.Errorf("a book of 1,000 orders takes %d bytes", grown)
	}
}
