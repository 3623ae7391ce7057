package journal

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"golang.org/x/sys/unix"

	"posttrade/ring/must"
)

// TestLogGoesOnWithoutDirectWrites: a write that the file system refuses past the system's memory
// is made by that memory, and still synced. A write that is not of whole sectors is refused so.
func TestLogGoesOnWithoutDirectWrites(t *testing.T) {
	name := filepath.Join(t.TempDir(), "tail")
	must.OK(t, os.WriteFile(name, make([]byte, 8192), 0o644))
	f := must.Get(openLog(vfs.Default, name))(t)
	if n, err := f.WriteAt([]byte("answered"), 3); n != 8 || err != nil {
		t.Fatalf("%d bytes, %v", n, err)
	}
	if got := must.Get(os.ReadFile(name))(t); string(got[3:11]) != "answered" || len(got) != 8192 {
		t.Errorf("the file has %q", got[:16])
	}
	flags := must.Get(unix.FcntlInt(f.(directFile).Fd(), unix.F_GETFL, 0))(t)
	if flags&unix.O_DSYNC == 0 {
		t.Error("a write is not synced any more")
	}
	must.OK(t, f.Close())
	_, err := f.WriteAt([]byte("more"), 0)
	must.Be(t, err, os.ErrClosed)

	link := filepath.Join(t.TempDir(), "tail")
	must.OK(t, os.Symlink(name, link))
	_, err = openLog(vfs.Default, link)
	must.Be(t, err, unix.ELOOP)
}
