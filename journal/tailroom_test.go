package journal

import (
	"errors"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"posttrade/ring/must"
)

// TestStoreAnswersWhatTheTailHasNoRoomFor sends blocks that are larger than a segment.
func TestStoreAnswersWhatTheTailHasNoRoomFor(t *testing.T) { inTailModes(t, largerThanASegment) }

func largerThanASegment(t *testing.T,
	options func(testing.TB, vfs.FS) (Options, *fakeTail)) {
	mem := vfs.NewCrashableMem()
	o, fake := options(t, mem)
	j := openNew(t, "j", o)
	var told atomic.Uint64
	j.OnDurable(told.Store, nil)
	f, b := &flow{seed: 8, idsEvery: 2}, &Block{}
	for _, n := range []int{5, 2400, 3, 2100, 2100, 1, 2} {
		f.block(b, n)
		_, err := j.Append(b)
		must.OK(t, err)
		large := n > o.tailShape.bytes/recordBytes
		if !large {
			until(t, "answered", func() bool { return told.Load() == f.inputSeq })
		}
		if told.Load() != f.inputSeq || large && j.Durable() != f.inputSeq {
			t.Fatalf("told %d of %d, the store has %d", told.Load(), f.inputSeq, j.Durable())
		}
		_, err = recovered(fake.into(t, kill(mem), always), "boot-1", *f.begin(), f.inputSeq, f.inputSeq)
		must.OK(t, err)
		if o.Durability == DurabilityFsync { // also what the store alone has
			cut := mem.CrashClone(vfs.CrashCloneCfg{})
			_, err = recovered(fake.into(t, cut, func() bool { return false }), "boot-2", *f.begin(),
				f.inputSeq, f.inputSeq)
			must.OK(t, err)
		}
	}
	must.OK(t, j.Close())
}

// TestTailKeepsWhatTheStoreDoesNotHave fills the ring while the store writes nothing. The tail
// refuses rather than overwrite what only it has, and continues when the store has it.
func TestTailKeepsWhatTheStoreDoesNotHave(t *testing.T) { inTailModes(t, fullTail) }

func fullTail(t *testing.T, options func(testing.TB, vfs.FS) (Options, *fakeTail)) {
	g, mem := newGate(), vfs.NewCrashableMem()
	o, fake := options(t, g.fs(mem))
	j := openNew(t, "j", o)
	f, b := &flow{seed: 8, idsEvery: 2}, &Block{}
	for round := range 3 {
		g.shut()
		full := false
		for !full {
			f.grow(b, 2)
			ok := must.Get(j.publish(b))(t)
			full = !ok
		}
		if round == 0 && f.inputSeq < 200 && o.Durability == DurabilityOS {
			t.Fatalf("full after %d commands", f.inputSeq)
		}
		j.told(t, f.inputSeq-2)
		must.Get(recovered(fake.into(t, kill(mem), always), "boot-1", *f.begin(), f.inputSeq-2,
			f.inputSeq-2))(t)
		g.release()
		c := must.Get(j.Append(b))(t)
		must.OK(t, c.Wait())
		b.Reset()
		if j.told(t, f.inputSeq); j.Durable() != f.inputSeq {
			t.Fatalf("durable %d of %d", j.Durable(), f.inputSeq)
		}
	}
	must.OK(t, j.Close())
}

// TestNoRoomForTheTail: a start on a disk that cannot take the tail is refused and names the file.
// Nothing has been written or poisoned, and the next start, with room, goes on.
func TestNoRoomForTheTail(t *testing.T) { inTailModes(t, noRoomForTheTail) }

func noRoomForTheTail(t *testing.T, options func(testing.TB, vfs.FS) (Options, *fakeTail)) {
	mem := vfs.NewMem()
	o, _ := options(t, mem)
	head := tailHead{tailShape: o.tailShape}
	size := uint64(head.size())
	mem.TestingSetDiskUsage(vfs.DiskUsage{AvailBytes: size - 1})
	_, err := Open("j", o)
	must.Be(t, err, syscall.ENOSPC)
	must.ErrorContains(t, err, "file=j/tail")
	if errors.Is(err, ErrPoisoned) {
		t.Errorf("poisoned: %v", err)
	}
	if _, err := mem.Stat("j/" + storeName); !notExist(err) {
		t.Errorf("a store was made: %v", err)
	}
	mem.TestingSetDiskUsage(vfs.DiskUsage{AvailBytes: size})
	j := openNew(t, "j", o)
	f := &flow{seed: 8}
	appendAll(t, j, f, 5)
	expectHistory(t, j, f, 5)
	must.OK(t, j.Close())
}
