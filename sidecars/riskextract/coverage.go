package riskextract

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"posttrade/ring/disk"
	"posttrade/sidecars/store"
)

// Stored is a file of an extract, according to its name and its folders.
//
// Its content is not looked at.
type Stored struct {
	Marker
	Path string
}

// givenUpName is a file of the sink: the list of the extracts that an operator has given up
// together with the end of their journal, one path per line. Their files stay.
const givenUpName = "given-up"

// Newest is the stored extract of the highest sequence in a sink that has not been given
// up; Seq is 0 when there is none. It reads names only.
//
// A start compares it with the journal: an extract beyond the journal's end belongs to a history
// that the journal does not have.
func Newest(sink string) (newest Stored, err error) {
	all, err := storedIn(sink)
	for _, s := range all {
		if s.Seq > newest.Seq {
			newest = s
		}
	}
	return newest, err
}

// GiveUp makes Newest skip the extracts above a sequence that are in the sink now. A later extract
// of the same sequence has another folder, or is refused: a stored file is never replaced.
//
// files counts files, of which one extract has several. The list only grows; it is replaced in one
// rename.
func GiveUp(sink string, inputSeq uint64) (files int, err error) {
	all, err := storedIn(sink)
	if err != nil {
		return 0, err
	}
	before, err := os.ReadFile(filepath.Join(sink, givenUpName))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return 0, fmt.Errorf("riskextract: give up: %w", err)
	}
	text := bytes.NewBuffer(before)
	for _, s := range all {
		if s.Seq > inputSeq {
			files++
			fmt.Fprintln(text, s.name(sink))
		}
	}
	if files == 0 {
		return 0, nil
	}
	err = disk.ReplaceText(filepath.Join(sink, givenUpName), 0o644, text.Bytes())
	if err != nil {
		return 0, fmt.Errorf("riskextract: give up: %w", err)
	}
	return files, nil
}

// name is the file's path below the sink.
func (s *Stored) name(sink string) string {
	name, err := filepath.Rel(sink, s.Path)
	if err != nil {
		return s.Path
	}
	return name
}

// storedIn returns every file of an extract in a sink that has not been given up.
//
// An empty or missing sink has none.
func storedIn(sink string) (all []Stored, err error) {
	paths, err := filepath.Glob(filepath.Join(globText(sink), "*", "v*", "seq-*"))
	if err != nil {
		return nil, fmt.Errorf("riskextract: look into sink: %w", err)
	}
	text, err := os.ReadFile(filepath.Join(sink, givenUpName))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("riskextract: look into sink: %w", err)
	}
	passed := map[string]bool{}
	for _, name := range strings.Split(string(text), "\n") {
		passed[name] = true
	}
	for _, path := range paths {
		if s, ok := storedAs(path); ok && !passed[s.name(sink)] {
			all = append(all, s)
		}
	}
	return all, nil
}

// storedAs reads the path of a stored file: <day>/v<version>/seq-<sequence> and more.
func storedAs(path string) (s Stored, ok bool) {
	name := strings.TrimPrefix(filepath.Base(path), "seq-")
	if end := strings.IndexFunc(name, func(r rune) bool { return r < '0' || r > '9' }); end >= 0 {
		name = name[:end]
	}
	folder := filepath.Dir(path)
	seq, err := strconv.ParseUint(name, 10, 64)
	version, versionErr := strconv.ParseUint(strings.TrimPrefix(filepath.Base(folder), "v"), 10, 32)
	day, dayErr := store.ParseDate(filepath.Base(filepath.Dir(folder)))
	return Stored{Marker{Seq: seq, SessionDate: day, PriceVersion: uint32(version)}, path},
		errors.Join(err, versionErr, dayErr) == nil
}

// globText is a path with its special characters escaped for a pattern.
func globText(path string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(path)
}

// ReadCoverage is the sequence up to which every marker is announced, according to the database.
//
// 0 when nothing was announced yet.
func ReadCoverage(tx *store.Tx) (inputSeq uint64, err error) { return tx.Cursor(cursorName) }

// FileCoverage is the same according to the file in a directory, and that file's name.
func FileCoverage(dir string) (inputSeq uint64, path string, err error) {
	c := fileCursor{dir}
	inputSeq, err = c.load(context.Background())
	return inputSeq, c.path(), err
}

// SetBack makes Run look at the markers above a sequence again: a journal that is older than the
// cursor has other markers there.
//
// Run must not be under way: it keeps the cursor in memory.
func SetBack(tx *store.Tx, inputSeq uint64) error {
	at, err := tx.Cursor(cursorName)
	if err != nil || at <= inputSeq {
		return err
	}
	return tx.SetCursor(cursorName, inputSeq)
}

// SetFileBack is SetBack for the file in a directory.
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
