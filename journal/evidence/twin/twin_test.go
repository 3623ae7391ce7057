package twin

import (
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"testing"
)

// FIPS 180-4 has no test for two messages: crypto/sha256 is the other implementation.
func TestSumsAreThoseOfTheStandardLibrary(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for size := range 400 {
		n := Blocks(size)
		for range 20 {
			// The other message has another length, if one with as many blocks does.
			other := size
			for tries := 0; tries < 5; tries++ {
				if m := random.IntN(n * blockBytes); Blocks(m) == n {
					other = m
				}
			}
			p, q := message(random, size), message(random, other)
			wantA, wantB := sha256.Sum256(p), sha256.Sum256(q)
			var a, b [sha256.Size]byte
			Sum(p, q, &a, &b)
			if a != wantA || b != wantB {
				t.Fatalf("messages of %d and %d bytes: %x and %x, want %x and %x", size, other, a, b, wantA,
					wantB)
			}
		}
	}
}

// message is one with room for what stands behind it, which is not zero before.
func message(random *rand.Rand, size int) []byte {
	b := make([]byte, Blocks(size)*blockBytes)
	for i := range b {
		b[i] = byte(random.Uint32())
	}
	return b[:size]
}

func TestSumAllocatesNothing(t *testing.T) {
	p, q := make([]byte, 65, 128), make([]byte, 65, 128)
	var a, b [sha256.Size]byte
	if n := testing.AllocsPerRun(100, func() { Sum(p, q, &a, &b) }); n != 0 {
		t.Errorf("%v allocations a call", n)
	}
}

func TestMessagesOfDifferentBlocksAreABug(t *testing.T) {
	if !fast {
		return
	}
	defer func() {
		if recover() == nil {
			t.Error("a sum of one block and of two")
		}
	}()
	var a, b [sha256.Size]byte
	Sum(make([]byte, 55, 64), make([]byte, 56, 128), &a, &b)
}

func BenchmarkSum(b *testing.B) {
	for _, size := range []int{45, 65, 90} {
		p, q := make([]byte, size, 128), make([]byte, size, 128)
		b.Run(fmt.Sprintf("op=twin/bytes=%d", size), func(b *testing.B) {
			var x, y [sha256.Size]byte
			for b.Loop() {
				Sum(p, q, &x, &y)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(2*b.N), "ns/message")
		})
		b.Run(fmt.Sprintf("op=alone/bytes=%d", size), func(b *testing.B) {
			for b.Loop() {
				p[0] = sha256.Sum256(p)[0]
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N), "ns/message")
		})
	}
}
