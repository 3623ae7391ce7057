package backup

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"posttrade/journal"
	"posttrade/journal/transfer"
	"posttrade/matcher"
	"posttrade/ring/disk"
	"posttrade/ring/must"
)

// rig is a journal that grows, and is the source of backups.
type rig struct {
	t     *testing.T
	j     *journal.Journal
	next  uint64
	rows  string
	limit int // of bytes of a stream; 0: none
}

func newRig(t *testing.T, genesis string) *rig {
	t.Helper()
	j := must.Get(journal.Open(filepath.Join(t.TempDir(), "journal"), options()))(t)
	must.OK(t, j.Create([]byte(genesis)))
	r := &rig{t: t, j: j, next: 1, rows: "{\"a\":1}\n{\"b\":2}\n"}
	t.Cleanup(func() {
		if err := j.Close(); err != nil {
			t.Error(err)
		}
	})
	return r
}

func options() journal.Options { return journal.Options{Fatal: func(error) {}} }

// grow appends blocks of a few commands.
func (r *rig) grow(blocks int) {
	r.t.Helper()
	for range blocks {
		var b journal.Block
		for n := range 5 {
			c := matcher.NewCommand(matcher.OrderNew)
			c.InputSeq = r.next
			b.Command(&c)
			if n == 0 {
				b.ClientID(r.next, fmt.Appendf(nil, "id-%d", r.next))
			}
			r.next++
		}
		c, err := r.j.Append(&b)
		if err == nil {
			err = c.Wait()
		}
		must.OK(r.t, err)
	}
}

func (r *rig) Journal(_ context.Context, genesis string,
	after journal.Point) (io.ReadCloser, error) {
	seed := r.j.Seed()
	if genesis != "" && genesis != fmt.Sprintf("%x", seed) {
		return nil, journal.ErrBase
	}
	t, err := r.j.TransferAfter(after)
	if err != nil || r.limit == 0 {
		return t, err
	}
	return struct {
		io.Reader
		io.Closer
	}{io.LimitReader(t, int64(r.limit)), t}, nil
}

func (r *rig) Tables(context.Context) (io.ReadCloser, string, error) {
	if r.rows == "" {
		return nil, "no sidecars", nil
	}
	return io.NopCloser(strings.NewReader(r.rows)), "", nil
}

func (r *rig) write(dir, since string) (*Manifest, error) {
	return Write(r.t.Context(), dir, r, Options{Since: since, Now: time.Now})
}

func (r *rig) mustWrite(dir, since string) *Manifest {
	r.t.Helper()
	m := must.Get(r.write(dir, since))(r.t)
	must.OK(r.t, Verify(m))
	return m
}

// chain makes a whole backup and two that go on from it.
func (r *rig) chain() (dirs []string) {
	r.t.Helper()
	since := ""
	for n := range 3 {
		r.grow(3)
		dir := filepath.Join(r.t.TempDir(), fmt.Sprintf("night%d", n))
		r.mustWrite(dir, since)
		dirs, since = append(dirs, dir), dir
	}
	return dirs
}

func restoreInto(data string, dirs []string, to uint64) (Origin, error) {
	list, err := Chain(dirs)
	if err != nil {
		return Origin{}, err
	}
	return Restore(data, list, RestoreOptions{To: to, Journal: options()})
}

// exported is the commands of a journal, as lines.
func exported(t *testing.T, dir string) []string {
	t.Helper()
	var out bytes.Buffer
	must.OK(t, journal.Export(t.Context(), dir, &out, 1, 0, journal.VerifyOptions{}))
	return strings.Split(strings.TrimSpace(out.String()), "\n")
}

func TestChainIsRestored(t *testing.T) {
	r := newRig(t, "genesis")
	dirs := r.chain()
	want := exported(t, r.j.Dir())
	for n, dir := range dirs {
		m, err := Read(dir)
		if err != nil || m.To.InputSeq != uint64(15*(n+1)) || m.From.InputSeq != uint64(15*n) {
			t.Fatalf("%+v %v", m, err)
		}
	}
	for to := uint64(0); to <= 45; to++ {
		data := filepath.Join(t.TempDir(), "data")
		got, err := restoreInto(data, dirs, to)
		must.OK(t, err)
		end := 45
		if to > 0 {
			end = int(to)
		}
		if lines := exported(t, filepath.Join(data, "journal")); !slices.Equal(lines, want[:end]) {
			t.Errorf("to %d: %d commands", to, len(lines))
		}
		if got.InputSequence != uint64(end) || len(got.From) != (end+14)/15 {
			t.Errorf("to %d: %+v", to, got)
		}
		rows, err := os.ReadFile(filepath.Join(data, RestoredName, tablesName))
		if err != nil || string(rows) != r.rows {
			t.Errorf("rows %q, %v", rows, err)
		}
		if err := Whole(data); err != nil {
			t.Error(err)
		}
	}
	if _, err := restoreInto(filepath.Join(t.TempDir(), "data"), dirs, 46); !errors.Is(err, ErrChain) {
		t.Error(err)
	}
}

// TestRowsOfTheNewestBackupThatHasThem: nights without the database hide no rows.
func TestRowsOfTheNewestBackupThatHasThem(t *testing.T) {
	r := newRig(t, "genesis")
	var dirs []string
	since := ""
	for n, rows := range []string{"", "old\n", "kept\n", "", ""} {
		r.grow(1)
		r.rows = rows
		dir := filepath.Join(t.TempDir(), fmt.Sprintf("night%d", n))
		r.mustWrite(dir, since)
		dirs, since = append(dirs, dir), dir
	}
	for _, c := range []struct {
		used  int // how many backups
		to    uint64
		rows  string
		from  int // the backup that the rows are of
		older bool
	}{
		{used: 1}, {used: 2, rows: "old\n", from: 1}, {used: 3, rows: "kept\n", from: 2},
		{used: 4, rows: "kept\n", from: 2, older: true}, {used: 5, rows: "kept\n", from: 2, older: true},
		{used: 5, to: 16, rows: "kept\n", from: 2, older: true},
		{used: 5, to: 14, rows: "kept\n", from: 2}, {used: 5, to: 10, rows: "old\n", from: 1},
	} {
		data := filepath.Join(t.TempDir(), "data")
		got := must.Get(restoreInto(data, dirs[:c.used], c.to))(t)
		rows, err := os.ReadFile(filepath.Join(data, RestoredName, tablesName))
		if string(rows) != c.rows || c.rows == "" != errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%+v: rows %q, %v", c, rows, err)
		}
		from, sequence := "", uint64(0)
		if c.rows != "" {
			from, sequence = dirs[c.from], uint64(5*(c.from+1))
		}
		noted := must.Get(Restored(data))(t)
		if want := fmt.Sprintf("%x", r.j.Seed()); got.Genesis != want || noted.Genesis != want {
			t.Errorf("genesis %s, noted %s, want %s", got.Genesis, noted.Genesis, want)
		}
		if got.RowsFrom != from || got.RowsSequence != sequence || got.RowsOlder() != c.older ||
			noted.RowsFrom != from || noted.RowsSequence != sequence {
			t.Errorf("%+v: %+v, noted %+v", c, got, noted)
		}
	}
}

func TestWrongChainIsRefusedByName(t *testing.T) {
	r, other := newRig(t, "genesis"), newRig(t, "another")
	dirs, foreign := r.chain(), other.chain()
	for name, list := range map[string][]string{
		"a hole":       {dirs[0], dirs[2]},
		"out of order": {dirs[1], dirs[0]},
		"twice":        {dirs[0], dirs[0]},
		"foreign":      {dirs[0], foreign[1]},
	} {
		_, err := Chain(list)
		if !errors.Is(err, ErrChain) || !strings.Contains(err.Error(), filepath.Base(list[1])) &&
			!strings.Contains(err.Error(), list[0]) {
			t.Errorf("%s: %v", name, err)
		}
	}
	// a base of another journal, and one that this journal has never been at
	for name, since := range map[string]string{"foreign": foreign[0], "ahead": ahead(t, r)} {
		_, err := r.write(filepath.Join(t.TempDir(), "new"), since)
		if !errors.Is(err, journal.ErrBase) || !strings.Contains(err.Error(), since) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := r.write(filepath.Join(t.TempDir(), "new"), t.TempDir()); !errors.Is(err, ErrNone) {
		t.Error(err)
	}
}

// ahead is a backup of a copy of the journal that went on by itself.
func ahead(t *testing.T, r *rig) string {
	copied := newRig(t, "genesis")
	copied.grow(20)
	dir := filepath.Join(t.TempDir(), "ahead")
	copied.mustWrite(dir, "")
	return dir
}

// TestCutShortIsNoBackup ends the stream at many places. What is left is never taken for a backup,
// and the next attempt makes one.
func TestCutShortIsNoBackup(t *testing.T) {
	r := newRig(t, "genesis")
	r.grow(4)
	dir := filepath.Join(t.TempDir(), "night")
	for r.limit = 1; r.limit < 1200; r.limit += 97 {
		if _, err := r.write(dir, ""); !errors.Is(err, transfer.ErrNotWhole) {
			t.Fatalf("limit %d: %v", r.limit, err)
		}
		if _, err := Read(dir); !errors.Is(err, ErrUnfinished) {
			t.Fatal(err)
		}
		if _, err := restoreInto(filepath.Join(t.TempDir(), "data"), []string{dir}, 0); !errors.Is(err,
			ErrUnfinished) {
			t.Fatal(err)
		}
	}
	r.limit = 0
	r.mustWrite(dir, "")
	if _, err := r.write(dir, ""); !errors.Is(err, ErrExists) {
		t.Error(err)
	}
}

// TestDirectoriesAreMadeWithDurableNames: a backup and a restored directory are made by
// disk.MakeDir, before anything else, and its error ends both.
func TestDirectoriesAreMadeWithDurableNames(t *testing.T) {
	torn := errors.New("torn")
	dir := filepath.Join(t.TempDir(), "new", "night")
	var made []string
	failing := func(name string, _ fs.FileMode) error {
		made = append(made, name)
		return torn
	}
	must.Be(t, (&writing{dir: dir, makeDir: failing}).begin(), torn)
	must.Be(t, (&restore{data: dir, makeDir: failing}).begin(), torn)
	if !slices.Equal(made, []string{dir, dir}) {
		t.Errorf("made: %v", made)
	}
	if _, err := os.Stat(filepath.Dir(dir)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("there is something: %v", err)
	}
	r := newRig(t, "genesis")
	r.grow(1)
	r.mustWrite(dir, "")
	must.Get(restoreInto(filepath.Join(t.TempDir(), "also", "new"), []string{dir}, 0))(t)
}

func TestOnlyAnEmptyDirectoryIsWritten(t *testing.T) {
	r := newRig(t, "genesis")
	r.grow(1)
	night := filepath.Join(t.TempDir(), "night")
	r.mustWrite(night, "")
	dir := t.TempDir()
	mine := filepath.Join(dir, "mine")
	must.OK(t, os.WriteFile(mine, []byte("x"), 0o600))
	if _, err := r.write(dir, ""); !errors.Is(err, ErrNotEmpty) {
		t.Error(err)
	}
	if _, err := restoreInto(dir, []string{night}, 0); !errors.Is(err, ErrNotEmpty) {
		t.Error(err)
	}
	if names := namesIn(t, dir); !slices.Equal(names, []string{"mine"}) {
		t.Errorf("%v", names)
	}
	locked := filepath.Join(t.TempDir(), "locked")
	must.OK(t, os.MkdirAll(locked, 0o700))
	lock := must.Get(journal.LockFile(filepath.Join(locked, lockName)))(t)
	if _, err := r.write(locked, ""); !errors.Is(err, journal.ErrLocked) {
		t.Error(err)
	}
	must.OK(t, lock.Close())
	r.mustWrite(locked, "")
}

// TestRestoreBesideAServer: a start that was refused leaves the file of a lock, which is no
// content. While a server has the lock nothing is written.
func TestRestoreBesideAServer(t *testing.T) {
	r := newRig(t, "genesis")
	r.grow(1)
	night, data := filepath.Join(t.TempDir(), "night"), t.TempDir()
	r.mustWrite(night, "")
	lock := must.Get(journal.LockDir(data))(t)
	if _, err := restoreInto(data, []string{night}, 0); !errors.Is(err, journal.ErrLocked) {
		t.Errorf("beside a server: %v", err)
	}
	must.OK(t, lock.Close())
	must.Get(restoreInto(data, []string{night}, 0))(t)
}

func namesIn(t *testing.T, dir string) (names []string) {
	t.Helper()
	entries := must.Get(os.ReadDir(dir))(t)
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// TestEveryFlipIsFound flips bytes of every file of a chain, one at a time. No restore takes them,
// and what a refused restore leaves is no data directory.
func TestEveryFlipIsFound(t *testing.T) {
	r := newRig(t, "genesis")
	dirs := r.chain()
	tried := 0
	for n, dir := range dirs {
		for _, name := range namesIn(t, dir) {
			path := filepath.Join(dir, name)
			good := must.Get(os.ReadFile(path))(t)
			used := name != tablesName || n == len(dirs)-1 // the rows of the last one count
			for at := 0; at < len(good); at += 7 {
				bad := bytes.Clone(good)
				bad[at] ^= 0x20
				must.OK(t, os.WriteFile(path, bad, 0o600))
				m, err := Read(dir)
				if err == nil {
					err = Verify(m)
				}
				if err == nil {
					t.Fatalf("%s at %d: verified", path, at)
				}
				data := filepath.Join(t.TempDir(), "data")
				if _, err := restoreInto(data, dirs, 0); used && err == nil {
					t.Fatalf("%s at %d: restored", path, at)
				} else if used && name != manifestName && !errors.Is(Whole(data), ErrRestoring) {
					t.Fatalf("%s at %d: no mark", path, at)
				}
				tried++
			}
			must.OK(t, os.WriteFile(path, good, 0o600))
		}
	}
	t.Logf("%d flips", tried)
	must.Get(restoreInto(filepath.Join(t.TempDir(), "data"), dirs, 0))(t)
}

// TestWhatCannotBeToldIsNotWhole: only a mark that is not there says that a restore was finished.
func TestWhatCannotBeToldIsNotWhole(t *testing.T) {
	dir := t.TempDir()
	must.OK(t, Whole(dir))
	must.OK(t, Whole(filepath.Join(dir, "new")))
	file := filepath.Join(dir, "file")
	must.OK(t, os.WriteFile(file, nil, 0o600))
	for name, data := range map[string]string{
		"a file":          file,
		"a name too long": filepath.Join(dir, strings.Repeat("x", 300)),
	} {
		err := Whole(data)
		if err == nil || errors.Is(err, ErrRestoring) || !strings.Contains(err.Error(), data) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestAFinishedRestoreIsNotDeleted: another restore finishes between the look at the directory and
// the lock. What it has restored stays, without a mark.
func TestAFinishedRestoreIsNotDeleted(t *testing.T) {
	for name, lock := range map[string]func(mark string, finish func()) (io.Closer, error){
		"before the lock file is opened": func(mark string, finish func()) (io.Closer, error) {
			finish()
			return journal.LockFile(mark)
		},
		"before it is locked": func(mark string, finish func()) (io.Closer, error) {
			c, err := journal.LockFile(mark)
			finish()
			return c, err
		},
	} {
		for _, begun := range []bool{true, false} {
			t.Run(fmt.Sprint(name, ", its mark was seen: ", begun), func(t *testing.T) {
				data := t.TempDir()
				mark, whole := filepath.Join(data, restoringName), filepath.Join(data, journalName, "anchor")
				if begun {
					must.OK(t, os.WriteFile(mark, nil, 0o600))
				}
				finish := func() {
					must.OK(t, os.RemoveAll(mark))
					must.OK(t, os.Mkdir(filepath.Dir(whole), 0o700))
					must.OK(t, os.WriteFile(whole, nil, 0o600))
				}
				second := &restore{data: data, makeDir: disk.MakeDir,
					lockFile: func(mark string) (io.Closer, error) { return lock(mark, finish) }}
				if err := second.begin(); !errors.Is(err, ErrNotEmpty) {
					t.Error(err)
				}
				must.Get(os.Stat(whole))(t)
				must.OK(t, Whole(data))
			})
		}
	}
}

// TestRestoreBeginsAgain leaves a restore at its marks, and runs it again.
func TestRestoreBeginsAgain(t *testing.T) {
	r := newRig(t, "genesis")
	dirs := r.chain()
	data := filepath.Join(t.TempDir(), "data")
	for _, left := range []map[string]string{
		{restoringName: ""},
		{restoringName: "", "journal/receiving": "", "journal/store/000001.sst": "half"},
		{restoringName: "", "journal/anchor": "x", "restored/tables.ndjson": "half"},
	} {
		for _, name := range slices.Sorted(maps.Keys(left)) {
			path := filepath.Join(data, name)
			err := os.MkdirAll(filepath.Dir(path), 0o700)
			if err == nil {
				err = os.WriteFile(path, []byte(left[name]), 0o600)
			}
			must.OK(t, err)
		}
		if err := Whole(data); !errors.Is(err, ErrRestoring) {
			t.Fatal(err)
		}
		must.Get(restoreInto(data, dirs, 0))(t)
		if n := len(exported(t, filepath.Join(data, "journal"))); n != 45 {
			t.Errorf("%d commands", n)
		}
		must.OK(t, os.RemoveAll(data))
	}
	failed := errors.New("not verified")
	list, err := Chain(dirs)
	must.OK(t, err)
	_, err = Restore(data, list, RestoreOptions{Journal: options(),
		Verify: func(string) error { return failed }})
	if !errors.Is(err, failed) || !errors.Is(Whole(data), ErrRestoring) {
		t.Error(err)
	}
}
