package journal

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"posttrade/journal/transfer"
	"posttrade/ring/must"
)

// thinned is the distance between two operations at which a test fails or cuts. With -short, under
// the race detector, it is seven: a run without it tries every one.
func thinned() int32 {
	if testing.Short() {
		return 7
	}
	return 1
}

// everyCrash runs the script once. Before each of its writing operations (thinned), and after the
// last, it takes what a crash could leave: everything that was written, what was synced, and
// something between.
func everyCrash(t *testing.T, prepare, script func(fs vfs.FS), check func(left *vfs.MemFS) error) {
	t.Helper()
	mem := vfs.NewCrashableMem()
	prepare(mem)
	type crash struct {
		left *vfs.MemFS
		what string
	}
	var (
		mu  sync.Mutex
		all []crash
		n   int
	)
	const atEnd = "the end"
	cut := func(what string) {
		mu.Lock()
		defer mu.Unlock()
		if n++; (n-1)%int(thinned()) != 0 && what != atEnd {
			return
		}
		for _, percent := range []int{0, 50, 100} {
			left := mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: percent,
				RNG: rand.New(rand.NewPCG(*faultSeed, uint64(n)))})
			all = append(all, crash{left, fmt.Sprintf("operation %d, %s, %d%% of unsynced data kept", n,
				what, percent)})
		}
	}
	script(errorfs.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind.ReadOrWrite() == errorfs.OpIsWrite {
			cut(fmt.Sprint(op.Kind, " ", op.Path))
		}
		return nil
	})))
	cut(atEnd)
	for _, c := range all {
		if err := check(c.left); err != nil {
			t.Fatalf("%s: %v", c.what, err)
		}
	}
	t.Logf("%d crashes at %d operations, -args -faultseed=%d", len(all), n, *faultSeed)
}

// everyFailure runs the script once for every i (thinned). The i-th operation fails, and all after
// it if sticky. Operations count while the script has the toggle on. The error that the script met,
// if any, goes to check.
func everyFailure(t *testing.T, prepare func(fs vfs.FS), sticky bool,
	script func(fs vfs.FS, counts *errorfs.Toggle) error,
	check func(mem *vfs.MemFS, err error) error) {
	t.Helper()
	for i := int32(0); ; i += thinned() {
		mem := vfs.NewCrashableMem()
		prepare(mem)
		var n, hits atomic.Int32
		var what atomic.Value
		counts := &errorfs.Toggle{Injector: errorfs.InjectorFunc(func(op errorfs.Op) error {
			if at := n.Add(1) - 1; at == i || sticky && at > i {
				what.CompareAndSwap(nil, fmt.Sprint(op.Kind, " ", op.Path))
				hits.Add(1)
				return syscall.EIO
			}
			return nil
		})}
		err := script(errorfs.Wrap(mem, counts), counts)
		if err := check(mem, err); err != nil {
			t.Fatalf("operation %d, %v: %v", i, what.Load(), err)
		}
		if hits.Load() == 0 {
			must.OK(t, err)
			t.Logf("%d operations failed", i)
			return
		}
	}
}

// whichIs returns what a start finds in dir: "unfinished", "new" or "whole", the last with the
// history of f up to head.
func whichIs(left *vfs.MemFS, dir string, f flow, head uint64) (string, error) {
	o := Options{FS: left.CrashClone(vfs.CrashCloneCfg{}), boot: "boot-2", Fatal: func(error) {}}
	j, err := Open(dir, o)
	if errors.Is(err, ErrUnfinished) {
		return "unfinished", nil
	}
	if err != nil {
		return "", fmt.Errorf("open: %w", err)
	}
	if _, created := j.Genesis(); !created {
		return "new", j.Close()
	}
	if _, err := j.Restore(func(error) {}, func(Snapshot, io.Reader, io.Reader) error {
		return nil
	}); err != nil {
		return "", errors.Join(fmt.Errorf("snapshot: %w", err), j.Close())
	}
	return "whole", errors.Join(compareHistory(j, &f, head), j.Close())
}

// startsOver checks that what a failed Receive has left is refused, new or whole, and that another
// Receive makes it whole unless it is whole already.
func startsOver(left *vfs.MemFS, stream []byte, f flow) (string, error) {
	was, err := whichIs(left, "copy", f, 18)
	if err != nil || was == "whole" {
		return was, err
	}
	if _, err := Receive("copy", bytes.NewReader(stream),
		Options{FS: left, boot: "boot-2", Fatal: func(error) {}}); err != nil {
		return was, fmt.Errorf("another Receive: %w", err)
	}
	now, err := whichIs(left, "copy", f, 18)
	if err == nil && now != "whole" {
		err = fmt.Errorf("after another Receive it is %s", now)
	}
	return was, err
}

func TestReceiveSurvivesEveryCrash(t *testing.T) {
	stream, f := smallStream(t)
	seen := map[string]int{}
	everyCrash(t, func(vfs.FS) {}, func(fs vfs.FS) {
		must.Get(Receive("copy", bytes.NewReader(stream), strict(t, fs)))(t)
	}, func(left *vfs.MemFS) error {
		was, err := startsOver(left, stream, f)
		seen[was]++
		return err
	})
	if seen["new"] == 0 || seen["unfinished"] == 0 || seen["whole"] < 3 {
		t.Errorf("crashes left %v", seen)
	}
	t.Logf("crashes left %v", seen)
}

// TestReceiveOverAnUnfinishedOneSurvivesEveryCrash starts where a crash has left nearly everything.
func TestReceiveOverAnUnfinishedOneSurvivesEveryCrash(t *testing.T) {
	stream, f := smallStream(t)
	everyCrash(t, func(fs vfs.FS) {
		o := strict(t, fs)
		_, err := Receive("copy", bytes.NewReader(stream[:len(stream)/2]), o)
		must.Be(t, err, transfer.ErrNotWhole)
		j, made := openNew(t, "copy", o), flow{seed: 2}
		appendAll(t, j, &made, 40)
		must.OK(t, j.Close())
		mark, err := fs.Create("copy/"+receivingName, writeCategory)
		must.OK(t, errors.Join(err, mark.Close(), syncDir(fs, "copy")))
	}, func(fs vfs.FS) {
		must.Get(Receive("copy", bytes.NewReader(stream), strict(t, fs)))(t)
	}, func(left *vfs.MemFS) error {
		was, err := startsOver(left, stream, f)
		if err == nil && was == "new" {
			err = errors.New("a start would take it for a new journal")
		}
		return err
	})
}

// TestRefusedReceiveSurvivesEveryCrash: a refused stream's received data is removed in an order
// that never leaves anything usable.
func TestRefusedReceiveSurvivesEveryCrash(t *testing.T) {
	stream, f := smallStream(t)
	everyCrash(t, func(vfs.FS) {}, func(fs vfs.FS) {
		_, err := Receive("copy", bytes.NewReader(stream[:len(stream)-1]), strict(t, fs))
		must.Be(t, err, transfer.ErrNotWhole)
	}, func(left *vfs.MemFS) error {
		was, err := startsOver(left, stream, f)
		if err == nil && was == "whole" {
			err = errors.New("what was refused is there")
		}
		return err
	})
}

func TestReceiveFailsWithTheDisk(t *testing.T) {
	stream, f := smallStream(t)
	for _, sticky := range []bool{false, true} {
		t.Run(fmt.Sprint("sticky ", sticky), func(t *testing.T) {
			seen := map[string]int{}
			var heard *fatals
			everyFailure(t, func(vfs.FS) {}, sticky, func(fs vfs.FS, counts *errorfs.Toggle) error {
				heard = newFatals()
				counts.On()
				_, err := Receive("copy", bytes.NewReader(stream),
					Options{FS: fs, boot: "boot-1", Fatal: heard.fatal})
				return err
			}, func(mem *vfs.MemFS, err error) error {
				if errors.Is(err, ErrPoisoned) {
					<-heard.hit // the hook may be called a moment later, on the goroutine that met the error
				}
				if n := heard.count(); n > 1 || errors.Is(err, ErrPoisoned) != (n == 1) {
					return fmt.Errorf("%d fatal errors after %w", n, err)
				}
				for _, percent := range []int{0, 100} {
					left := mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: percent,
						RNG: rand.New(rand.NewPCG(1, 1))})
					was, failure := startsOver(left, stream, f)
					if failure != nil {
						return fmt.Errorf("%w, after %w", failure, err)
					}
					if seen[was]++; err == nil && was != "whole" {
						return fmt.Errorf("it is %s after success", was)
					}
				}
				return nil
			})
			t.Logf("failures left %v", seen)
		})
	}
}

// TestTransferFailsWithTheDisk fails each operation of sending in turn: the
// stream is the right one, or ends with the error.
func TestTransferFailsWithTheDisk(t *testing.T) {
	f := flow{seed: 7, idsEvery: 2}
	var want []byte
	var sent []byte
	failures := 0
	everyFailure(t, func(fs vfs.FS) {
		j, made := openNew(t, "j", strict(t, fs)), f
		appendAll(t, j, &made, 1, 12, 3)
		snapshotNow(t, j, f)
		flushed(t, j)
		appendAll(t, j, &made, 2)
		want, _, _ = streamOf(t, j)
		must.OK(t, j.Close())
	}, false, func(fs vfs.FS, counts *errorfs.Toggle) error {
		j, err := Open("j", Options{FS: fs, boot: "boot-1", Durability: DurabilityOS,
			FlushInterval: time.Hour, Fatal: newFatals().fatal})
		must.OK(t, err)
		counts.On()
		sent = nil
		tr, err := j.Transfer()
		if err == nil {
			sent, err = io.ReadAll(tr)
			err = errors.Join(err, tr.Close())
		}
		counts.Off()
		return errors.Join(err, j.Close())
	}, func(_ *vfs.MemFS, err error) error {
		if err != nil {
			failures++
			return nil
		}
		// without its snapshot
		if !bytes.Equal(sent, want) && len(framesOf(sent)) != len(framesOf(want))-3 {
			return errors.New("the stream is another")
		}
		return nil
	})
	if failures == 0 {
		t.Error("nothing failed")
	}
}
