package journal

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"posttrade/ring/must"
)

// TestALostTailIsRefused: a tail that is gone, or an older copy of it, may have had answered
// commands that the store has not. Neither start nor verification takes it for a journal that never
// had one.
func TestALostTailIsRefused(t *testing.T) {
	for mode := range tailModes {
		t.Run(mode, func(t *testing.T) { lostTail(t, mode) })
	}
}

func lostTail(t *testing.T, mode string) {
	l := leave(t, mode)
	old := bytes.Clone(l.tail)
	fs := l.with(t, l.tail)
	o, fake := tailModes[mode](t, fs)
	j := must.Get(Open("j", o))(t)
	f, b := l.flow, &Block{}
	publishAll(t, j, f, b, 3)
	j.told(t, leftStored+leftAhead+3)
	left := kill(fs)
	fake.into(t, left, always)
	must.OK(t, j.Close())
	all := uint64(leftStored + leftAhead + 3)
	for _, tt := range []struct {
		name, about string
		change      func(fs *vfs.MemFS)
	}{
		{"gone", "missing", func(fs *vfs.MemFS) { must.OK(t, fs.Remove("j/tail")) }},
		{"an older copy", "of run 1", func(fs *vfs.MemFS) { must.OK(t, putFile(fs, "j/tail", old)) }},
	} {
		fs := kill(left)
		tt.change(fs)
		for _, boot := range []string{"boot-1", "boot-2"} {
			o, _ := tailModes[mode](t, fs)
			o.boot = boot
			_, err := Open("j", o)
			if !errors.Is(err, ErrTailDamaged) || !strings.Contains(err.Error(), tt.about) {
				t.Errorf("%s, %s: open: %v", tt.name, boot, err)
			}
		}
		_, err := Verify(context.Background(), "j", verifying(fs, *f))
		if !errors.Is(err, ErrTailDamaged) {
			t.Errorf("%s: verify: %v", tt.name, err)
		}
		report, err := AcceptHistory(context.Background(), "j", VerifyOptions{FS: fs, boot: "boot-1"})
		must.OK(t, err)
		if report.InputSeq >= all || report.Tail != 0 {
			t.Errorf("%s: accepted %+v", tt.name, report)
		}
		_, err = recovered(fs, "boot-1", *f.begin(), report.InputSeq, report.InputSeq)
		must.OK(t, err)
	}
	_, err := recovered(left, "boot-1", *f.begin(), all, all)
	must.OK(t, err)
}

// TestATailMayBeGivenUpAtAnyMoment changes the mode of a journal, which removes its tail or makes
// another one, and kills the process and cuts the power at every operation on the way.
func TestATailMayBeGivenUpAtAnyMoment(t *testing.T) {
	for mode := range tailModes {
		for _, next := range []string{withTail, withLog, ""} {
			t.Run(mode+" to "+next, func(t *testing.T) { givenUp(t, mode, next) })
		}
	}
}

func givenUp(t *testing.T, mode, next string) {
	l := leave(t, mode)
	all := uint64(leftStored + leftAhead)
	for cut := int32(1); ; cut += thinned() {
		mem := kill(l.with(t, l.tail)) // all of it is on the disk
		var left []*vfs.MemFS
		fake := &fakeTail{}
		var n atomic.Int32
		inject := errorfs.InjectorFunc(func(op errorfs.Op) error {
			if op.Kind.ReadOrWrite() != errorfs.OpIsWrite {
				return nil
			}
			if n.Add(1) == cut {
				for _, unsynced := range []int{0, 100} {
					fs, tail := fake.moment(func() *vfs.MemFS {
						return mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: unsynced,
							RNG: rand.New(rand.NewPCG(uint64(cut), 1))})
					})
					tail.into(t, fs, func() bool { return unsynced == 100 })
					left = append(left, fs)
				}
			}
			return nil
		})
		o := strict(t, errorfs.Wrap(mem, inject))
		if next != "" {
			o, fake = tailModes[next](t, o.FS)
			fake.fs = mem
			fake.syncing = func() { must.OK(t, inject.MaybeError(syncOfTail)) }
		}
		j := must.Get(Open("j", o))(t)
		must.OK(t, j.Close())
		if n.Load() < cut {
			if cut < 10 {
				t.Fatalf("the test ends at operation %d", cut)
			}
			return
		}
		for i, fs := range left {
			// answered in mode "os": the power cut of another boot may take it, the process's end may not
			if _, err := recovered(fs, "boot-1", *l.flow.begin(), all, all); err != nil {
				t.Fatalf("operation %d, image %d: %v", cut, i, err)
			}
		}
	}
}

// TestRunsOnlyRise: a tail that is made anew, because the mode was changed and changed back or the
// history was accepted, has a later run than each one before. An older copy of it is refused.
func TestRunsOnlyRise(t *testing.T) {
	other := map[string]string{withTail: withLog, withLog: withTail}
	accept := func(t *testing.T, fs *vfs.MemFS) {
		must.OK(t, fs.Remove("j/tail"))
		must.Get(AcceptHistory(t.Context(), "j", VerifyOptions{FS: fs, boot: "boot-1"}))(t)
	}
	opened := func(mode string) func(*testing.T, *vfs.MemFS) {
		return func(t *testing.T, fs *vfs.MemFS) { openIn(t, mode, fs) }
	}
	for mode := range tailModes {
		for name, between := range map[string]func(*testing.T, *vfs.MemFS){
			"another mode": opened(other[mode]), "no tail": opened(""), "accepted": accept,
		} {
			t.Run(mode+" "+name, func(t *testing.T) {
				l := leave(t, mode)
				fs := l.with(t, l.tail)
				before := must.Get(readAnchor(fs, "j", "boot-1"))(t).run
				between(t, fs)
				openIn(t, mode, fs)
				if now := must.Get(readTail(fs, "j"))(t).run; now <= before {
					t.Errorf("run %d, it was %d", now, before)
				}
				must.OK(t, putFile(fs, "j/tail", l.tail))
				o, _ := tailModes[mode](t, fs)
				if _, err := Open("j", o); !errors.Is(err, ErrTailDamaged) {
					t.Errorf("an older copy: %v", err)
				}
			})
		}
	}
}

// openIn opens a journal in a mode, "" for one without a tail, and closes it.
func openIn(t *testing.T, mode string, fs *vfs.MemFS) {
	t.Helper()
	o, fake := strict(t, fs), &fakeTail{}
	if mode != "" {
		o, fake = tailModes[mode](t, fs)
	}
	must.OK(t, must.Get(Open("j", o))(t).Close())
	if mode != "" {
		fake.into(t, fs, always)
	}
}

// TestARunTakesTheOtherHeaderSlot: an older copy of the tail that was accepted is two runs behind.
// The next run is later than both, and the header of the copy stays until its own is whole.
func TestARunTakesTheOtherHeaderSlot(t *testing.T) {
	for mode := range tailModes {
		t.Run(mode, func(t *testing.T) {
			l := leave(t, mode)
			fs := l.with(t, l.tail)
			openIn(t, mode, fs)
			last := must.Get(readTail(fs, "j"))(t).run
			must.OK(t, putFile(fs, "j/tail", l.tail))
			must.Get(AcceptHistory(t.Context(), "j", VerifyOptions{FS: fs, boot: "boot-1"}))(t)
			old := must.Get(readTail(fs, "j"))(t).run
			openIn(t, mode, fs)
			now := must.Get(readTail(fs, "j"))(t).run
			if old != last-1 || now <= last || now%tailSlots == old%tailSlots {
				t.Errorf("run %d behind run %d, beside the copy's %d", now, last, old)
			}
		})
	}
}

// TestAnAnchorWithoutARunIsRead: slots of an older build vouch for the history, and for no tail.
func TestAnAnchorWithoutARunIsRead(t *testing.T) {
	fs, f := vfs.NewMem(), &flow{seed: 3}
	o, _ := logged(t, fs)
	j := openNew(t, "j", o)
	appendAll(t, j, f, 20)
	must.OK(t, j.Close())
	if r := must.Get(readAnchor(fs, "j", "boot-1"))(t); r.run != 1 || r.inputSeq != 20 {
		t.Fatalf("run %d, inputSeq %d", r.run, r.inputSeq)
	}
	file := must.Get(fs.OpenReadWrite("j/anchor", writeCategory))(t)
	for slot := range int64(anchorSlots) {
		var b [slotBytes]byte
		must.Get(file.ReadAt(b[:], slot*anchorPage))(t)
		binary.LittleEndian.PutUint32(b[8:], anchorBare)
		binary.LittleEndian.PutUint32(b[slotBareCRC:], crc32.Checksum(b[:slotBareCRC], castagnoli))
		clear(b[slotBareCRC+4:])
		must.Get(file.WriteAt(b[:], slot*anchorPage))(t)
	}
	must.OK(t, file.Close())
	must.OK(t, fs.Remove("j/tail"))
	r := must.Get(readAnchor(fs, "j", "boot-1"))(t)
	if r.run != 0 || r.inputSeq != 20 || r.slots != 4 {
		t.Fatalf("run %d, inputSeq %d, slots %d", r.run, r.inputSeq, r.slots)
	}
	o, _ = logged(t, fs)
	j = must.Get(Open("j", o))(t)
	expectHistory(t, j, f, 20)
	must.OK(t, j.Close())
	if r := must.Get(readAnchor(fs, "j", "boot-1"))(t); r.run != 1 {
		t.Errorf("run %d after a start, want the tail's", r.run)
	}
}
