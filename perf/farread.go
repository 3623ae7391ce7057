package perf

import (
	"math/rand/v2"
	"time"
)

// The table that farRead reads: larger than the caches of one core, so that what comes
// from it comes from where the machine's neighbours read as well.
const (
	farBytes = 32 << 20
	farReads = 300_000
)

// farLine is a line of memory that says which one is read next.
type farLine struct {
	next uint32
	_    [60]byte
}

// farTable is one round through all lines of a table, at random.
func farTable(lines int, seed uint64) []farLine {
	table := make([]farLine, lines)
	order := rand.New(rand.NewPCG(seed, 1)).Perm(lines)
	for i, at := range order {
		table[at].next = uint32(order[(i+1)%lines])
	}
	return table
}

// farRead is how long a read of memory takes that no cache of this core holds, in ns.
// Rows whose tables are larger than those, the replay before all, are as fast as it is:
// on a shared machine it triples when a neighbour is busy, and no other figure shows it.
func (r *Run) farRead() float64 {
	table := farTable(farBytes/64, 1)
	at, _ := walk(table, 0, r.scale(farReads)/4) // the table's pages are known afterwards
	begun := time.Now()
	_, n := walk(table, at, r.scale(farReads))
	return float64(time.Since(begun).Nanoseconds()) / float64(n)
}

// walk reads n lines, each of which has to be there before the next is known.
func walk(table []farLine, at uint32, n int) (end uint32, reads int) {
	for range n {
		at = table[at].next
	}
	return at, n
}
