package journal

import (
	"errors"
	"strings"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"posttrade/ring/must"
)

func TestFailStopEndsAStoreAtItsFirstFailure(t *testing.T) {
	toggle := &errorfs.Toggle{Injector: errorfs.InjectorFunc(func(op errorfs.Op) error {
		if strings.HasSuffix(op.Path, ".log") && op.Kind.ReadOrWrite() == errorfs.OpIsWrite {
			return syscall.EIO
		}
		return nil
	})}
	fs := errorfs.Wrap(vfs.NewMem(), toggle)
	fatals := newFatals()
	stop := NewFailStop(fatals.fatal, nil)
	db, err := stop.Open("other", stop.Options(fs))
	must.OK(t, err)
	set := func() error { return db.Set([]byte("k"), []byte("v"), pebble.Sync) }
	must.OK(t, stop.Write(set))
	toggle.On()
	err = stop.Write(set)
	must.Be(t, err, ErrPoisoned)
	must.Be(t, err, syscall.EIO)
	toggle.Off()
	for name, err := range map[string]error{
		"write": stop.Write(func() error { t.Error("tried again"); return nil }),
		"read":  stop.Read(func() error { t.Error("read all the same"); return nil }),
		"close": stop.Close(db),
		"err":   stop.Err(),
	} {
		if !errors.Is(err, syscall.EIO) {
			t.Errorf("%s afterwards: %v", name, err)
		}
	}
	<-fatals.hit // the store's own goroutine may have met the failure first, and calls the hook last
	if n := fatals.count(); n != 1 {
		t.Errorf("the hook was called %d times", n)
	}
}

func TestFailStopLeavesOtherErrorsToTheCaller(t *testing.T) {
	stop := NewFailStop(func(err error) { t.Error(err) }, nil)
	db := must.Get(stop.Open("other", stop.Options(vfs.NewMem())))(t)
	must.Be(t, stop.Read(func() error {
		_, _, err := db.Get([]byte("absent"))
		return err
	}), pebble.ErrNotFound)
	must.OK(t, stop.Err())
	must.OK(t, stop.Close(db))
}

func TestAnchorOfAnotherStore(t *testing.T) {
	fs := vfs.NewMem()
	must.OK(t, fs.MkdirAll("other", 0o755))
	if _, _, found, err := ReadAnchor(fs, "other"); found || err != nil {
		t.Fatalf("found %v, %v", found, err)
	}
	a, err := OpenAnchor(fs, "other", 5, 1)
	must.OK(t, err)
	expect := func(index, term uint64) {
		t.Helper()
		i, n, found, err := ReadAnchor(fs, "other")
		if must.OK(t, err); !found || i != index || n != term {
			t.Errorf("anchor at %d of term %d, %v, want %d of %d", i, n, found, index, term)
		}
	}
	expect(5, 1)
	must.OK(t, a.Raise(9, 2))
	expect(9, 2)
	must.OK(t, a.Sync(12, 2))
	expect(12, 2)
	must.OK(t, a.Lower(7, 1))
	expect(7, 1)
	must.OK(t, a.Close())
	a, err = OpenAnchor(fs, "other", 8, 3)
	must.OK(t, err)
	expect(8, 3)
	must.OK(t, a.Close())
}
