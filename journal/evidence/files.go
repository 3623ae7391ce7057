package evidence

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/mod/sumdb/tlog"

	"posttrade/journal/evidence/verify"
	"posttrade/ring/disk"
)

// The files of a log, below its folder. A file that is being written has the suffix until it is
// whole.
const (
	keyName         = "log.key"
	pubName         = "log.pub"
	checkpointName  = "checkpoint"
	checkpointsName = "checkpoints"
	tileName        = "tile"
	tempSuffix      = ".tmp"
)

// ErrContradiction: a file of the log, or a proof, says something else than the journal. It is
// never tried again: one of the two was changed, and which one is for people to find out.
var ErrContradiction = errors.New("contradicts the journal")

// ErrNoTile: there is no such tile, or not as wide as asked for. HTTP answers it with 404.
var ErrNoTile = errors.New("no such tile")

// folder is the folder of a log. It is a value: copies mean the same folder.
type folder struct {
	// dir is the folder of the log
	dir string
	// step, if set, is called before every change of the disk: the tests let it fail there, as a crash
	// would.
	step func() error
}

// path is the file of a name; names have slashes, as tile paths do.
func (d folder) path(name string) string {
	return filepath.Join(d.dir, filepath.FromSlash(name))
}

// before gives the tests a place to stop at.
func (d folder) before() error {
	if d.step == nil {
		return nil
	}
	return d.step()
}

// put writes a derived file, unless it is there. A file that is shorter than it should be, or holds
// only zeros, was being written when the machine stopped, and is written again. Any other
// difference is a contradiction.
//
// So a derived file is never changed once it is whole.
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
//
// Derived files are not synced, so a power cut may also leave their length with zeros in it.
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
//
// With sync, content and name are on stable storage when write returns, and so are the names on the
// way to it.
func (d folder) write(name string, data []byte, sync bool) (err error) {
	path := d.path(name)
	defer func() {
		if err != nil {
			err = fmt.Errorf("evidence: write file=%s: %w", path, err)
		}
	}()
	makeDir := os.MkdirAll
	if sync {
		makeDir = disk.MakeDir
	}
	if err := makeDir(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	perm := os.FileMode(0o644)
	if name == keyName {
		perm = 0o600
	}
	if err := d.before(); err != nil {
		return err
	}
	f, err := os.OpenFile(path+tempSuffix, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, perm)
	if err != nil {
		return err
	}
	if err = d.fill(f, data); err == nil && sync {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = d.before()
	}
	if err == nil {
		err = os.Rename(path+tempSuffix, path)
	}
	if err == nil && sync {
		err = disk.SyncDir(filepath.Dir(path))
	}
	return err
}

// fill writes data in two parts, so that a test can stop between them.
func (d folder) fill(f *os.File, data []byte) error {
	half := 0
	if d.step != nil {
		half = len(data) / 2
	}
	if _, err := f.Write(data[:half]); err != nil {
		return err
	}
	if err := d.before(); err != nil {
		return err
	}
	_, err := f.Write(data[half:])
	return err
}

// tile reads a tile. Of a partial one any wider tile has the beginning.
//
// w is its width in hashes or entries, 1 to verify.TileHashes. ErrNoTile when no file has as many.
func (d folder) tile(level int, n uint64, w int) ([]byte, error) {
	size := w * verify.HashBytes
	if level == verify.Entries {
		size = w * verify.EntryBytes
	}
	b, err := os.ReadFile(d.path(verify.TilePath(level, n, w)))
	if errors.Is(err, fs.ErrNotExist) && w < verify.TileHashes {
		b, err = d.wider(level, n, w)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("evidence: %s: %w", verify.TilePath(level, n, w), ErrNoTile)
	case err != nil:
		return nil, fmt.Errorf("evidence: read: %w", err)
	case len(b) < size:
		return nil, fmt.Errorf("evidence: file=%s has %d bytes, want %d: %w",
			d.path(verify.TilePath(level, n, w)), len(b), size, ErrNoTile)
	}
	return b[:size], nil
}

// wider reads the full tile, or the widest partial one. The tile that was asked for may have been
// replaced by either since its head was read.
func (d folder) wider(level int, n uint64, w int) ([]byte, error) {
	b, err := os.ReadFile(d.path(verify.TilePath(level, n, verify.TileHashes)))
	if !errors.Is(err, fs.ErrNotExist) {
		return b, err
	}
	widest := d.widest(level, n)
	if widest < w {
		return nil, fs.ErrNotExist
	}
	return os.ReadFile(d.path(verify.TilePath(level, n, widest)))
}

// widest is the width of the widest partial tile that there is, 0 for none.
func (d folder) widest(level int, n uint64) (w int) {
	list, err := os.ReadDir(filepath.Dir(d.path(verify.TilePath(level, n, 1))))
	if err != nil {
		return 0
	}
	for _, e := range list {
		if width, err := strconv.Atoi(e.Name()); err == nil && width < verify.TileHashes {
			w = max(w, width)
		}
	}
	return w
}

// Tile reads the tile of a path below /log/, such as tile/0/x001/234.p/56. full reports a tile that
// can never change.
//
// Any goroutine, also of a process that does not keep the log.
func Tile(dir, path string) (data []byte, full bool, err error) {
	level, n, w, ok := verify.ParseTile(path)
	if !ok {
		return nil, false, fmt.Errorf("evidence: %q: %w", path, ErrNoTile)
	}
	data, err = folder{dir: dir}.tile(level, n, w)
	return data, w == verify.TileHashes, err
}

// RootUpTo returns the root of the tree over the full leaves up to a command, in hex, as the files
// of a log in dir have it: "" when there is no log, or its newest head does not reach as far.
//
// It reads a few tiles, whatever the size of the tree, and each is checked against the head.
func RootUpTo(dir string, inputSeq uint64) (string, error) {
	note, err := ReadHead(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	head, err := ParseNote(note)
	size := 1 + inputSeq/verify.LeafCommands
	if err != nil || head.Size < size {
		return "", err
	}
	tree := tlog.Tree{N: int64(head.Size), Hash: tlog.Hash(head.Root)}
	root, err := tlog.TreeHash(int64(size), tlog.TileHashReader(tree, tileReader{folder{dir: dir}}))
	if err != nil {
		return "", fmt.Errorf("evidence: root of %d leaves: %w", size, err)
	}
	return hex.EncodeToString(root[:]), nil
}
