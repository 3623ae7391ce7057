//go:build checks || race

package matcher

import "fmt"

// bound is the length of a table.
type bound struct{ rows int }

func boundOf(rows int) bound { return bound{rows} }

// mustHold panics unless the table has a row with index i.
func (b bound) mustHold(i uint32) {
	if uint64(i) >= uint64(b.rows) {
		panic(fmt.Sprintf("matcher: row %d of a table of %d", i, b.rows))
	}
}
