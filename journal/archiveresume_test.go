package journal

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"posttrade/ring/must"
)

// archiveAlone writes the archive of an aged journal and leaves the journal's blocks, as a process
// that was killed in between does. It returns the archive's folder.
func archiveAlone(t *testing.T, fs vfs.FS) (folder string, to point) {
	t.Helper()
	j := must.Get(Open("j", strict(t, fs)))(t)
	to = must.Get(j.old(t.Context(), tomorrow.UnixMilli(), nil))(t)
	s := archivePointer{Name: fmt.Sprintf("%020d-%020d", 1, to.inputSeq),
		From: point{chain: j.seed}.exported(),
		To:   to.exported(), Root: fmt.Sprint("root-", to.inputSeq)}
	folder = "archives/" + s.Name
	must.Get(j.putArchive(t.Context(), folder, &s, point{chain: j.seed}, to))(t)
	must.OK(t, j.Close())
	return folder, to
}

// TestArchiveIsCutShort ends an archiving after each of its steps. Before the last, the journal has
// everything; the next archiving goes on.
func TestArchiveIsCutShort(t *testing.T) {
	for _, step := range []string{"received in part", "received", "written"} {
		fs := vfs.NewMem()
		f, _ := agedJournal(t, fs)
		before, err := verifyToy(t, fs, f, "")
		must.OK(t, err)
		folder, _ := archiveAlone(t, fs)
		switch step {
		case "received in part":
			must.OK(t, fs.Remove(folder+"/"+archiveName))
			must.OK(t, fs.RemoveAll(folder+"/"+storeName))
			must.OK(t, must.Get(fs.Create(folder+"/"+receivingName, writeCategory))(t).Close())
		case "received":
			must.OK(t, fs.Remove(folder+"/"+archiveName))
		}
		if r, err := verifyToy(t, fs, f, ""); err != nil || r.Chain != before.Chain {
			t.Errorf("%s: %v", step, err)
		}
		done, err := archive(t, fs, tomorrow)
		must.OK(t, err)
		expectArchived(t, fs, &f, before, done.To)
	}
}

// TestAnArchiveIsFinishedBehindANewSnapshot: more may be moved than when the process was killed.
// The same command finishes the archive that it has begun, and again it makes the next one. No
// folder is left that nothing names; another journal's archive in the same place is not taken.
func TestAnArchiveIsFinishedBehindANewSnapshot(t *testing.T) {
	fs := vfs.NewMem()
	f, _ := agedJournal(t, fs)
	folder, to := archiveAlone(t, fs)
	other := vfs.NewMem()
	g := flow{seed: 10, idsEvery: 4}
	j := openNew(t, "j", strict(t, other))
	for range 2 {
		growAged(t, j, &g)
	}
	must.OK(t, j.Close())
	others, _ := archiveAlone(t, other)
	must.OK(t, fs.MkdirAll(others, 0o755))
	must.OK(t, putFile(fs, others+"/"+archiveName,
		must.Get(readWhole(other, others+"/"+archiveName))(t)))

	j = must.Get(Open("j", strict(t, fs)))(t)
	for range 2 {
		growAged(t, j, &f)
	}
	must.OK(t, j.Close())
	before := must.Get(verifyToy(t, fs, f, ""))(t)
	done := must.Get(archive(t, fs, tomorrow))(t)
	if "archives/"+done.Name != folder || done.To != to.exported() {
		t.Errorf("%s was begun, and %s is made", folder, done.Name)
	}
	expectArchived(t, fs, &f, before, done.To)
	next := must.Get(archive(t, fs, tomorrow))(t)
	if next.From != done.To {
		t.Errorf("%+v goes on behind %+v", next, done)
	}
	if all := must.Get(fs.List("archives"))(t); len(all) != 3 {
		t.Errorf("folders %v", all)
	}
}

// editStore changes the content of a store that no journal has open.
func editStore(t *testing.T, fs vfs.FS, store string, edit func(db *blockStore) error) {
	t.Helper()
	l := newLatch(func(err error) { t.Error(err) })
	db := must.Get(openStore(store, storeOptions(fs, l, discardLogger{}), l))(t)
	must.OK(t, edit(db))
	must.OK(t, closeStore(db, l))
}

// archiveDamages are what may have happened to a whole archive up to a commit; each must be found.
func archiveDamages(t *testing.T, folder string, to point) map[string]func(fs vfs.FS) {
	store := folder + "/" + storeName
	edit := func(change func(db *blockStore) error) func(vfs.FS) {
		return func(fs vfs.FS) { editStore(t, fs, store, change) }
	}
	return map[string]func(fs vfs.FS){
		"the store is gone": func(fs vfs.FS) { must.OK(t, fs.RemoveAll(store)) },
		"no genesis": edit(func(db *blockStore) error {
			return db.Delete([]byte{keyGenesis}, pebble.Sync)
		}),
		"another genesis": edit(func(db *blockStore) error {
			return db.Set([]byte{keyGenesis}, putGenesis([]byte("other")), pebble.Sync)
		}),
		"no block": edit(func(db *blockStore) error {
			return db.DeleteRange([]byte{keyCommands}, []byte{keyCommands + 1}, pebble.Sync)
		}),
		"no first block": edit(func(db *blockStore) error {
			return db.Delete(newKey(keyCommands, 1), pebble.Sync)
		}),
		"no last block": edit(func(db *blockStore) error {
			e, err := commandsAt(db, to.inputSeq)
			return errors.Join(err, db.Delete(newKey(keyCommands, e.first), pebble.Sync))
		}),
		"no fills": edit(func(db *blockStore) error {
			return db.DeleteRange([]byte{keyFills}, []byte{keyFills + 1}, pebble.Sync)
		}),
		"no client ids": edit(func(db *blockStore) error {
			return db.DeleteRange([]byte{keyIDs}, []byte{keyIDs + 1}, pebble.Sync)
		}),
		"it goes on": func(fs vfs.FS) {
			j := must.Get(Open("j", strict(t, fs)))(t)
			editStore(t, fs, store, func(db *blockStore) error {
				return iterate(j.db, nil, nil, func(it *pebble.Iterator) (err error) {
					for ok := it.First(); ok; ok = it.Next() {
						err = errors.Join(err, db.Set(it.Key(), it.Value(), pebble.Sync))
					}
					return err
				})
			})
			must.OK(t, j.Close())
		},
	}
}

// TestAnArchiveThatIsThereIsReadFirst goes on behind an archive that was written whole and is not
// whole any more. The error names its folder; nothing is removed, there or in the journal.
func TestAnArchiveThatIsThereIsReadFirst(t *testing.T) {
	mem := vfs.NewCrashableMem()
	f, _ := agedJournal(t, mem)
	before := must.Get(verifyToy(t, mem, f, ""))(t)
	folder, to := archiveAlone(t, mem)
	for name, damage := range archiveDamages(t, folder, to) {
		fs := kill(mem)
		damage(fs)
		there := capture(t, fs, folder)
		_, err := archive(t, fs, tomorrow)
		if err == nil || !strings.Contains(err.Error(), folder) || errors.Is(err, ErrNoGenesis) {
			t.Errorf("%s: %v", name, err)
		}
		if r, err := verifyToy(t, fs, f, ""); err != nil || r.Chain != before.Chain {
			t.Errorf("%s: the journal has lost something: %v", name, err)
		}
		if err := there.same(capture(t, fs, folder)); err != nil {
			t.Errorf("%s: in the archive %v", name, err)
		}
	}
	store, found := folder+"/"+storeName, 0
	for _, table := range must.Get(mem.List(store))(t) {
		if !isTable(table) {
			continue
		}
		fs := kill(mem)
		text := must.Get(readWhole(fs, store+"/"+table))(t)
		text[len(text)/3] ^= 4
		must.OK(t, putFile(fs, store+"/"+table, text))
		archives := "archives" // a flip may change nothing of the history
		if _, err := archive(t, fs, tomorrow); err != nil {
			archives, found = "", found+1
		}
		must.Get(verifyToy(t, fs, f, archives))(t)
	}
	if found < 3 {
		t.Errorf("%d flips are found, want one in commands, fills and client ids", found)
	}
}

// TestAnArchiveThatCannotBeReadStays: while it is not known what an archive's folder holds, nothing
// is removed.
func TestAnArchiveThatCannotBeReadStays(t *testing.T) {
	mem := vfs.NewCrashableMem()
	f, _ := agedJournal(t, mem)
	folder, _ := archiveAlone(t, mem)
	for _, file := range []string{archiveName, storeName + "/000004.sst"} {
		fs := kill(mem)
		_, err := archive(t, errorfs.Wrap(fs, errorfs.InjectorFunc(func(op errorfs.Op) error {
			if op.Kind.ReadOrWrite() == errorfs.OpIsRead && op.Path == folder+"/"+file {
				return syscall.EIO
			}
			return nil
		})), tomorrow)
		if !errors.Is(err, syscall.EIO) || !strings.Contains(err.Error(), folder) {
			t.Errorf("%s: %v", file, err)
		}
		must.Get(verifyToy(t, fs, f, ""))(t)
		must.Get(archive(t, fs, tomorrow))(t)
		must.Get(verifyToy(t, fs, f, "archives"))(t)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	fs := kill(mem)
	j := must.Get(Open("j", strict(t, fs)))(t)
	must.Be(t, j.confirm(ctx, folder, point{chain: j.seed}, point{}), context.Canceled)
	must.OK(t, j.Close())
}

// TestAnArchiveThatIsThereIsDurable goes on behind an archive of which not one byte or name has
// been synced, such as a copy. When the blocks are removed, a power cut cannot take the archive.
func TestAnArchiveThatIsThereIsDurable(t *testing.T) {
	mem := vfs.NewCrashableMem()
	f, _ := agedJournal(t, mem)
	archiveAlone(t, mem)
	copied := capture(t, mem, "archives")
	must.OK(t, mem.RemoveAll("archives"))
	must.OK(t, syncDir(mem, "."))
	for _, name := range slices.Sorted(maps.Keys(copied)) {
		dir := mem.PathDir(name)
		for _, made := range []string{"archives", mem.PathDir(dir), dir} {
			must.OK(t, mem.MkdirAll(made, 0o755))
		}
		w := must.Get(mem.Create(name, writeCategory))(t)
		must.OK(t, second(w.Write(copied[name])))
		must.OK(t, w.Close())
	}
	must.Get(archive(t, mem, tomorrow))(t)
	must.Get(verifyToy(t, powerCut(mem), f, "archives"))(t)
}
