package journal

import (
	"bytes"
	iofs "io/fs"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"posttrade/ring/must"
)

// TestNewParentsAreDurable cuts the power when the call has returned that made a directory some
// levels below what there was.
func TestNewParentsAreDurable(t *testing.T) {
	stream, f := smallStream(t)
	for _, dir := range []string{"j", "a/j", "a/b/c/j"} {
		mem := vfs.NewCrashableMem()
		must.Get(Receive(dir, bytes.NewReader(stream), strict(t, mem)))(t)
		j := must.Get(Open(dir, strict(t, powerCut(mem))))(t)
		again := f
		must.OK(t, compareHistory(j, &again, 18))
		must.OK(t, j.Close())

		mem, made := vfs.NewCrashableMem(), f
		j = openNew(t, dir, strict(t, mem))
		appendAll(t, j, &made, 5)
		left := must.Get(Open(dir, strict(t, powerCut(mem))))(t)
		must.OK(t, compareHistory(left, &f, 5))
		must.OK(t, left.Close())
		must.OK(t, j.Close())
	}
}

// TestADirectoryOfAKilledProcessIsDurable: a process was killed when it had made one directory and
// had not synced its name.
func TestADirectoryOfAKilledProcessIsDurable(t *testing.T) {
	for _, left := range []string{"a", "a/b", "a/b/c"} {
		mem := vfs.NewCrashableMem()
		must.OK(t, mem.MkdirAll("a", 0o755))
		if left != "a" {
			must.OK(t, syncDir(mem, "."))
			must.OK(t, mem.MkdirAll("a/b", 0o755))
		}
		if left == "a/b/c" {
			must.OK(t, syncDir(mem, "a"))
			must.OK(t, mem.MkdirAll("a/b/c", 0o755))
		}
		must.OK(t, makeDir(mem, "a/b/c"))
		if _, err := powerCut(mem).Stat("a/b/c"); err != nil {
			t.Errorf("%s was left: %v", left, err)
		}
	}
}

// TestDirectoriesThatCannotBeMade: every error comes back, except that a directory above what was
// there may be unreadable.
func TestDirectoriesThatCannotBeMade(t *testing.T) {
	for _, tt := range []struct {
		kind errorfs.OpKind
		path string
		err  error
		want error
	}{
		{errorfs.OpStat, "a/b", syscall.EIO, syscall.EIO},
		{errorfs.OpMkdirAll, "a/b", syscall.ENOSPC, syscall.ENOSPC},
		{errorfs.OpMkdirAll, "a/b/c", syscall.ENOSPC, syscall.ENOSPC},
		{errorfs.OpOpenDir, ".", syscall.EIO, syscall.EIO},
		{errorfs.OpOpenDir, ".", iofs.ErrPermission, nil},
		{errorfs.OpOpenDir, "a", iofs.ErrPermission, iofs.ErrPermission},
		{errorfs.OpFileSync, "a/b", syscall.EIO, syscall.EIO},
	} {
		mem := vfs.NewMem()
		must.OK(t, mem.MkdirAll("a", 0o755))
		met := false
		err := makeDir(errorfs.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
			if op.Kind != tt.kind || op.Path != tt.path {
				return nil
			}
			met = true
			return tt.err
		})), "a/b/c")
		if must.Be(t, err, tt.want); !met || (err == nil) != (tt.want == nil) {
			t.Errorf("%+v: %v, met: %v", tt, err, met)
		}
	}
}
