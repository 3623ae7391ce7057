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

// Keep is a folder of snapshots of shadows, beside the few that the journal itself keeps, so that
// any moment of a long history has a snapshot near it. What is in the folder is derived: it may be
// deleted at any time, and is made again.
//
// A snapshot is three files: state, views, and a manifest that is written last. The manifest names
// the block of the history that holds the snapshot's sequence, and its chain. So a snapshot of
// another history, or of a suffix that a power cut has taken, is never used. Any goroutine.
type Keep struct {
	// The journal whose history the snapshots must be of, and the folder. Constant.
	j *Journal
	// Made by the first Write.
	dir string

	mu sync.Mutex
	// Ascending by sequence; what is in it belongs to the stable history.
	list []keptSnapshot
}

// keptSnapshot is the manifest of a snapshot in a Keep. Its paths are below the folder. It always
// has views.
type keptSnapshot struct {
	Snapshot
	BlockEnd uint64 `json:"blockEnd"` // the last command of the block that holds the sequence
	Chain    string `json:"chain"`    // of that block, hex

	// The block could not be read: its archive is not there. The snapshot is not used and not removed.
	away bool
}

const keptSuffix = ".json"

func keptName(inputSeq uint64) string { return fmt.Sprintf("%020d%s", inputSeq, keptSuffix) }

// OpenKeep reads the folder's manifests; a folder that does not exist is empty. Of what does not
// belong to this journal's stable history, or cannot be read, nothing is used: it is logged. The
// states and images themselves are not read yet. Cost: for each manifest a search in the store, or
// in the archive that has its block; while that archive cannot be read, the snapshot is not used.
func OpenKeep(j *Journal, dir string) (*Keep, error) {
	k := &Keep{j: j, dir: dir}
	names, err := j.o.FS.List(dir)
	if notExist(err) {
		return k, nil
	}
	if err != nil {
		return nil, fmt.Errorf("journal: list dir=%s: %w", dir, err)
	}
	for _, name := range names {
		if !strings.HasSuffix(name, keptSuffix) {
			continue
		}
		if s, err := k.read(name); err != nil {
			j.report(err)
		} else {
			k.list = append(k.list, s)
		}
	}
	slices.SortFunc(k.list, func(a, b keptSnapshot) int {
		return strings.Compare(keptName(a.InputSeq), keptName(b.InputSeq))
	})
	return k, nil
}

// read reads a manifest and compares it with the history. ErrSnapshot: it does not belong to it.
func (k *Keep) read(name string) (s keptSnapshot, err error) {
	path := k.j.o.FS.PathJoin(k.dir, name)
	fail := func(err error) (keptSnapshot, error) {
		return s, fmt.Errorf("journal: read file=%s: %w", path, err)
	}
	f, err := k.j.o.FS.Open(path)
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
	if name != keptName(s.InputSeq) || s.Views == nil || s.InputSeq == 0 ||
		s.State.Path != stateName(s.InputSeq) || s.Views.Path != viewsName(s.InputSeq) {
		return fail(fmt.Errorf("it does not describe its sequence: %w", ErrSnapshot))
	}
	end, chain, err := k.j.blockAt(s.InputSeq)
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
func (k *Keep) Sequences() []uint64 {
	k.mu.Lock()
	defer k.mu.Unlock()
	out := make([]uint64, len(k.list))
	for i := range k.list {
		out[i] = k.list[i].InputSeq
	}
	return out
}

// Bytes is the size of the snapshots' files, without their manifests.
func (k *Keep) Bytes() (n int64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for i := range k.list {
		n += k.list[i].State.Bytes + k.list[i].Views.Bytes
	}
	return n
}

// Write keeps a snapshot of a shadow with views. It must stand at a command up to StableEnd
// (ErrSnapshot); one that is kept already is not written again. Until the manifest has its name
// nothing counts, so a crash leaves only files for Clean. Cost: the state and the image, compressed
// and synced, on the caller's thread.
func (k *Keep) Write(sh *Shadow) error {
	s := keptSnapshot{Snapshot: Snapshot{InputSeq: sh.Applied(), Format: SnapshotFormat}}
	if slices.Contains(k.Sequences(), s.InputSeq) {
		return nil
	}
	end, chain, err := k.j.blockAt(s.InputSeq)
	if err != nil {
		return err
	}
	s.BlockEnd, s.Chain = end, hex.EncodeToString(chain[:])
	fs := k.j.o.FS
	if err := makeDir(fs, k.dir); err != nil {
		return err
	}
	s.State, err = snapshotFile(fs, k.dir, stateName(s.InputSeq), sh.engine.WriteSnapshot)
	if err != nil {
		return err
	}
	views, err := snapshotFile(fs, k.dir, viewsName(s.InputSeq), sh.views.Write)
	if err != nil {
		return err
	}
	s.Views = &views
	text, err := json.Marshal(s)
	if err != nil {
		return fmt.Errorf("journal: manifest inputSeq=%d: %w", s.InputSeq, err)
	}
	if err := k.writeManifest(keptName(s.InputSeq), text); err != nil {
		return err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	at, _ := slices.BinarySearchFunc(k.list, s.InputSeq, func(have keptSnapshot, seq uint64) int {
		return strings.Compare(keptName(have.InputSeq), keptName(seq))
	})
	k.list = slices.Insert(k.list, at, s)
	return nil
}

// writeManifest makes the manifest durable, and with it the names of the other two files: they are
// in the same folder.
func (k *Keep) writeManifest(name string, text []byte) error {
	fs := k.j.o.FS
	path := fs.PathJoin(k.dir, name)
	if err := replace(fs, path+snapshotTemp, path, filled(text)); err != nil {
		return err
	}
	return syncDir(fs, k.dir)
}

// Drop removes a snapshot, its manifest first, so that no manifest names a file that is gone. A
// snapshot that is not kept is no error.
func (k *Keep) Drop(inputSeq uint64) error {
	k.mu.Lock()
	k.list = slices.DeleteFunc(k.list, func(s keptSnapshot) bool { return s.InputSeq == inputSeq })
	k.mu.Unlock()
	return k.remove(keptName(inputSeq), stateName(inputSeq), viewsName(inputSeq))
}

// remove removes files of the folder, in the given order; one that is gone is fine.
func (k *Keep) remove(names ...string) error {
	for _, name := range names {
		path := k.j.o.FS.PathJoin(k.dir, name)
		if err := dropped(k.j.o.FS.Remove(path)); err != nil {
			return fmt.Errorf("journal: remove file=%s: %w", path, err)
		}
	}
	return nil
}

// Clean removes the files of the folder that no snapshot in use names: what a process that was
// killed has left half written, and what belongs to another history. Files with other names stay.
// No Write may be under way: its files have no manifest yet.
func (k *Keep) Clean() error {
	names, err := k.j.o.FS.List(k.dir)
	if notExist(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("journal: list dir=%s: %w", k.dir, err)
	}
	wanted := map[string]bool{}
	for _, inputSeq := range k.Sequences() {
		wanted[keptName(inputSeq)] = true
		wanted[stateName(inputSeq)], wanted[viewsName(inputSeq)] = true, true
	}
	for _, name := range names {
		var inputSeq uint64
		var rest string
		if n, err := fmt.Sscanf(name, "%020d%s", &inputSeq, &rest); n != 2 || err != nil || wanted[name] {
			continue
		}
		if err := k.remove(name); err != nil {
			return err
		}
	}
	return nil
}

// before returns the newest usable snapshot in (after, before], false if there is none. It looks at
// all of them.
func (k *Keep) before(after, before uint64) (found keptSnapshot, ok bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, s := range k.list {
		if s.InputSeq > after && s.InputSeq <= before && !s.away {
			found, ok = s, true
		}
	}
	return found, ok
}

// OpenShadow returns a shadow that stands at the newest usable snapshot at or before a sequence, of
// the journal's own and those of keep, or at genesis. keep may be nil. Of two with the same
// sequence the journal's own counts. A snapshot of keep that is damaged is logged and removed; then
// the next older one is tried. The caller closes the shadow.
func OpenShadow(j *Journal, rebuild Rebuild, before uint64, keep *Keep) (*Shadow, error) {
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
	for keep != nil {
		s, ok := keep.before(newest, before)
		if !ok {
			break
		}
		sh := shadowOf(j)
		err := j.offerFrom(keep.dir, s.Snapshot, j.report, sh.restorer(rebuild))
		if err == nil {
			return sh, nil
		}
		j.report(err)
		if err := keep.Drop(s.InputSeq); err != nil { // it is not used again all the same
			j.report(err)
		}
	}
	sh, _, err := newShadow(j, rebuild, before, j.report)
	return sh, err
}
