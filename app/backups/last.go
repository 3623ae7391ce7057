package backups

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
	"time"

	"posttrade/ring/disk"
)

// lastFile is the file of data.dir that has the last stream of a backup which has read all it asks
// for: the journal and the rows, or with --journal-only the journal.
//
// Without it a restart would hide from an operator that backups have stopped.
const lastFile = "last-backup"

// last is what the file holds, as JSON; the zero value: no backup yet.
type last struct {
	Sequence uint64 `json:"sequence"` // the last command in the stream
	At       int64  `json:"at"`       // when all was read, epoch seconds
	RowsAt   int64  `json:"rowsAt"`   // the same of the last one with rows
}

// unknownRows is the RowsAt of a file of a build before it: the rows count as those of At.
const unknownRows = -1

// record is the last stream, in memory and in the file. Any goroutine.
type record struct {
	path string // constant

	mu   sync.Mutex
	last last
}

// read takes in the file, if there is one. head is the last command of the journal: a file that
// names a later one is of a history that is not this journal's any more, and counts as none.
//
// An unreadable file is an error, and counts as none too.
func (r *record) read(head uint64) error {
	text, err := os.ReadFile(r.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	found := last{RowsAt: unknownRows}
	if err == nil {
		err = json.Unmarshal(text, &found)
	}
	if err != nil {
		return fmt.Errorf("backups: read file=%s: %w", r.path, err)
	}
	if found.RowsAt == unknownRows {
		found.RowsAt = found.At
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if found.Sequence <= head {
		r.last = found
	}
	return nil
}

// ended keeps the stream of a backup that has read all, rows too or none. It counts in memory also
// when the file cannot be written.
func (r *record) ended(sequence uint64, rows bool, now time.Time) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.last.Sequence, r.last.At = sequence, now.Unix()
	if rows {
		r.last.RowsAt = r.last.At
	}
	text, err := json.Marshal(r.last)
	if err == nil {
		err = disk.ReplaceText(r.path, 0o600, text)
	}
	return err
}

// get returns the last stream.
func (r *record) get() last {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.last
}
