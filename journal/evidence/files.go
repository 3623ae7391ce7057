package evidence

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"posttrade/journal/evidence/verify"
)

// The files of a log.
const (
	keyName         = "log.key"
	pubName         = "log.pub"
	checkpointName  = "checkpoint"
	checkpointsName = "checkpoints"
	tileName        = "tile"
	tempSuffix      = ".tmp"
)

// ErrContradiction: a file of the log says something else than the journal.
var ErrContradiction = errors.New("contradicts the journal")

// ErrNoTile: there is no such tile.
var ErrNoTile = errors.New("no such tile")

// folder is the folder of a log.
type folder string

func (d folder) path(name string) string {
	return filepath.Join(string(d), filepath.FromSlash(name))
}

// put writes a derived file, unless it is there. A file that is shorter than it should be, or holds
// only zeros, was being written when the machine stopped, and is written again. Any other
// difference is a contradiction.
func (d folder) put(name string, data []byte) error {
	found, err := os.ReadFile(d.path(name))
	switch {
	case err == nil && bytes.Equal(found, data):
		return nil
	case err == nil && !halfWritten(found, data):
		return fmt.Errorf("evidence: file=%s byte %d: %w", d.path(name), differs(found, data),
			ErrContradiction)
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("evidence: read: %w", err)
	}
	return d.write(name, data, false)
}

// halfWritten reports that a crash may have left found of data.
func halfWritten(found, data []byte) bool {
	return len(found) < len(data) && bytes.HasPrefix(data, found) ||
		len(bytes.Trim(found, "\x00")) == 0
}

// differs is the first byte in which a and b differ.
func differs(a, b []byte) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return i
		}
	}
	return n
}

// write puts a file in place as a whole. What is derived needs no sync: it is made again.
func (d folder) write(name string, data []byte, sync bool) (err error) {
	path := d.path(name)
	defer func() {
		if err != nil {
			err = fmt.Errorf("evidence: write file=%s: %w", path, err)
		}
	}()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	perm := os.FileMode(0o644)
	if name == keyName {
		perm = 0o600
	}
	f, err := os.OpenFile(path+tempSuffix, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, perm)
	if err != nil {
		return err
	}
	if _, err = f.Write(data); err == nil && sync {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(path+tempSuffix, path)
	}
	if err == nil && sync {
		err = syncFolder(filepath.Dir(path))
	}
	return err
}

// syncFolder makes the names in a folder durable.
func syncFolder(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// tile reads a tile. Of a partial one any wider tile has the beginning.
func (d folder) tile(level int, n uint64, w int) ([]byte, error) {
	size := w * verify.HashBytes
	if level == entries {
		size = w * entryBytes
	}
	b, err := os.ReadFile(d.path(tilePath(level, n, w)))
	if errors.Is(err, fs.ErrNotExist) && w < tileHashes {
		b, err = d.wider(level, n, w)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("evidence: %s: %w", tilePath(level, n, w), ErrNoTile)
	case err != nil:
		return nil, fmt.Errorf("evidence: read: %w", err)
	case len(b) < size:
		return nil, fmt.Errorf("evidence: file=%s has %d bytes, want %d: %w",
			d.path(tilePath(level, n, w)), len(b), size, ErrNoTile)
	}
	return b[:size], nil
}

// entryBytes is the length of a leaf in an entry bundle.
const entryBytes = 2 + verify.LeafBytes

// wider reads the full tile, or the widest partial one.
func (d folder) wider(level int, n uint64, w int) ([]byte, error) {
	b, err := os.ReadFile(d.path(tilePath(level, n, tileHashes)))
	if !errors.Is(err, fs.ErrNotExist) {
		return b, err
	}
	widest := d.widest(level, n)
	if widest < w {
		return nil, fs.ErrNotExist
	}
	return os.ReadFile(d.path(tilePath(level, n, widest)))
}

// widest is the width of the widest partial tile that there is, 0 for none.
func (d folder) widest(level int, n uint64) (w int) {
	list, err := os.ReadDir(filepath.Dir(d.path(tilePath(level, n, 1))))
	if err != nil {
		return 0
	}
	for _, e := range list {
		if width, err := strconv.Atoi(e.Name()); err == nil && width < tileHashes {
			w = max(w, width)
		}
	}
	return w
}

// Tile reads the tile of a path below /log/, such as tile/0/x001/234.p/56. full reports a tile that
// can never change.
func Tile(dir, path string) (data []byte, full bool, err error) {
	level, n, w, ok := parseTile(path)
	if !ok {
		return nil, false, fmt.Errorf("evidence: %q: %w", path, ErrNoTile)
	}
	data, err = folder(dir).tile(level, n, w)
	return data, w == tileHashes, err
}

// parseTile is the inverse of tilePath.
func parseTile(path string) (level int, n uint64, w int, ok bool) {
	rest, isTile := strings.CutPrefix(path, "tile/")
	first, rest, _ := strings.Cut(rest, "/")
	level, w = entries, tileHashes
	if first != "entries" {
		l, err := strconv.Atoi(first)
		if err != nil || l < 0 || l > 7 {
			return 0, 0, 0, false
		}
		level = l
	}
	number, width, partial := strings.Cut(rest, ".p/")
	if partial {
		v, err := strconv.Atoi(width)
		if err != nil || v < 1 || v >= tileHashes {
			return 0, 0, 0, false
		}
		w = v
	}
	for _, digits := range strings.Split(number, "/") {
		digits = strings.TrimPrefix(digits, "x")
		v, err := strconv.ParseUint(digits, 10, 64)
		if err != nil || len(digits) != 3 || n > 1<<50 {
			return 0, 0, 0, false
		}
		n = n*1000 + v
	}
	return level, n, w, isTile && tilePath(level, n, w) == path
}
