//go:build linux && !race

package matcher

import (
	"fmt"
	"os"
	"testing"
)

// residentBytes is how much memory of this process is there.
func residentBytes(t *testing.T) int {
	t.Helper()
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		t.Fatal(err)
	}
	var size, resident int
	if _, err := fmt.Sscan(string(text), &size, &resident); err != nil {
		t.Fatal(err)
	}
	return resident * os.Getpagesize()
}

// TestIdleBookCostsNothing makes a book for four million orders, 6 GiB of
// addresses, and a few orders in it.
func TestIdleBookCostsNothing(t *testing.T) {
	before := residentBytes(t)
	book := newTortured(t, 1<<22, nil)
	for id := uint32(1); id <= 1_000; id++ {
		book.Limit(id, 0, Buy, int64(id)<<32, 1)
	}
	if grown := residentBytes(t) - before; grown > 32<<20 {
		t.Errorf("a book of 1,000 orders takes %d bytes", grown)
	}
}
