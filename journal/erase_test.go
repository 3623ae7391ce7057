package journal

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"golang.org/x/sys/unix"

	"posttrade/ring/must"
)

// erasable makes a file of n bytes and returns its path and what is in it.
func erasable(t *testing.T, n int) (string, []byte) {
	t.Helper()
	path, content := filepath.Join(t.TempDir(), "000001.sst"), bytes.Repeat([]byte("0123456789abcdef"),
		n/16)
	must.OK(t, os.WriteFile(path, content, 0o644))
	return path, content
}

// nameless opens path and removes its name.
func nameless(t *testing.T, path string) *os.File {
	t.Helper()
	f := must.Get(os.OpenFile(path, os.O_RDWR, 0))(t)
	t.Cleanup(func() { f.Close() })
	must.OK(t, os.Remove(path))
	return f
}

// held is how many bytes of the disk a file occupies.
func held(t *testing.T, f *os.File) int64 {
	t.Helper()
	var st syscall.Stat_t
	must.OK(t, syscall.Fstat(int(f.Fd()), &st))
	return st.Blocks * 512
}

func TestErasedFileIsGivenBackInPieces(t *testing.T) {
	for _, reserved := range []int64{0, 9 << 20} {
		path, _ := erasable(t, 5<<20)
		f := nameless(t, path)
		if reserved > 0 {
			if err := unix.Fallocate(int(f.Fd()), unix.FALLOC_FL_KEEP_SIZE, 0, reserved); err != nil {
				t.Fatalf("reserve %d: %v", reserved, err)
			}
		}
		if !unshared(f) { // a file system without leases: nothing may be cut off there
			giveBack(f, func() { t.Error("cut off although others may read it") })
			continue
		}
		before := held(t, f)
		pieces := 0
		giveBack(f, func() {
			pieces++
			now := held(t, f)
			if before-now > 2*eraseStep {
				t.Errorf("reserved=%d piece %d: %d bytes at once", reserved, pieces, before-now)
			}
			before = now
		})
		if want := int(max(5<<20, reserved)/eraseStep) - 1; pieces < want {
			t.Errorf("reserved=%d: %d pieces, want at least %d", reserved, pieces, want)
		}
		if before > 2*eraseStep {
			t.Errorf("reserved=%d: %d bytes are left to the closing", reserved, before)
		}
	}
}

// A reader that has a file open reads it to its end, as after any other removal.
func TestErasedFileIsWholeForWhoReadsIt(t *testing.T) {
	path, content := erasable(t, 3<<20)
	reader, err := os.Open(path)
	must.OK(t, err)
	defer reader.Close()
	must.OK(t, erase(vfs.Default, path))
	got, err := io.ReadAll(reader)
	if err != nil || !bytes.Equal(got, content) {
		t.Errorf("read %d bytes, want %d; %v", len(got), len(content), err)
	}
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("stat: %v, want that it is gone", err)
	}
}

func TestErasedFileIsWholeUnderAnotherName(t *testing.T) {
	path, content := erasable(t, 3<<20)
	must.OK(t, os.Link(path, path+".kept"))
	must.OK(t, erase(vfs.Default, path))
	got, err := os.ReadFile(path + ".kept")
	if err != nil || !bytes.Equal(got, content) {
		t.Errorf("read %d bytes, want %d; %v", len(got), len(content), err)
	}
}

func TestEraseOfWhatIsNotThere(t *testing.T) {
	if err := erase(vfs.Default, filepath.Join(t.TempDir(), "none")); !notExist(err) {
		t.Errorf("erase: %v, want that it does not exist", err)
	}
	mem := vfs.NewMem()
	if err := erase(mem, "none"); !notExist(err) {
		t.Errorf("erase in memory: %v, want that it does not exist", err)
	}
	f := must.Get(mem.Create("some", writeCategory))(t)
	must.OK(t, errors.Join(f.Close(), erase(mem, "some")))
	if _, err := mem.Stat("some"); !notExist(err) {
		t.Errorf("stat: %v, want that it is gone", err)
	}
}
