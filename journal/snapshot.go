package journal

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"hash/crc32"
	"io"
	"math"
	"strings"
	"sync"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/klauspost/compress/zstd"

	"posttrade/ring"
)

const (
	snapshotsName   = "snapshots"
	snapshotsKept   = 3
	snapshotVersion = 1
	snapshotHeader  = 8 // version u8, three zero bytes, CRC-32C of the rest
	snapshotTemp    = ".tmp"
)

// Errors of snapshots.
var (
	// ErrSnapshot reports a snapshot that is not what its manifest says.
	ErrSnapshot = errors.New("snapshot damaged")
	// ErrNoSnapshot: none is left that can be used.
	ErrNoSnapshot = errors.New("no usable snapshot")
)

// SnapshotFile is one file of a snapshot: zstd around the stream, hashed as stored.
type SnapshotFile struct {
	Path   string `json:"path"` // below the journal's directory
	SHA256 string `json:"sha256"`
	Bytes  int64  `json:"bytes"`
}

// Snapshot is a manifest: the engine's state, and optionally the views' image,
// at one sequence.
type Snapshot struct {
	InputSeq uint64        `json:"sequence"`
	Format   int           `json:"format"`
	State    SnapshotFile  `json:"state"`
	Views    *SnapshotFile `json:"views,omitempty"`
}

// SnapshotFormat is the format of the state inside (formats of the engine).
const SnapshotFormat = 6

// stateName and viewsName are the names of the files of a snapshot.
func stateName(inputSeq uint64) string { return fmt.Sprintf("%020d.state.zst", inputSeq) }

func viewsName(inputSeq uint64) string { return fmt.Sprintf("%020d.views.zst", inputSeq) }

// snapshots serialises writers of snapshots.
type snapshots struct{ mu sync.Mutex }

// Snapshots lists the manifests, newest first. A manifest that cannot be read
// is an error that names its key; Restore goes on with the others.
func (j *Journal) Snapshots() ([]Snapshot, error) {
	list, bad, err := listSnapshots(j.db)
	if err == nil && len(bad) > 0 {
		err = bad[0]
	}
	return list, err
}

func listSnapshots(db *vault) (list []Snapshot, bad []error, err error) {
	err = iterate(db, []byte{keySnapshot}, []byte{keySnapshot + 1}, func(it *pebble.Iterator) error {
		for ok := it.Last(); ok; ok = it.Prev() {
			v, err := it.ValueAndErr()
			if err != nil {
				return err
			}
			s, err := parseManifest(it.Key(), v)
			if err != nil {
				bad = append(bad, fmt.Errorf("journal: key=%s: %w", keyName(it.Key()), err))
				continue
			}
			list = append(list, s)
		}
		return nil
	})
	return list, bad, err
}

func putManifest(s Snapshot) ([]byte, error) {
	body, err := json.Marshal(s)
	if err != nil {
		return nil, fmt.Errorf("journal: manifest inputSeq=%d: %w", s.InputSeq, err)
	}
	v := make([]byte, snapshotHeader, snapshotHeader+len(body))
	v[0] = snapshotVersion
	v = append(v, body...)
	binary.LittleEndian.PutUint32(v[4:], crc32.Checksum(v[snapshotHeader:], castagnoli))
	return v, nil
}

// parseManifest reads the manifest under key.
func parseManifest(key, v []byte) (Snapshot, error) {
	s, err := readManifest(v)
	if err != nil {
		return s, err
	}
	if seq, ok := keySeq(key); !ok || seq != s.InputSeq {
		return s, fmt.Errorf("manifest of inputSeq=%d: %w", s.InputSeq, errSizes)
	}
	return s, nil
}

// readManifest is the inverse of putManifest.
func readManifest(v []byte) (s Snapshot, err error) {
	if len(v) < snapshotHeader || v[0] != snapshotVersion {
		return s, errVersion
	}
	if crc, want := crc32.Checksum(v[snapshotHeader:], castagnoli),
		binary.LittleEndian.Uint32(v[4:]); crc != want {
		return s, fmt.Errorf("crc %08x, want %08x: %w", crc, want, errChecksum)
	}
	if err := json.Unmarshal(v[snapshotHeader:], &s); err != nil {
		return s, fmt.Errorf("%w: %w", err, ErrCorrupt)
	}
	return s, nil
}

// WriteSnapshot writes the state and, unless views is nil, the views' image at inputSeq, makes the
// files durable, then records them under their key. Of the older snapshots only the newest three
// stay. A failure leaves the journal usable and the earlier snapshots in place, unless the store
// itself fails.
func (j *Journal) WriteSnapshot(inputSeq uint64,
	state, views func(io.Writer) error) (Snapshot, error) {
	j.snapshots.mu.Lock()
	defer j.snapshots.mu.Unlock()
	s := Snapshot{InputSeq: inputSeq, Format: SnapshotFormat}
	if err := j.usable(); err != nil {
		return s, err
	}
	if durable := j.Durable(); inputSeq > durable {
		return s, fmt.Errorf("journal: snapshot inputSeq=%d beyond durable %d: %w", inputSeq, durable,
			ErrSnapshot)
	}
	dir := j.o.FS.PathJoin(j.dir, snapshotsName)
	if err := j.o.FS.MkdirAll(dir, 0o755); err != nil {
		return s, fmt.Errorf("journal: make dir=%s: %w", dir, err)
	}
	if err := syncDir(j.o.FS, j.dir); err != nil {
		return s, err
	}
	var err error
	if s.State, err = snapshotFile(j.o.FS, dir, stateName(inputSeq), state); err != nil {
		return s, err
	}
	s.State.Path = snapshotsName + "/" + s.State.Path
	if views != nil {
		var f SnapshotFile
		if f, err = snapshotFile(j.o.FS, dir, viewsName(inputSeq), views); err != nil {
			return s, err
		}
		f.Path = snapshotsName + "/" + f.Path
		s.Views = &f
	}
	if err := syncDir(j.o.FS, dir); err != nil {
		return s, err
	}
	v, err := putManifest(s)
	if err != nil {
		return s, err
	}
	if err := j.latch.write(func() error {
		return j.db.Set(newKey(keySnapshot, inputSeq), v, pebble.Sync)
	}); err != nil {
		return s, fmt.Errorf("journal: snapshot inputSeq=%d: %w", inputSeq, err)
	}
	return s, j.prune(dir)
}

// snapshotFile writes one file of dir under a temporary name, syncs it and renames it. The path
// that it returns is the name.
func snapshotFile(fs vfs.FS, dir, name string,
	write func(io.Writer) error) (SnapshotFile, error) {
	path := fs.PathJoin(dir, name)
	s := SnapshotFile{Path: name}
	fail := func(verb string, err error) (SnapshotFile, error) {
		return s, fmt.Errorf("journal: %s file=%s: %w", verb, path, err)
	}
	f, err := fs.Create(path+snapshotTemp, writeCategory)
	if err != nil {
		return fail("create", err)
	}
	sum := &hashing{w: f, sum: sha256.New(), breath: ring.NewBreather()}
	z, err := zstd.NewWriter(sum, zstd.WithEncoderConcurrency(1),
		zstd.WithEncoderLevel(zstd.SpeedFastest),
		zstd.WithWindowSize(1<<20), zstd.WithLowerEncoderMem(true))
	if err == nil {
		err = write(z)
		if closeErr := z.Close(); err == nil {
			err = closeErr
		}
	}
	if err == nil {
		err = f.Sync()
	}
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return fail("write", errors.Join(err, dropped(fs.Remove(path+snapshotTemp))))
	}
	if err := fs.Rename(path+snapshotTemp, path); err != nil {
		return fail("rename", err)
	}
	s.SHA256, s.Bytes = hex.EncodeToString(sum.sum.Sum(nil)), sum.n
	return s, nil
}

// dropped is the error of removing a file that is no longer wanted: a file that is gone is fine.
func dropped(err error) error {
	if notExist(err) {
		return nil
	}
	return err
}

// hashing hashes and counts what passes through it.
type hashing struct {
	w   io.Writer
	sum hash.Hash
	n   int64

	breath ring.Breather
}

func (h *hashing) Write(p []byte) (int, error) {
	// The file system may change p while writing it.
	h.sum.Write(p)
	h.n += int64(len(p))
	h.breath.Breathe()
	return h.w.Write(p)
}

// prune drops all but the newest manifests, then every file that no manifest names.
func (j *Journal) prune(dir string) error {
	list, bad, err := listSnapshots(j.db)
	if err != nil {
		return err
	}
	for _, b := range bad {
		j.o.Logger.Errorf("%v", b)
	}
	keep := map[string]bool{}
	for i, s := range list {
		if i < snapshotsKept {
			keep[s.State.Path] = true
			if s.Views != nil {
				keep[s.Views.Path] = true
			}
			continue
		}
		if err := j.latch.write(func() error {
			return j.db.Delete(newKey(keySnapshot, s.InputSeq), pebble.Sync)
		}); err != nil {
			return fmt.Errorf("journal: drop snapshot inputSeq=%d: %w", s.InputSeq, err)
		}
	}
	names, err := j.o.FS.List(dir)
	if err != nil {
		return fmt.Errorf("journal: list dir=%s: %w", dir, err)
	}
	for _, name := range names {
		ours := strings.HasSuffix(name, ".zst") || strings.HasSuffix(name, snapshotTemp)
		if !ours || keep[snapshotsName+"/"+name] {
			continue
		}
		if err := dropped(erase(j.o.FS, j.o.FS.PathJoin(dir, name))); err != nil {
			return fmt.Errorf("journal: remove file=%s: %w", j.o.FS.PathJoin(dir, name), err)
		}
	}
	return nil
}

// Restore offers the snapshots, newest first, to use, until use returns nil. A file is hashed in
// full before it is offered. A snapshot that is damaged, missing or refused by use is reported, and
// the next older one is tried. A damaged views image is reported, and the state is offered with
// views nil. Restore returns ErrNoSnapshot when none is left: the caller replays from genesis.
func (j *Journal) Restore(report func(error),
	use func(s Snapshot, state, views io.Reader) error) (Snapshot, error) {
	return j.restore(newest, true, report, use)
}

// newest is the bound of a search that accepts every snapshot.
const newest = math.MaxUint64

// restore is Restore among the snapshots at or before a sequence; without
// wantViews no views image is opened.
func (j *Journal) restore(before uint64, wantViews bool, report func(error),
	use func(s Snapshot, state, views io.Reader) error) (Snapshot, error) {
	list, bad, err := listSnapshots(j.db)
	if err != nil {
		return Snapshot{}, err
	}
	for _, b := range bad {
		report(b)
	}
	head, _ := j.Head()
	for _, s := range list {
		if s.InputSeq > before {
			continue
		}
		if s.InputSeq > head {
			report(fmt.Errorf("journal: snapshot inputSeq=%d beyond head %d: %w", s.InputSeq, head,
				ErrSnapshot))
			continue
		}
		if !wantViews {
			s.Views = nil
		}
		if err := j.offer(s, report, use); err != nil {
			if !j.pruned(s, err) {
				report(err)
			}
			continue
		}
		return s, nil
	}
	return Snapshot{}, ErrNoSnapshot
}

// pruned reports that the file of a snapshot is missing because newer ones have
// taken its place since it was listed: that is no damage.
func (j *Journal) pruned(s Snapshot, cause error) bool {
	if !notExist(cause) {
		return false
	}
	_, closer, err := get(j.db, newKey(keySnapshot, s.InputSeq))
	if err == nil {
		err = closer.Close()
	}
	return errors.Is(err, pebble.ErrNotFound)
}

// report logs what a shadow has passed over.
func (j *Journal) report(err error) { j.o.Logger.Errorf("%v", err) }

// offer opens one snapshot and passes it to use.
func (j *Journal) offer(s Snapshot, report func(error),
	use func(Snapshot, io.Reader, io.Reader) error) error {
	return j.offerFrom(j.dir, s, report, use)
}

// offerFrom is offer of a snapshot whose paths are below dir.
func (j *Journal) offerFrom(dir string, s Snapshot, report func(error),
	use func(Snapshot, io.Reader, io.Reader) error) error {
	state, err := openSnapshotFile(j.o.FS, dir, s.State)
	if err != nil {
		return err
	}
	defer state.Close()
	var views io.Reader
	if s.Views != nil {
		f, err := openSnapshotFile(j.o.FS, dir, *s.Views)
		if err != nil {
			report(err)
		} else {
			defer f.Close()
			views = f
		}
	}
	if err := use(s, state, views); err != nil {
		return fmt.Errorf("journal: snapshot inputSeq=%d: %w", s.InputSeq, err)
	}
	return nil
}

// snapshotReader is a verified, open file.
type snapshotReader struct {
	*zstd.Decoder
	f vfs.File
}

// Close closes decoder and file; a file that was only read has nothing to lose.
func (s *snapshotReader) Close() {
	s.Decoder.Close()
	_ = s.f.Close()
}

// openSnapshotFile hashes the file, compares, and opens it for reading.
func openSnapshotFile(fs vfs.FS, dir string, s SnapshotFile) (*snapshotReader, error) {
	path := fs.PathJoin(dir, s.Path)
	if err := checkSnapshotFile(fs, path, s); err != nil {
		return nil, err
	}
	f, err := fs.Open(path, vfs.SequentialReadsOption)
	if err != nil {
		return nil, fmt.Errorf("journal: open file=%s: %w", path, err)
	}
	z, err := zstd.NewReader(f, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true))
	if err != nil {
		return nil, errors.Join(fmt.Errorf("journal: open file=%s: %w", path, err), f.Close())
	}
	return &snapshotReader{z, f}, nil
}

func checkSnapshotFile(fs vfs.FS, path string, s SnapshotFile) error {
	f, err := fs.Open(path, vfs.SequentialReadsOption)
	if err != nil {
		return fmt.Errorf("journal: open file=%s: %w", path, err)
	}
	err = s.check(path, f)
	if closeErr := f.Close(); err == nil && closeErr != nil {
		err = fmt.Errorf("journal: close file=%s: %w", path, closeErr)
	}
	return err
}

// check reads r to its end and compares it with the manifest; path is for messages.
func (s SnapshotFile) check(path string, r io.Reader) error {
	sum := sha256.New()
	n, err := io.Copy(sum, r)
	if err != nil {
		return fmt.Errorf("journal: read file=%s: %w", path, err)
	}
	if got := hex.EncodeToString(sum.Sum(nil)); got != s.SHA256 || n != s.Bytes {
		return fmt.Errorf("journal: file=%s: %d bytes sha256 %s, manifest has %d bytes %s: %w",
			path, n, got, s.Bytes, s.SHA256, ErrSnapshot)
	}
	return nil
}
