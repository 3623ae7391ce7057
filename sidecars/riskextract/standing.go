package riskextract

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"posttrade/sidecars/store"
)

// Stored is a file of an extract, as its name and its folders say.
type Stored struct {
	Marker
	Path string
}

// Newest is the stored extract of the highest sequence in a sink; Seq is 0 when there is
// none. It reads names only.
func Newest(sink string) (newest Stored, err error) {
	paths, err := filepath.Glob(filepath.Join(globText(sink), "*", "v*", "seq-*"))
	if err != nil {
		return newest, fmt.Errorf("riskextract: look into sink: %w", err)
	}
	for _, path := range paths {
		name := strings.TrimPrefix(filepath.Base(path), "seq-")
		end := strings.IndexFunc(name, func(r rune) bool { return r < '0' || r > '9' })
		if end <= 0 {
			continue
		}
		seq, err := strconv.ParseUint(name[:end], 10, 64)
		folder := filepath.Dir(path)
		version, versionErr := strconv.ParseUint(strings.TrimPrefix(filepath.Base(folder), "v"), 10, 32)
		day, dayErr := store.ParseDate(filepath.Base(filepath.Dir(folder)))
		if errors.Join(err, versionErr, dayErr) == nil && seq > newest.Seq {
			newest = Stored{Marker{Seq: seq, SessionDate: day, PriceVersion: uint32(version)}, path}
		}
	}
	return newest, nil
}

// globText is a path that a pattern takes as it is.
func globText(path string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(path)
}

// ReadStanding is the sequence up to which every marker is announced, by the database.
func ReadStanding(tx *store.Tx) (inputSeq uint64, err error) { return tx.Cursor(cursorName) }

// FileStanding is the same by the file that a directory holds, and that file's name.
func FileStanding(dir string) (inputSeq uint64, path string, err error) {
	c := fileCursor{dir}
	inputSeq, err = c.load(context.Background())
	return inputSeq, c.path(), err
}

// SetBack has the markers behind a sequence looked at again: those of a journal that is
// older than the cursor are others.
func SetBack(tx *store.Tx, inputSeq uint64) error {
	at, err := tx.Cursor(cursorName)
	if err != nil || at <= inputSeq {
		return err
	}
	return tx.SetCursor(cursorName, inputSeq)
}

// SetFileBack is SetBack of the file in a directory.
func SetFileBack(dir string, inputSeq uint64) error {
	c := fileCursor{dir}
	at, err := c.load(context.Background())
	if err != nil || at <= inputSeq {
		return err
	}
	if inputSeq == 0 {
		if err := os.Remove(c.path()); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	}
	return c.save(context.Background(), inputSeq)
}
