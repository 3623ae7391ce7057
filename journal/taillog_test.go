package journal

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"unsafe"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"posttrade/ring/must"
)

// fakeWrites are the writes of a log that are under way: a power cut leaves any of their sectors.
type fakeWrites struct {
	mu     sync.Mutex // guards the disk, too
	flying []flying
	// is called while a write is under way, and may wait; a write that it fails may have landed
	during func(p []byte, at int64) error
	short  int // bytes that the next writes leave out, without an error
}

type flying struct {
	at   int64
	text []byte
}

// sector is the unit that a disk writes whole.
const sector = 512

func (f *fakeTail) WriteAt(p []byte, at int64) (int, error) {
	if at%tailSector != 0 || len(p)%tailSector != 0 || len(p) == 0 ||
		uintptr(unsafe.Pointer(&p[0]))%tailSector != 0 {
		return 0, syscall.EINVAL
	}
	f.mu.Lock()
	f.flying = append(f.flying, flying{at, bytes.Clone(p)})
	during := f.during
	f.mu.Unlock()
	if during != nil {
		if err := during(p, at); err != nil {
			return 0, err
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.flying = slices.DeleteFunc(f.flying, func(w flying) bool { return w.at == at })
	return copy(f.disk[at:], p[:len(p)-f.short]), nil
}

// land puts those sectors of the writes under way on a disk that keep names.
func (f *fakeWrites) land(disk []byte, keep func() bool) {
	for _, w := range f.flying {
		for at := 0; at < len(w.text); at += sector {
			if keep() {
				copy(disk[int(w.at)+at:], w.text[at:at+sector])
			}
		}
	}
}

// under calls f with a copy of what there is, while no write ends.
func (f *fakeTail) under(g func(*fakeTail)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	c := &fakeTail{name: f.name, disk: bytes.Clone(f.disk), mem: f.read()}
	c.flying = slices.Clone(f.flying)
	g(c)
}

// syncOfTail is a sync of a tail, for an injector: the tail is not under its file system.
var syncOfTail = errorfs.Op{Kind: errorfs.OpFileSync, Path: "j/tail"}

// moment returns a clone of the rest of the disk, and the tail at the moment of the clone. While
// another goroutine changes the tail, it tries again.
func (f *fakeTail) moment(clone func() *vfs.MemFS) (fs *vfs.MemFS, tail *fakeTail) {
	for {
		var before *fakeTail
		f.under(func(c *fakeTail) { before = c })
		fs = clone()
		f.under(func(c *fakeTail) { tail = c })
		if tail.name == before.name && bytes.Equal(tail.mem, before.mem) &&
			bytes.Equal(tail.disk, before.disk) && len(tail.flying) == len(before.flying) {
			return fs, tail
		}
	}
}

// read copies what is in memory, whole words. It stands for the system, which reads a mapped file
// while its owner writes: the race detector does not judge it. (Another goroutine's write to the
// store takes a moment while an opening makes the header.)
//
//go:norace
func (f *fakeTail) read() []byte {
	mem := make([]byte, len(f.mem))
	for at := 0; at < len(mem); at += 8 {
		*(*uint64)(unsafe.Pointer(&mem[at])) = *(*uint64)(unsafe.Pointer(&f.mem[at]))
	}
	return mem
}

// text is the file as the system shows it.
func (f *fakeTail) text() (b []byte) {
	f.under(func(c *fakeTail) { b = append(c.mem, c.disk[len(c.mem):]...) })
	return b
}

// holding makes every write wait until its offset is let go.
type holding struct {
	mu   sync.Mutex
	held map[int64]chan error
}

func hold(f *fakeTail) *holding {
	h := &holding{held: map[int64]chan error{}}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.during = func(_ []byte, at int64) error {
		h.mu.Lock()
		c := make(chan error, 1)
		h.held[at] = c
		h.mu.Unlock()
		return <-c
	}
	return h
}

// offsets are the writes that wait.
func (h *holding) offsets() (list []int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for at := range h.held {
		list = append(list, at)
	}
	slices.Sort(list)
	return list
}

// let ends one of them.
func (h *holding) let(at int64, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.held[at] <- err
	delete(h.held, at)
}

// drop lets all writes go, also later ones.
func (h *holding) drop(f *fakeTail) {
	f.mu.Lock()
	f.during = nil
	f.mu.Unlock()
	for _, at := range h.offsets() {
		h.let(at, nil)
	}
}

// twoInFlight is a journal in mode "fsync" with two writes under way, of 5 and of 40 commands, and
// 3 commands that wait. 9 are answered.
func twoInFlight(t testing.TB) (*Journal, *fakeTail, *holding, *vfs.MemFS, *flow, *Block) {
	t.Helper()
	mem := vfs.NewCrashableMem()
	o, fake := logged(t, mem)
	j := openNew(t, "j", o)
	f, b := &flow{seed: 8, idsEvery: 2}, &Block{}
	publishAll(t, j, f, b, 9)
	j.told(t, 9)
	h := hold(fake)
	for i, n := range []int{5, 40, 3} {
		f.grow(b, n)
		ok := must.Get(j.publish(b))(t)
		if !ok {
			t.Fatal("no room")
		}
		if i < tailWriters {
			until(t, "the write has begun", func() bool { return len(h.offsets()) == i+1 })
		}
	}
	return j, fake, h, mem, f, b
}

// TestLogAnswersInOrder ends the second of two writes first.
func TestLogAnswersInOrder(t *testing.T) {
	j, fake, h, _, f, b := twoInFlight(t)
	var mu sync.Mutex
	var told []uint64
	j.OnDurable(func(inputSeq uint64) {
		mu.Lock()
		defer mu.Unlock()
		told = append(told, inputSeq)
	}, nil)
	list := h.offsets()
	h.let(list[1], nil)
	until(t, "the commands that wait are written", func() bool { return len(h.offsets()) == 2 })
	if at := h.offsets(); j.Answered() != 9 || at[0] != list[0] || at[1] <= list[1] {
		t.Fatalf("answered %d, writes at %v after %v", j.Answered(), at, list)
	}
	h.let(list[0], nil)
	j.told(t, 9+5+40)
	h.drop(fake)
	j.told(t, f.inputSeq)
	c := must.Get(j.Append(b))(t)
	must.OK(t, c.Wait())
	expectHistory(t, j, f, f.inputSeq)
	must.OK(t, j.Close())
	if !slices.Equal(told, []uint64{54, 57}) {
		t.Errorf("answers up to %v", told)
	}
}

// TestSmallWritesFollowEachOther: beside a write under way only a large one begins, and what waits
// is written when the journal is closed.
func TestSmallWritesFollowEachOther(t *testing.T) {
	o, fake := logged(t, vfs.NewCrashableMem())
	o.tailBeside = 8 << 10
	j := openNew(t, "j", o)
	f, b := &flow{seed: 8, idsEvery: 2}, &Block{}
	h := hold(fake)
	publish := func(commands int) {
		t.Helper()
		f.grow(b, commands)
		if ok := must.Get(j.publish(b))(t); !ok {
			t.Fatal("no room")
		}
	}
	underWay := func(n int) {
		t.Helper()
		until(t, fmt.Sprintf("%d writes are under way", n),
			func() bool { return len(h.offsets()) == n })
	}
	waits := func(n int) {
		t.Helper()
		l := j.tail.log
		until(t, fmt.Sprintf("%d writers are busy and a small write waits", n), func() bool {
			l.mu.Lock()
			defer l.mu.Unlock()
			return l.busy == n && l.filled(j.tail) && !l.ready(j.tail)
		})
	}
	publish(5)
	underWay(1)
	publish(3)
	waits(1)
	publish(200) // with the three before it
	underWay(2)
	publish(4)
	waits(2)
	h.let(h.offsets()[0], nil)
	j.told(t, 5)
	waits(1)
	h.let(h.offsets()[0], nil)
	j.told(t, 208)
	underWay(1)
	publish(1)
	waits(1)
	ended := make(chan error, 1)
	go func() { ended <- j.Close() }()
	until(t, "the writers shall stop", func() bool {
		j.tail.log.mu.Lock()
		defer j.tail.log.mu.Unlock()
		return j.tail.log.stopping
	})
	h.drop(fake)
	must.OK(t, <-ended)
	if got := j.Answered(); got != f.inputSeq {
		t.Errorf("%d are answered, want %d", got, f.inputSeq)
	}
}

// TestPowerCutTakesAnySectorOfWritesInFlight: what was answered is there, what is there is whole
// and without a hole, and the journal goes on from it.
func TestPowerCutTakesAnySectorOfWritesInFlight(t *testing.T) {
	t.Logf("-args -faultseed=%d", *faultSeed)
	j, fake, h, mem, f, _ := twoInFlight(t)
	r := rand.New(rand.NewPCG(*faultSeed, 21))
	runs, ends := 300, map[uint64]int{}
	if testing.Short() {
		runs = 20
	}
	check := func(answered uint64) {
		for run := range runs {
			percent := []int{0, 50, 90, 97, 100}[run%5]
			fs := mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: r.IntN(101),
				RNG: rand.New(rand.NewPCG(r.Uint64(), 3))})
			fake.under(func(c *fakeTail) {
				c.into(t, fs, func() bool { return r.IntN(100) < percent })
			})
			head, err := recovered(fs, "boot-2", *f.begin(), answered, f.inputSeq)
			if err != nil {
				t.Fatalf("run %d, %d%% of the sectors: %v", run, percent, err)
			}
			ends[head]++
		}
	}
	check(9)
	if ends[9] == 0 || ends[14] == 0 || ends[54] == 0 || len(ends) != 3 {
		t.Errorf("histories end at %v, want 9, 14 and 54", ends)
	}
	h.let(h.offsets()[1], nil) // a write has ended behind one that has not
	until(t, "the third write", func() bool { return len(h.offsets()) == 2 })
	clear(ends)
	check(9)
	if ends[9] == 0 || ends[54] == 0 || ends[57] == 0 || len(ends) != 3 {
		t.Errorf("histories end at %v, want 9, 54 and 57", ends)
	}
	h.let(h.offsets()[0], nil)
	j.told(t, 54)
	check(54)
	h.drop(fake)
	must.OK(t, j.Close())
}

// TestFailedWriteOfTheLogEndsTheJournal fails one of two writes under way. Nothing is answered that
// lies behind it, and nothing is written again.
func TestFailedWriteOfTheLogEndsTheJournal(t *testing.T) {
	for which := range 2 {
		t.Run(fmt.Sprint("write ", which), func(t *testing.T) {
			j, fake, h, mem, f, b := twoInFlight(t)
			fatals := newFatals()
			j.latch.fatal = fatals.fatal
			list := h.offsets()
			h.let(list[which], syscall.EIO)
			<-fatals.hit
			h.let(list[1-which], nil)
			f.grow(b, 1)
			_, err := j.publish(b)
			must.Be(t, err, ErrPoisoned)
			must.Be(t, j.Close(), syscall.EIO)
			if got := j.Answered(); got != 9 {
				t.Errorf("%d are answered, want 9", got)
			}
			want := fmt.Sprintf("file=j/tail offset=%d", list[which])
			if text := j.Err().Error(); !strings.Contains(text, want) {
				t.Errorf("%s does not say %s", text, want)
			}
			left := fake.into(t, kill(mem), always)
			_, err = recovered(left, "boot-1", *f.begin(), 9, 57)
			must.OK(t, err)
		})
	}
}

// TestShortWriteOfTheLogEndsTheJournal: a write of which the system took a part is a failure, and
// nothing in it is answered.
func TestShortWriteOfTheLogEndsTheJournal(t *testing.T) {
	o, fake := logged(t, vfs.NewCrashableMem())
	j := openNew(t, "j", o)
	f, b := &flow{seed: 8, idsEvery: 2}, &Block{}
	publishAll(t, j, f, b, 9)
	j.told(t, 9)
	fatals := newFatals()
	j.latch.fatal = fatals.fatal
	fake.mu.Lock()
	fake.short = sector
	fake.mu.Unlock()
	f.grow(b, 1)
	if ok := must.Get(j.publish(b))(t); !ok {
		t.Fatal("no room")
	}
	<-fatals.hit
	must.Be(t, j.Close(), io.ErrShortWrite)
	if got := j.Answered(); got != 9 {
		t.Errorf("%d are answered, want 9", got)
	}
}

// TestLogDamageBelowAnAnswerIsRefused damages what was answered, at any byte, and takes the marks:
// later writes tell how far was answered. The error names file and place.
func TestLogDamageBelowAnAnswerIsRefused(t *testing.T) {
	mem := vfs.NewCrashableMem()
	o, fake := logged(t, mem)
	j := openNew(t, "j", o)
	f, b := &flow{seed: 8, idsEvery: 2}, &Block{}
	step := 13
	if testing.Short() {
		step = 101
	}
	for range 6 {
		f.grow(b, 7)
		ok := must.Get(j.publish(b))(t)
		if !ok {
			t.Fatal("no room")
		}
		j.told(t, f.inputSeq)
	}
	clone := kill(mem)
	fake.under(func(c *fakeTail) {
		head, _ := newestHead(c.mem)
		head.put(c.mem[int(head.run%tailSlots)*tailHeader:]) // marks at the base
		copy(c.disk, c.mem)
		image := must.Get(parseTail(c.disk, "tail"))(t)
		if len(image.frames) != 6 || image.promised != 35 {
			t.Fatalf("%d frames, %d promised", len(image.frames), image.promised)
		}
		for i := range image.frames[:5] {
			p := &image.frames[i]
			for at := p.offset - tailWrite; at < p.end-tailFrame; at += step {
				damaged := bytes.Clone(c.disk)
				damaged[at] ^= 4
				fs := kill(clone)
				must.OK(t, putFile(fs, "j/tail", damaged))
				_, err := Open("j", Options{FS: fs, boot: "boot-2"})
				must.Be(t, err, ErrShortened)
				place := tailSlots * tailHeader
				if i > 0 {
					place = image.frames[i-1].end
				}
				if want := fmt.Sprintf("file=j/tail offset=%d:", place); !strings.Contains(err.Error(), want) {
					t.Fatalf("byte %d: %v does not say %s", at, err, want)
				}
			}
		}
	})
	must.OK(t, j.Close())
}

// TestLogKeepsWhatTheStoreHasNotSynced lets no sync of the store's log end. The store has the
// commands, and a power cut takes them from it: the log has them still, and is full.
func TestLogKeepsWhatTheStoreHasNotSynced(t *testing.T) {
	disk, mem := newHangs(), vfs.NewCrashableMem()
	o, fake := logged(t, disk.fs(mem))
	j := openNew(t, "j", o)
	f, b := &flow{seed: 8, idsEvery: 2}, &Block{}
	disk.shut()
	for full := false; !full; {
		f.grow(b, 20)
		ok := must.Get(j.publish(b))(t)
		if full = !ok; full {
			break
		}
		c := must.Get(j.Append(b))(t)
		must.OK(t, c.Wait())
		b.Reset()
		if f.inputSeq > 5000 {
			t.Fatal("the log is never full")
		}
	}
	answered := f.inputSeq - 20
	if answered < 200 || j.Durable() != answered || j.Answered() != answered {
		t.Errorf("%d of %d are answered, %d in the store", j.Answered(), f.inputSeq, j.Durable())
	}
	var cut vfs.FS
	fake.under(func(c *fakeTail) {
		cut = powerCut(mem)
		c.into(t, cut, func() bool { return false })
	})
	must.Get(recovered(cut, "boot-2", *f.begin(), answered, answered))(t)
	disk.release()
	c := must.Get(j.Append(b))(t)
	must.OK(t, c.Wait())
	expectHistory(t, j, f, f.inputSeq)
	must.OK(t, j.Close())
}
