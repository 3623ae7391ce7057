package settlement

import (
	"crypto/rand"
	"slices"
	"strconv"

	"posttrade/sidecars/store"
)

// A commit can fail without anyone knowing whether it happened: the connection
// ends before the answer. The rows are safe either way, but whether they were
// counted is not. So every batch writes a mark, a number that no other batch of
// this process has, into the cursors table, in its own transaction. When the
// answer is lost, a later transaction looks whether the mark is there.
//
// A process marks under a name of its own, so that sweeps of two processes never
// wait for each other's mark. A name under which a commit was lost is not used
// again: its row stands still, and a transaction that the server has not yet
// given up holds no later batch back.
//
// Whoever holds Settlement.turn uses marks.
type marks struct {
	process string // random, by which the marks of processes differ
	lost    []mark // whose commit was not answered, oldest first; at most maxLost
	rotated int    // how many names were given up
	value   uint64 // of the newest mark; every mark is higher than the one before
	found   []mark // those of lost that the running transaction has seen committed
	spent   []mark // found or given up, whose rows the next committed transaction deletes
	tidied  bool   // old marks of ended processes have been deleted
}

// A mark is the trace of one batch.
type mark struct {
	name  string
	value uint64
	rows  uint64 // how many trades the batch settled
}

const (
	markPrefix = "settlement/"
	// maxLost bounds the unanswered commits that are looked for: beyond it the
	// oldest is taken for rolled back, as each of them most likely was.
	maxLost = 8
	// markMillis is the age after which a mark belongs to a process that is gone.
	markMillis = 7 * dayMillis
)

func newMarks() marks { return marks{process: rand.Text()} }

func (m *marks) name() string { return markPrefix + m.process + "/" + strconv.Itoa(m.rotated) }

// leave writes the mark of a batch at nowMillis into its transaction. The value
// is the time where that is higher than the last, so that old marks can be told.
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

// resolve deletes the marks that are spent, looks for those of unanswered commits
// and returns how many trades the ones it finds have settled. What it reads is
// committed, so it stays true whatever becomes of its own transaction.
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

// end closes a batch that settled rows trades: done when its commit was answered,
// lost when it was asked for and was not.
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
