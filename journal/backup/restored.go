package backup

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"posttrade/ring/disk"
)

// Restored says what a data directory was restored from; nil without an error when it was not, or
// when everything that a restore asks for was done.
//
// The first start asks. The folder stays until Forget, so when that process ends in the middle, the
// next start finds the same work.
func Restored(data string) (*Origin, error) {
	name := filepath.Join(data, RestoredName, originName)
	text, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var o Origin
	if err == nil {
		err = json.Unmarshal(text, &o)
	}
	if err != nil {
		return nil, fmt.Errorf("backup: read file=%s: %w", name, err)
	}
	return &o, nil
}

// ErrOtherJournal: the rows that a restore has left are not of the journal beside them.
var ErrOtherJournal = errors.New("the rows are of another journal")

// Fits compares the restore with the journal that its notes lie beside, by genesis and by head: the
// notes may have been put beside a newer journal, whose database is lost. The error is
// ErrOtherJournal. Rows are of no later command than the restore went up to.
func (o *Origin) Fits(seed [32]byte, inputSeq uint64) error {
	if genesis := hex.EncodeToString(seed[:]); o.Genesis != "" && o.Genesis != genesis {
		return fmt.Errorf("backup: rows of %q: genesis %.16s, the journal's is %.16s: %w", o.RowsFrom,
			o.Genesis, genesis, ErrOtherJournal)
	}
	needs := min(o.RowsSequence, o.InputSequence)
	if inputSeq < needs {
		return fmt.Errorf("backup: rows of %q: up to sequence %d, the journal ends at %d: %w",
			o.RowsFrom, needs, inputSeq, ErrOtherJournal)
	}
	return nil
}

// RestoredTables are the rows that a restore has left; nil for none. The caller closes them.
func RestoredTables(data string) (io.ReadCloser, error) {
	f, err := os.Open(filepath.Join(data, RestoredName, tablesName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("backup: %w", err)
	}
	return f, nil
}

// Forget notes that everything is done. The origin goes first: without it the rest says nothing, so
// a process that ends in between does nothing twice. Calling it again is harmless.
func Forget(data string) error {
	folder := filepath.Join(data, RestoredName)
	err := os.Remove(filepath.Join(folder, originName))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("backup: %w", err)
	}
	if err := os.RemoveAll(folder); err != nil {
		return fmt.Errorf("backup: %w", err)
	}
	return disk.SyncDir(data)
}

// keptPrefix begins the name of each folder that Keep makes; a number follows.
const keptPrefix = "restored-"

// Keep notes that everything is done but for the rows, which were not put back: what a restore has
// left stays in another folder of the data directory, which is returned.
func Keep(data string) (folder string, err error) {
	folder, err = disk.MoveAside(filepath.Join(data, RestoredName), filepath.Join(data, keptPrefix))
	if err != nil {
		return "", fmt.Errorf("backup: %w", err)
	}
	return folder, nil
}
