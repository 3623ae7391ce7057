package journal

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"strings"
	"sync"

	"github.com/cockroachdb/pebble/v2"
)

// Names and limits of snapshots. snapshotsKept manifests stay, the newest ones: a damaged newest
// snapshot leaves older ones to start from. Files are written with the suffix snapshotTemp and
// renamed when they are whole.
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

// Snapshot is a manifest: the engine's state, and optionally the views' image, at one sequence.
// Both are derived from the history, so a snapshot may be lost: a start then replays more.
type Snapshot struct {
	// The last command that the state contains.
	InputSeq uint64 `json:"sequence"`
	// SnapshotFormat when it was written.
	Format int          `json:"format"`
	State  SnapshotFile `json:"state"`
	// nil: written without views.
	Views *SnapshotFile `json:"views,omitempty"`
}

// SnapshotFormat is the format of the state inside (formats of the engine).
const SnapshotFormat = 6

// snapshots serialises writers of snapshots: pruning removes every file that no manifest names,
// also one that another writer has just begun.
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

// listSnapshots reads the manifests, newest first. bad has an error for each that cannot be read,
// which must not hide the others; err is the store's own.
func listSnapshots(db *blockStore) (list []Snapshot, bad []error, err error) {
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

// putManifest wraps a manifest for its key: version u8, three zero bytes, CRC-32C of the rest, JSON
// (FORMAT.md, section 5).
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

// parseManifest reads the manifest under key. It refuses one whose sequence is not the key's.
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
// stay.
//
//   - A snapshot beyond the durable head is refused (ErrSnapshot): after a crash it would know more
//     than the journal.
//   - A failure leaves the journal usable and the earlier snapshots in place, unless the store
//     itself fails. A crash leaves at most files that no manifest names; the next snapshot removes
//     them.
//   - Cost: the size of the state, compressed and synced, on the caller's thread. One at a time;
//     any goroutine.
//
// The order is that of what may be relied on: the files are synced and renamed, then their names
// are made durable, then the manifest is written under its key, then older snapshots go.
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
	if err := j.o.FS.MkdirAll(dir, 0o700); err != nil {
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

// prune drops all but the newest manifests, then every file that no manifest names. In this order a
// crash leaves files without a manifest, never a manifest without its files. A file is removed in
// steps (erase.go). The caller holds snapshots.mu.
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

// restore is Restore among the snapshots at or before a sequence; without wantViews no views image
// is opened. One beyond the head is reported and passed over: it belongs to commands that the
// journal has not.
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

// offer opens one snapshot and passes it to use. An error says that the state cannot be used; a
// views image that cannot is only reported.
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
