package settlement

import (
	"crypto/rand"
	"slices"
	"strconv"

	"posttrade/sidecars/store"
)

// A commit can fail without a known outcome: the connection ends before the answer. The rows are
// safe either way, but it is unknown whether they must be counted. So every batch writes a mark, a
// number that no other batch of this process has, into the cursors table, in its own transaction.
// When the answer is lost, a later transaction looks whether the mark is there.
//
// Each process marks under a name of its own, so that sweeps of two processes never wait for each
// other's mark. A name under which a commit was lost is not used again: its row does not change any
// more. So a transaction that the server has not given up yet delays no later batch.
//
// Only the goroutine that holds Settlement.turn uses marks.
type marks struct {
	process string // random; makes the marks of processes differ
	lost    []mark // marks of commits without an answer, oldest first; at most maxLost
	rotated int    // number of names that were given up
	value   uint64 // of the newest mark; each mark is higher than the one before
	found   []mark // marks of lost that the running transaction has found committed
	spent   []mark // found or given up; the next committed transaction deletes their rows
	tidied  bool   // old marks of ended processes have been deleted
}

// A mark is the record of one batch.
type mark struct {
	name  string
	value uint64
	rows  uint64 // how many trades the batch settled
}

const (
	markPrefix = "settlement/"
	// maxLost bounds the commits without an answer that are looked for. Beyond it the oldest counts as
	// rolled back, which is the most likely outcome of each of them.
	maxLost = 8
	// markMillis is the age after which a mark belongs to a process that is gone.
	markMillis = 7 * dayMillis
)

// newMarks begins with a name that no other process has.
func newMarks() marks { return marks{process: rand.Text()} }

// name is the cursor that the next batch marks.
func (m *marks) name() string { return markPrefix + m.process + "/" + strconv.Itoa(m.rotated) }

// leave writes the mark of a batch at nowMillis in the batch's transaction. The value is the time
// if that is higher than the last value, so that old marks can be recognised.
//
// The first batch of a process that settles something also deletes the marks of processes that
// ended long ago.
func (m *marks) leave(tx *store.Tx, nowMillis int64) error {
	m.value = max(m.value+1, uint64(max(nowMillis, 0)))
	if !m.tidied {
		_, err := tx.Exec("delete from cursors where name like $1 and value < $2",
			markPrefix+"%", max(nowMillis-markMillis, 0))
		if err != nil {
			return err
		}
	}
	return tx.SetCursor(m.name(), m.value)
}

// resolve deletes the spent marks, looks for those of commits without an answer, and returns how
// many trades the found ones have settled. It reads committed marks only, so its result stays true
// whatever happens to its own transaction.
func (m *marks) resolve(tx *store.Tx) (rows uint64, err error) {
	m.found = m.found[:0] // the transaction may be a second try
	for _, spent := range m.spent {
		if _, err := tx.Exec("delete from cursors where name = $1", spent.name); err != nil {
			return 0, err
		}
	}
	for _, lost := range m.lost {
		value, err := tx.Cursor(lost.name)
		if err != nil {
			return rows, err
		}
		if value == lost.value {
			m.found = append(m.found, lost)
			rows += lost.rows
		}
	}
	return rows, nil
}

// end closes a batch that settled rows trades. done: its commit was answered. lost: the commit was
// requested and not answered.
func (m *marks) end(done, lost bool, rows uint64) {
	if done {
		m.spent = m.spent[:0]
		m.tidied = m.tidied || rows > 0
	}
	m.lost = slices.DeleteFunc(m.lost, func(l mark) bool { return slices.Contains(m.found, l) })
	m.spent = append(m.spent, m.found...)
	m.found = m.found[:0]
	if lost && !done && rows > 0 {
		m.lost = append(m.lost, mark{m.name(), m.value, rows})
		m.rotated++
		given := max(0, len(m.lost)-maxLost) // up: an older mark may still stand under the name
		m.spent = append(m.spent, m.lost[:given]...)
		m.lost = m.lost[given:]
	}
}
