package journal

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"posttrade/ring/must"
)

// TestAJournalIsReadBesideItsWriter verifies, measures, exports and replays a journal on a disk
// again and again while it is written, and while the store makes tables, begins logs and reuses old
// ones. Every view is a whole history that has at least what was answered when the view began.
func TestAJournalIsReadBesideItsWriter(t *testing.T) {
	for _, mode := range []string{DurabilityFsync, withTail, withLog} {
		t.Run(mode, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "j")
			o := strict(t, vfs.Default)
			o.Tail = mode != DurabilityFsync
			if mode == withTail {
				o.Durability = DurabilityOS
			}
			f := &flow{seed: 5, idsEvery: 3}
			j := openNew(t, dir, o)
			looking := make(chan struct{}) // one for each burst of commits
			var writer sync.WaitGroup
			var failed error
			writer.Go(func() {
				for range looking {
					for n := 0; n < 200 && failed == nil; n++ {
						var b Block
						c, err := j.Append(f.block(&b, 1+n%40))
						if err == nil {
							err = c.Wait()
						}
						if err == nil && n%25 == 24 {
							_, err = j.db.AsyncFlush()
						}
						failed = err
					}
				}
			})
			looks := 12
			if testing.Short() {
				looks = 4
			}
			v := VerifyOptions{boot: "boot-1", Engine: verifying(nil, *f.begin()).Engine}
			for range looks {
				looking <- struct{}{}
				before := j.Answered()
				r := must.Get(Verify(context.Background(), dir, v))(t)
				if r.InputSeq < before {
					t.Fatalf("verified %d, %d were answered before", r.InputSeq, before)
				}
				before = j.Answered()
				var lines bytes.Buffer
				must.OK(t, Export(context.Background(), dir, &lines, 1, 0, v))
				if n := uint64(bytes.Count(lines.Bytes(), []byte("\n"))); n < before {
					t.Fatalf("exported %d commands, %d were answered before", n, before)
				}
				seen := must.Get(Read(dir, v))(t)
				head, _ := seen.Head()
				must.OK(t, compareHistory(seen, f.begin(), head))
				must.Be(t, seen.Begin(), ErrReading)
				must.OK(t, seen.Close())
			}
			close(looking)
			writer.Wait()
			must.OK(t, failed)
			must.OK(t, j.Close())
		})
	}
}

// TestAViewCannotBeWrittenTo calls everything that would change something.
func TestAViewCannotBeWrittenTo(t *testing.T) {
	fs := vfs.NewMem()
	j := openNew(t, "j", strict(t, fs))
	appendAll(t, j, &flow{seed: 1}, 5)
	must.OK(t, j.Close())
	before := capture(t, fs, "j")
	v := must.Get(pin(fs, "j/store"))(t)
	defer v.close()
	f := must.Get(v.Open("j/store/" + isLogOf(t, v)))(t)
	_, write := f.Write([]byte("x"))
	_, writeAt := f.WriteAt([]byte("x"), 0)
	_, create := v.Create("j/store/x", writeCategory)
	_, open := v.OpenReadWrite("j/anchor", writeCategory)
	_, reuse := v.ReuseForWrite("j/anchor", "j/x", writeCategory)
	for i, err := range []error{
		write, writeAt, create, open, reuse, v.Link("j/anchor", "j/x"), v.Remove("j/anchor"),
		v.RemoveAll("j"),
		v.Rename("j/anchor", "j/x"), v.MkdirAll("j/x", 0o755), f.Sync(), f.Preallocate(0, 1),
	} {
		if !errors.Is(err, errView) {
			t.Errorf("%d: %v", i, err)
		}
	}
	must.OK(t, before.same(capture(t, fs, "j")))
	if _, err := v.Open("j/store/none"); !notExist(err) {
		t.Errorf("a file that is not there: %v", err)
	}
}

func isLogOf(t *testing.T, v *view) string {
	t.Helper()
	names := must.Get(v.List(v.store))(t)
	for _, name := range names {
		if isLog(name) {
			return name
		}
	}
	t.Fatalf("no log in %v", names)
	return ""
}

// restless is a file system on which the manifest grows with every read of it.
type restless struct {
	vfs.FS
	n int
}

func (r *restless) List(dir string) ([]string, error) {
	names, err := r.FS.List(dir)
	for _, name := range names {
		if r.n++; strings.HasPrefix(name, "MANIFEST-") {
			err = errors.Join(err, putFile(r.FS, r.PathJoin(dir, name), bytes.Repeat([]byte("m"), r.n)))
		}
	}
	return names, err
}

// TestAViewIsGivenUpWhenTheStoreNeverRests: no endless loop, and no view of two moments.
func TestAViewIsGivenUpWhenTheStoreNeverRests(t *testing.T) {
	fs := vfs.NewMem()
	must.OK(t, openNew(t, "j", strict(t, fs)).Close())
	_, err := Verify(context.Background(), "j", VerifyOptions{FS: &restless{FS: fs}, boot: "boot-1"})
	must.Be(t, err, errMoving)
}

// unprivileged is the environment variable that makes this test binary open a journal as a user
// that may not write to it.
const unprivileged = "POSTTRADE_TEST_UNPRIVILEGED"

// TestAJournalIsReadWithoutTheRightToWrite runs this binary as a user that may only read.
func TestAJournalIsReadWithoutTheRightToWrite(t *testing.T) {
	if dir := os.Getenv(unprivileged); dir != "" {
		lookWithoutRights(t, dir)
		return
	}
	if os.Getuid() != 0 {
		t.Log("not root: the test runs as the user it has, without the right to write")
	}
	base := t.TempDir()
	dir := filepath.Join(base, "j")
	o := strict(t, vfs.Default)
	o.Durability, o.Tail = DurabilityOS, true
	j := openNew(t, dir, o)
	f := &flow{seed: 5}
	appendAll(t, j, f, 7, 30)
	must.OK(t, j.Close())
	binary, err := os.ReadFile(os.Args[0])
	must.OK(t, err)
	program := filepath.Join(base, "test")
	must.OK(t, os.WriteFile(program, binary, 0o755))
	must.OK(t, filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			return os.Chmod(path, 0o555)
		}
		return errors.Join(err, os.Chmod(path, 0o444))
	}))
	t.Cleanup(func() { _ = os.Chmod(dir, 0o755); _ = os.Chmod(filepath.Join(dir, "store"), 0o755) })
	for at := base; at != "/" && at != os.TempDir(); at = filepath.Dir(at) {
		must.OK(t, os.Chmod(at, 0o755))
	}
	cmd := exec.Command(program, "-test.run=^TestAJournalIsReadWithoutTheRightToWrite$", "-test.v")
	cmd.Dir = "/"
	cmd.Env = append(os.Environ(), unprivileged+"="+dir)
	if os.Getuid() == 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	}
	out, err := cmd.CombinedOutput()
	if err != nil || !bytes.Contains(out, []byte("--- PASS")) {
		t.Fatalf("%v\n%s", err, out)
	}
}

func lookWithoutRights(t *testing.T, dir string) {
	ctx := context.Background()
	if err := os.WriteFile(filepath.Join(dir, "x"), nil, 0o600); err == nil {
		t.Fatal("this user may write")
	}
	r := must.Get(Verify(ctx, dir, VerifyOptions{boot: "boot-1"}))(t)
	if r.InputSeq != 37 {
		t.Errorf("verified %d commands, want 37", r.InputSeq)
	}
	must.OK(t, Export(ctx, dir, io.Discard, 1, 0, VerifyOptions{boot: "boot-1"}))
	// A call that has to write says why it cannot.
	_, open := Open(dir, Options{Fatal: func(error) {}})
	_, accept := AcceptHistory(ctx, dir, VerifyOptions{boot: "boot-1"})
	for name, err := range map[string]error{"open": open, "accept": accept} {
		if err == nil || errors.Is(err, ErrLocked) ||
			!strings.Contains(err.Error(), "permission denied") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// readOnlyDisk is a disk that was mounted for reading only.
type readOnlyDisk struct{ vfs.FS }

func (readOnlyDisk) Lock(name string) (io.Closer, error) {
	return nil, &os.PathError{Op: "open", Path: name, Err: syscall.EROFS}
}

// TestWhyAJournalCannotBeLocked: the error names the cause, and only a held lock means "in use".
func TestWhyAJournalCannotBeLocked(t *testing.T) {
	fs := vfs.NewMem()
	must.OK(t, openNew(t, "j", strict(t, fs)).Close())
	_, err := Open("j", strict(t, readOnlyDisk{fs}))
	if !errors.Is(err, syscall.EROFS) || errors.Is(err, ErrLocked) ||
		!strings.Contains(err.Error(), "file=j/lock") {
		t.Errorf("read-only: %v", err)
	}
	_, err = Verify(context.Background(), "j", VerifyOptions{FS: readOnlyDisk{fs}, boot: "boot-1"})
	must.OK(t, err)

	dir := filepath.Join(t.TempDir(), "j")
	if pid := InUse(dir); pid != 0 {
		t.Errorf("no journal is in use by %d", pid)
	}
	j := openNew(t, dir, strict(t, vfs.Default))
	if pid := InUse(dir); pid != 0 && pid != os.Getpid() { // 0: the system does not say
		t.Errorf("in use by %d, want %d", pid, os.Getpid())
	}
	if pid, err := Holder(dir); err != nil || pid != InUse(dir) {
		t.Errorf("held by %d, %v", pid, err)
	}
	_, err = Holder(filepath.Join(dir, LockName)) // it may not be looked into: it is a file
	must.Be(t, err, syscall.ENOTDIR)
	if pid := InUse(filepath.Join(dir, LockName)); pid != 0 {
		t.Errorf("a file is in use by %d", pid)
	}
	_, err = Open(dir, strict(t, vfs.Default))
	must.Be(t, err, ErrLocked)
	must.OK(t, j.Close())
}

// TestACutStoreFileIsNamedInFull cuts manifests, marks and tables. The refusal is one line with the
// full name of the file.
func TestACutStoreFileIsNamedInFull(t *testing.T) {
	d := wrecks(t)["grown killed"]
	for _, file := range d.files() {
		if !strings.Contains(file, "/MANIFEST-") && !isTable(file) {
			continue
		}
		for _, share := range []int{0, 1, 2, 3} {
			size := len(d.image[file]) * share / 4
			cut := d.restore(t, file, d.image[file][:size])
			_, err := Verify(context.Background(), "j", verifying(cut, d.flow))
			if err == nil {
				continue // what was cut off says nothing that counts
			}
			text := err.Error()
			if strings.ContainsAny(text, "\n<") || !strings.Contains(text, file) {
				t.Errorf("%s cut to %d bytes: %q", file, size, text)
			}
		}
	}
}
