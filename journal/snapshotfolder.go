package journal

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
)

// SnapshotFolder is a folder of snapshots of shadows, beside the few that the journal itself keeps,
// so that any moment of a long history has a snapshot near it. What is in the folder is derived: it
// may be deleted at any time, and is made again.
//
// A snapshot is three files: state, views, and a manifest that is written last. The manifest names
// the block of the history that holds the snapshot's sequence, and its chain. So a snapshot of
// another history, or of a suffix that a power cut has taken, is never used. Any goroutine.
type SnapshotFolder struct {
	// The journal whose history the snapshots must be of, and the folder. Constant.
	j *Journal
	// Made by the first Write.
	dir string

	mu sync.Mutex
	// Ascending by sequence; what is in it belongs to the stable history.
	list []folderSnapshot
}

// folderSnapshot is the manifest of a snapshot in a SnapshotFolder. Its paths are below the folder.
// It always has views.
type folderSnapshot struct {
	Snapshot
	BlockEnd uint64 `json:"blockEnd"` // the last command of the block that holds the sequence
	Chain    string `json:"chain"`    // of that block, hex

	// The block could not be read: its archive is not there. The snapshot is not used and not removed.
	away bool
}

const manifestSuffix = ".json"

func manifestName(inputSeq uint64) string {
	return fmt.Sprintf("%020d%s", inputSeq, manifestSuffix)
}

// OpenSnapshotFolder reads the folder's manifests; a folder that does not exist is empty. Of what
// does not belong to this journal's stable history, or cannot be read, nothing is used: it is
// logged. The states and images themselves are not read yet. Cost: for each manifest a search in
// the store, or in the archive that has its block; while that archive cannot be read, the snapshot
// is not used.
func OpenSnapshotFolder(j *Journal, dir string) (*SnapshotFolder, error) {
	d := &SnapshotFolder{j: j, dir: dir}
	names, err := j.o.FS.List(dir)
	if notExist(err) {
		return d, nil
	}
	if err != nil {
		return nil, fmt.Errorf("journal: list dir=%s: %w", dir, err)
	}
	for _, name := range names {
		if !strings.HasSuffix(name, manifestSuffix) {
			continue
		}
		if s, err := d.read(name); err != nil {
			j.report(err)
		} else {
			d.list = append(d.list, s)
		}
	}
	slices.SortFunc(d.list, func(a, b folderSnapshot) int {
		return strings.Compare(manifestName(a.InputSeq), manifestName(b.InputSeq))
	})
	return d, nil
}

// read reads a manifest and compares it with the history. ErrSnapshot: it does not belong to it.
func (d *SnapshotFolder) read(name string) (s folderSnapshot, err error) {
	path := d.j.o.FS.PathJoin(d.dir, name)
	fail := func(err error) (folderSnapshot, error) {
		return s, fmt.Errorf("journal: read file=%s: %w", path, err)
	}
	f, err := d.j.o.FS.Open(path)
	if err != nil {
		return fail(err)
	}
	text, err := io.ReadAll(io.LimitReader(f, 1<<16))
	if err = errors.Join(err, f.Close()); err != nil {
		return fail(err)
	}
	if err := json.Unmarshal(text, &s); err != nil {
		return fail(fmt.Errorf("%w: %w", err, ErrSnapshot))
	}
	if name != manifestName(s.InputSeq) || s.Views == nil || s.InputSeq == 0 ||
		s.State.Path != stateName(s.InputSeq) || s.Views.Path != viewsName(s.InputSeq) {
		return fail(fmt.Errorf("it does not describe its sequence: %w", ErrSnapshot))
	}
	end, chain, err := d.j.blockAt(s.InputSeq)
	if errors.Is(err, ErrArchived) {
		s.away = true
		return s, nil
	}
	if err != nil {
		return fail(err)
	}
	if end != s.BlockEnd || hex.EncodeToString(chain[:]) != s.Chain {
		return fail(fmt.Errorf("it belongs to another history: %w", ErrSnapshot))
	}
	return s, nil
}

// blockAt returns the last sequence and the chain of the block that holds a stable command. The
// whole block must be stable as a commit (StableEnd): a power cut could take it, and another commit
// could then end elsewhere. ErrSnapshot when it is not.
func (j *Journal) blockAt(inputSeq uint64) (end uint64, chain [chainBytes]byte, err error) {
	stable := j.StableEnd()
	if inputSeq == 0 || inputSeq > stable {
		return 0, chain, fmt.Errorf("journal: inputSeq=%d is beyond the stable commits, which end at "+
			"%d: %w", inputSeq, stable, ErrSnapshot)
	}
	e, err := commandsAt(j.db, inputSeq)
	if err != nil {
		return 0, chain, err
	}
	if end = e.last(); end < inputSeq || end > stable {
		err = fmt.Errorf("journal: the block of inputSeq=%d ends at %d, the stable commits at %d: %w",
			inputSeq, end, stable, ErrSnapshot)
	}
	return end, e.chain, err
}

// Sequences are those of the snapshots, also of those whose archive cannot be read, ascending, in a
// slice of the caller's.
func (d *SnapshotFolder) Sequences() []uint64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	out := make([]uint64, len(d.list))
	for i := range d.list {
		out[i] = d.list[i].InputSeq
	}
	return out
}

// Bytes is the size of the snapshots' files, without their manifests.
func (d *SnapshotFolder) Bytes() (n int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for i := range d.list {
		n += d.list[i].State.Bytes + d.list[i].Views.Bytes
	}
	return n
}

// Write keeps a snapshot of a shadow with views. It must stand at a command up to StableEnd
// (ErrSnapshot); one that is kept already is not written again. Until the manifest has its name
// nothing counts, so a crash leaves only files for Clean. Cost: the state and the image, compressed
// and synced, on the caller's thread.
func (d *SnapshotFolder) Write(sh *Shadow) error {
	s := folderSnapshot{Snapshot: Snapshot{InputSeq: sh.Applied(), Format: SnapshotFormat}}
	if slices.Contains(d.Sequences(), s.InputSeq) {
		return nil
	}
	end, chain, err := d.j.blockAt(s.InputSeq)
	if err != nil {
		return err
	}
	s.BlockEnd, s.Chain = end, hex.EncodeToString(chain[:])
	fs := d.j.o.FS
	if err := makeDir(fs, d.dir); err != nil {
		return err
	}
	s.State, err = snapshotFile(fs, d.dir, stateName(s.InputSeq), sh.engine.WriteSnapshot)
	if err != nil {
		return err
	}
	views, err := snapshotFile(fs, d.dir, viewsName(s.InputSeq), sh.views.Write)
	if err != nil {
		return err
	}
	s.Views = &views
	text, err := json.Marshal(s)
	if err != nil {
		return fmt.Errorf("journal: manifest inputSeq=%d: %w", s.InputSeq, err)
	}
	if err := d.writeManifest(manifestName(s.InputSeq), text); err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	at, _ := slices.BinarySearchFunc(d.list, s.InputSeq, func(have folderSnapshot, seq uint64) int {
		return strings.Compare(manifestName(have.InputSeq), manifestName(seq))
	})
	d.list = slices.Insert(d.list, at, s)
	return nil
}

// writeManifest makes the manifest durable, and with it the names of the other two files: they are
// in the same folder.
func (d *SnapshotFolder) writeManifest(name string, text []byte) error {
	fs := d.j.o.FS
	path := fs.PathJoin(d.dir, name)
	if err := replace(fs, path+snapshotTemp, path, filled(text)); err != nil {
		return err
	}
	return syncDir(fs, d.dir)
}

// Drop removes a snapshot, its manifest first, so that no manifest names a file that is gone. A
// snapshot that is not kept is no error.
func (d *SnapshotFolder) Drop(inputSeq uint64) error {
	d.mu.Lock()
	d.list = slices.DeleteFunc(d.list, func(s folderSnapshot) bool { return s.InputSeq == inputSeq })
	d.mu.Unlock()
	return d.remove(manifestName(inputSeq), stateName(inputSeq), viewsName(inputSeq))
}

// remove removes files of the folder, in the given order; one that is gone is fine.
func (d *SnapshotFolder) remove(names ...string) error {
	for _, name := range names {
		path := d.j.o.FS.PathJoin(d.dir, name)
		if err := dropped(d.j.o.FS.Remove(path)); err != nil {
			return fmt.Errorf("journal: remove file=%s: %w", path, err)
		}
	}
	return nil
}

// Clean removes the files of the folder that no snapshot in use names: what a process that was
// killed has left half written, and what belongs to another history. Files with other names stay.
// No Write may be under way: its files have no manifest yet.
func (d *SnapshotFolder) Clean() error {
	names, err := d.j.o.FS.List(d.dir)
	if notExist(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("journal: list dir=%s: %w", d.dir, err)
	}
	wanted := map[string]bool{}
	for _, inputSeq := range d.Sequences() {
		wanted[manifestName(inputSeq)] = true
		wanted[stateName(inputSeq)], wanted[viewsName(inputSeq)] = true, true
	}
	for _, name := range names {
		var inputSeq uint64
		var rest string
		if n, err := fmt.Sscanf(name, "%020d%s", &inputSeq, &rest); n != 2 || err != nil || wanted[name] {
			continue
		}
		if err := d.remove(name); err != nil {
			return err
		}
	}
	return nil
}

// before returns the newest usable snapshot in (after, before], false if there is none. It looks at
// all of them.
func (d *SnapshotFolder) before(after, before uint64) (found folderSnapshot, ok bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, s := range d.list {
		if s.InputSeq > after && s.InputSeq <= before && !s.away {
			found, ok = s, true
		}
	}
	return found, ok
}

// OpenShadow returns a shadow that stands at the newest usable snapshot at or before a sequence, of
// the journal's own and those of folder, or at genesis. folder may be nil. Of two with the same
// sequence the journal's own counts. A snapshot of folder that is damaged is logged and removed;
// then the next older one is tried. The caller closes the shadow.
func OpenShadow(j *Journal, rebuild Rebuild, before uint64,
	folder *SnapshotFolder) (*Shadow, error) {
	list, err := j.Snapshots()
	if err != nil {
		j.report(err)
	}
	newest := uint64(0)
	for _, s := range list {
		if s.InputSeq <= before {
			newest = max(newest, s.InputSeq)
		}
	}
	for folder != nil {
		s, ok := folder.before(newest, before)
		if !ok {
			break
		}
		sh := shadowOf(j)
		err := j.offerFrom(folder.dir, s.Snapshot, j.report, sh.restorer(rebuild))
		if err == nil {
			return sh, nil
		}
		j.report(err)
		if err := folder.Drop(s.InputSeq); err != nil { // it is not used again all the same
			j.report(err)
		}
	}
	sh, _, err := newShadow(j, rebuild, before, j.report)
	return sh, err
}
