package perf

import (
	"math/rand/v2"
	"time"
)

// The size of the table that farRead reads: larger than the caches of one core, so that reads go to
// the memory that the machine's neighbours also use. The reads are few enough that they take a
// fraction of a second beside every row.
const (
	farBytes = 32 << 20
	farReads = 300_000
)

// farLine is a line of memory that holds the number of the line to read next. It is as long as a
// cache line, so that no read finds what the one before has brought.
type farLine struct {
	next uint32
	_    [60]byte
}

// farTable is one round through all lines of a table, in random order. One round visits every line
// before it repeats one, and the order gives the prefetcher nothing to foresee. The same seed gives
// the same table.
func farTable(lines int, seed uint64) []farLine {
	table := make([]farLine, lines)
	order := rand.New(rand.NewPCG(seed, 1)).Perm(lines)
	for i, at := range order {
		table[at].next = uint32(order[(i+1)%lines])
	}
	return table
}

// farRead is the time of a memory read that misses all caches of this core, in ns. Rows with tables
// larger than those caches, the replay first of all, depend on it: on a shared machine it triples
// when a neighbour is busy, and no other figure shows that.
func (r *Run) farRead() float64 {
	table := farTable(farBytes/64, 1)
	at, _ := walk(table, 0, r.scale(farReads)/4) // afterwards the pages of the table are mapped
	begun := time.Now()
	_, n := walk(table, at, r.scale(farReads))
	return float64(time.Since(begun).Nanoseconds()) / float64(n)
}

// walk reads n lines; each read depends on the one before, so that no two of them overlap. It
// returns where it stands: the compiler cannot drop reads with a result.
func walk(table []farLine, at uint32, n int) (end uint32, reads int) {
	for range n {
		at = table[at].next
	}
	return at, n
}
