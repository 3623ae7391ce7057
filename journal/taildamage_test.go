package journal

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"math/rand/v2"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"posttrade/ring/must"
)

// left is a journal of a killed process. The store had nothing of the last commands: stored is in
// the store and the tail, ahead in the tail alone.
type left struct {
	mode   string
	fs     *vfs.MemFS
	tail   []byte
	first  int // where the first frame begins
	frames int // where the first frame that only the tail has begins
	end    int // behind the last one
	flow   *flow
}

const leftStored, leftAhead = 50, 40

func leave(t testing.TB, mode string) *left {
	t.Helper()
	g, mem := newGate(), vfs.NewCrashableMem()
	o, fake := tailModes[mode](t, g.fs(mem))
	j := openNew(t, "j", o)
	f, b := &flow{seed: 8, idsEvery: 2}, &Block{}
	first := j.tail.at
	publishAll(t, j, f, b, leftStored)
	j.told(t, leftStored)
	c, err := j.Append(b)
	must.OK(t, err)
	must.OK(t, c.Wait())
	b.Reset()
	g.shut()
	l := &left{mode: mode, first: first, frames: j.tail.at, flow: f}
	publishAll(t, j, f, b, leftAhead)
	j.told(t, leftStored+leftAhead)
	_, err = j.Append(b)
	must.OK(t, err)
	l.end, l.tail, l.fs = j.tail.at, fake.text(), kill(mem)
	g.release()
	must.OK(t, j.Close())
	return l
}

// with is what was left, with another tail.
func (l *left) with(t testing.TB, tail []byte) *vfs.MemFS {
	t.Helper()
	fs := kill(l.fs)
	must.OK(t, putFile(fs, "j/tail", tail))
	return fs
}

// open opens what was left, with this tail.
func (l *left) open(t testing.TB, tail []byte, boot string) (*Journal, error) {
	t.Helper()
	o, _ := tailModes[l.mode](t, l.with(t, tail))
	o.boot = boot
	return Open("j", o)
}

// TestDamagedTailNeverShortensTheHistory flips a bit of every kind of byte: everything that was
// acknowledged is there, or the start is refused; the history is never different. After a power
// cut, for which mode "os" promises nothing, it may be shorter there.
func TestDamagedTailNeverShortensTheHistory(t *testing.T) {
	for mode := range tailModes {
		t.Run(mode, func(t *testing.T) { damagedTail(t, mode) })
	}
}

func damagedTail(t *testing.T, mode string) {
	l, r := leave(t, mode), rand.New(rand.NewPCG(*faultSeed, 77))
	t.Logf("-args -faultseed=%d", *faultSeed)
	all := uint64(leftStored + leftAhead)
	refused, whole, shorter, flips := 0, 0, 0, 240
	if testing.Short() {
		flips = 15
	}
	for flip := range flips {
		tail := bytes.Clone(l.tail)
		at := []int{r.IntN(256), anchorPage + r.IntN(256), tailMarksAt + anchorPage + r.IntN(80),
			l.frames + r.IntN(l.end-l.frames), r.IntN(len(tail))}[flip%5]
		tail[at] ^= 1 << r.IntN(8)
		for _, boot := range []string{"boot-1", "boot-2"} {
			j, err := l.open(t, tail, boot)
			if err != nil {
				if !errors.Is(err, ErrShortened) && !errors.Is(err, ErrTailDamaged) &&
					!errors.Is(err, ErrDiverged) {
					t.Fatalf("offset %d: %v", at, err)
				}
				refused++
				continue
			}
			head, _ := j.Head()
			if head == all {
				whole++
			} else if shorter++; boot == "boot-1" || head < leftStored || mode == withLog {
				t.Fatalf("offset %d, %s: opened at %d of %d", at, boot, head, all)
			}
			must.OK(t, compareHistory(j, l.flow.begin(), head))
			must.OK(t, j.Close())
		}
	}
	t.Logf("%d flips, twice each: %d refused, %d whole, %d shorter after a power cut", flips, refused,
		whole, shorter)
	if refused == 0 || whole == 0 || (shorter == 0) != (mode == withLog) {
		t.Error("not every case was met")
	}
}

// TestTornFrameIsTheEndOfTheTail cuts what lies behind the mark at any place: it was never
// answered, however much of it is there.
func TestTornFrameIsTheEndOfTheTail(t *testing.T) {
	g, mem := newGate(), vfs.NewCrashableMem()
	o, fake := tailed(t, g.fs(mem))
	j := openNew(t, "j", o)
	f, b := &flow{seed: 8, idsEvery: 2}, &Block{}
	g.shut()
	publishAll(t, j, f, b, 9)
	before, from := bytes.Clone(fake.mem[:tailSlots*tailHeader]), j.tail.at
	publishAll(t, j, f, b, 3)
	to := j.tail.at
	for cut := from; cut <= to; cut++ {
		tail := bytes.Clone(fake.mem)
		copy(tail, before) // the mark had not been made
		for i := cut; i < to; i++ {
			tail[i] ^= 0x5a
		}
		image, err := parseTail(tail, "tail")
		must.OK(t, err)
		_, err = image.reach(point{}, "boot-1")
		must.OK(t, err)
		if end := image.end(0); end != 9 && end != 10 && end != 12 {
			t.Fatalf("cut at %d: ends at %d", cut-from, end)
		}
	}
	g.release()
	must.OK(t, j.Close())
}

func TestVerifyAndExportSeeTheTail(t *testing.T) {
	for mode := range tailModes {
		t.Run(mode, func(t *testing.T) { verifyAndExport(t, mode) })
	}
}

func verifyAndExport(t *testing.T, mode string) {
	l := leave(t, mode)
	all := uint64(leftStored + leftAhead)
	o := VerifyOptions{FS: l.with(t, l.tail), boot: "boot-1",
		Engine: func([]byte) (Engine, error) { return &toy{flow: *l.flow.begin()}, nil }}
	r, err := Verify(context.Background(), "j", o)
	must.OK(t, err)
	if r.InputSeq != all || r.Tail != leftAhead || !r.Replayed || r.TradeSeq != l.flow.tradeSeq {
		t.Errorf("report %+v", r)
	}
	text := func(from, to uint64) string {
		var w bytes.Buffer
		must.OK(t, Export(context.Background(), "j", &w, from, to,
			VerifyOptions{FS: o.FS, boot: "boot-1"}))
		return w.String()
	}
	offline := []string{text(1, 0), text(45, 60), text(70, 72), text(1, 10), text(91, 0)}
	j, err := Open("j", Options{FS: o.FS, boot: "boot-1"})
	must.OK(t, err)
	for i, of := range [][2]uint64{{1, 0}, {45, 60}, {70, 72}, {1, 10}, {91, 0}} {
		var w bytes.Buffer
		must.OK(t, j.Export(context.Background(), &w, of[0], of[1]))
		if w.String() != offline[i] {
			t.Errorf("export of %v before and after the tail was taken in differs:\n%s\n%s", of, offline[i],
				w.String())
		}
	}
	must.OK(t, j.Close())
	if _, err := o.FS.Stat("j/tail"); !notExist(err) {
		t.Errorf("a tail that is not used is still there: %v", err)
	}
	if r, err = Verify(context.Background(), "j", o); err != nil || r.Tail != 0 || r.InputSeq != all {
		t.Errorf("report %+v, %v", r, err)
	}
	bad := errorsOf(t, l, func(head *tailHead) { head.base.chain[0]++ })
	_, err = Verify(context.Background(), "j", VerifyOptions{FS: bad, boot: "boot-1"})
	must.Be(t, err, ErrDiverged)
	must.Be(t, Export(context.Background(), "j", io.Discard, 1, 0,
		VerifyOptions{FS: bad, boot: "boot-1"}), ErrDiverged)
}

// errorsOf is what was left, with another header that counts.
func errorsOf(t testing.TB, l *left, change func(*tailHead)) *vfs.MemFS {
	t.Helper()
	return l.with(t, l.changed(change))
}

func (l *left) changed(change func(*tailHead)) []byte {
	tail := bytes.Clone(l.tail)
	head, _ := newestHead(tail)
	slot, mark := int(head.run%tailSlots)*tailHeader, head.mark
	change(&head)
	head.put(tail[slot:])
	for i := range tailMarks {
		m := tail[slot+tailMarksAt+i*tailMarkGap:]
		binary.LittleEndian.PutUint64(m, mark)
		binary.LittleEndian.PutUint64(m[8:], markCheck(mark, head.run))
	}
	return tail
}

// reseal changes the frame at offset and gives it a good checksum again.
func reseal(tail []byte, offset int, change func(f []byte)) []byte {
	tail = bytes.Clone(tail)
	f := tail[offset:]
	n := tailFrame +
		int(binary.LittleEndian.Uint32(f[40:])+binary.LittleEndian.Uint32(f[44:]))*recordBytes +
		int(binary.LittleEndian.Uint32(f[52:]))
	change(f[:n])
	binary.LittleEndian.PutUint32(f[4:], crc32.Checksum(f[8:n], castagnoli))
	return tail
}

// TestForgedSegmentSizeIsNoPanic: the header's checksum holds, but its segments are as long as a
// frame without what rounds the frame up.
func TestForgedSegmentSizeIsNoPanic(t *testing.T) {
	l := leave(t, withTail)
	head, _ := newestHead(l.tail)
	var frame []byte
	for at, end := l.first, l.end; at < end && len(frame)%tailFrame == 0; {
		f, size, ok := readFrame(l.tail[at:])
		if !ok {
			t.Fatalf("no frame at %d", at)
		}
		frame = l.tail[at:][:tailFrame+len(f.records)+len(f.fills)+len(f.ids.raw)]
		at += size
	}
	if len(frame)%tailFrame == 0 {
		t.Fatal("no frame is rounded up")
	}
	head.segments, head.bytes = 2, len(frame)
	b := make([]byte, tailSlots*tailHeader)
	head.put(b)
	for range head.segments {
		b = append(b, frame...)
	}
	image := must.Get(parseTail(b, "tail"))(t)
	if len(image.frames) != 1 {
		t.Errorf("%d frames, want the one in its place", len(image.frames))
	}
}

func TestTailThatIsNotTheStoresIsRefused(t *testing.T) {
	for mode := range tailModes {
		t.Run(mode, func(t *testing.T) { foreignTails(t, leave(t, mode)) })
	}
}

func foreignTails(t *testing.T, l *left) {
	head, _ := newestHead(l.tail)
	start := l.first
	later := reseal(l.tail, start, func(f []byte) { binary.LittleEndian.PutUint64(f[8:], head.run+1) })
	if l.mode == withLog {
		later = bytes.Clone(l.tail)
		w := later[start-tailWrite : start]
		binary.LittleEndian.PutUint64(w[8:], head.run+1)
		binary.LittleEndian.PutUint32(w[4:], crc32.Checksum(w[8:], castagnoli))
	}
	tests := []struct {
		name string
		tail []byte
		want error
	}{
		{"of another journal", l.changed(func(h *tailHead) { h.seed[3]++ }), ErrDiverged},
		{"began behind another commit", l.changed(func(h *tailHead) { h.base.chain[3]++ }), ErrDiverged},
		{"began inside a commit", l.changed(func(h *tailHead) { h.base.inputSeq = leftStored - 1 }),
			ErrDiverged}, {"began behind the store's end", l.changed(func(h *tailHead) {
			h.base.inputSeq = leftStored + 1
		}), ErrShortened},
		{"no header", make([]byte, len(l.tail)), ErrTailDamaged},
		{"empty", nil, ErrTailDamaged},
		{"cut short", l.tail[:len(l.tail)-1], ErrTailDamaged},
		{"segments without bytes", l.changed(func(h *tailHead) { h.bytes = 0 }), ErrTailDamaged},
		{"one segment", l.changed(func(h *tailHead) { h.segments = 1 }), ErrTailDamaged},
		{"of a later run than its header", later, ErrTailDamaged},
		{"of a version to come", l.changed(func(h *tailHead) { h.version = 3 }), ErrTailDamaged},
		{"another command than the store's", reseal(l.tail, start, func(f []byte) { f[tailFrame+40]++ }),
			ErrDiverged},
		{"other trades", reseal(l.tail, l.frames, func(f []byte) {
			binary.LittleEndian.PutUint64(f[32:], 1+binary.LittleEndian.Uint64(f[32:]))
			for at := tailFrame + int(binary.LittleEndian.
				Uint32(f[40:]))*recordBytes; at+recordBytes <= len(f); at += recordBytes {
				binary.LittleEndian.PutUint64(f[at:], 1+binary.LittleEndian.Uint64(f[at:]))
			}
		}), ErrDiverged},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := l.open(t, tt.tail, "boot-1")
			must.Be(t, err, tt.want)
			fs := l.with(t, tt.tail)
			r, err := AcceptHistory(context.Background(), "j", VerifyOptions{FS: fs, boot: "boot-1"})
			must.OK(t, err)
			if _, err := fs.Stat("j/tail.refused"); err != nil || r.InputSeq != leftStored || r.Tail != 0 {
				t.Errorf("accepted %+v, set aside: %v", r, err)
			}
			_, err = recovered(fs, "boot-1", *l.flow.begin(), leftStored, leftStored)
			must.OK(t, err)
		})
	}
	t.Run("beside an empty store", func(t *testing.T) {
		fs := vfs.NewMem()
		must.OK(t, fs.MkdirAll("j", 0o755))
		must.OK(t, putFile(fs, "j/tail", l.tail))
		_, err := Open("j", strict(t, fs))
		must.Be(t, err, ErrShortened)
	})
}

func TestAcceptKeepsATailThatGoesOn(t *testing.T) {
	for mode := range tailModes {
		t.Run(mode, func(t *testing.T) { acceptKeeps(t, leave(t, mode)) })
	}
}

func acceptKeeps(t *testing.T, l *left) {
	fs := l.with(t, l.tail)
	must.OK(t, fs.Remove("j/anchor"))
	r, err := AcceptHistory(context.Background(), "j", VerifyOptions{FS: fs, boot: "boot-1"})
	must.OK(t, err)
	if r.Tail != leftAhead {
		t.Errorf("accepted %+v", r)
	}
	_, err = recovered(fs, "boot-1", *l.flow.begin(), leftStored+leftAhead, leftStored+leftAhead)
	must.OK(t, err)
}

// TestFailedWriteAfterTheAnswer makes the store fail when the answer has been given: the process
// ends, and the next start has the commands from the tail.
func TestFailedWriteAfterTheAnswer(t *testing.T) {
	mem := vfs.NewCrashableMem()
	toggle := &errorfs.Toggle{Injector: errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind == errorfs.OpFileWrite && isLog(op.Path) {
			return syscall.ENOSPC
		}
		return nil
	})}
	fatals := newFatals()
	o, fake := tailed(t, errorfs.Wrap(mem, toggle))
	o.Fatal = fatals.fatal
	j := openNew(t, "j", o)
	f, b := &flow{seed: 8, idsEvery: 2}, &Block{}
	toggle.On()
	publishAll(t, j, f, b, 20)
	c, err := j.Append(b)
	if err == nil {
		err = c.Wait()
	}
	must.Be(t, err, ErrPoisoned)
	<-fatals.hit
	f.grow(b, 1)
	_, err = j.publish(b)
	must.Be(t, err, ErrPoisoned) // nothing is answered after it
	if j.Answered() != 20 {
		t.Errorf("%d answered", j.Answered())
	}
	j.Head() // does not wait for a commit that never ends
	_, err = recovered(fake.into(t, kill(mem), always), "boot-1", *f.begin(), 20, 20)
	must.OK(t, err)
	must.Be(t, j.Close(), syscall.ENOSPC)
}

func TestPublishRefusesAHole(t *testing.T) { inTailModes(t, publishHoles) }

func publishHoles(t *testing.T, options func(testing.TB, vfs.FS) (Options, *fakeTail)) {
	for _, what := range []string{"command", "fill"} {
		o, _ := options(t, vfs.NewMem())
		j := openNew(t, "j", o)
		f, b := &flow{seed: 8}, &Block{}
		f.grow(b, 20)
		if what == "command" {
			putLE64(b.records[8:], 2)
		} else {
			putLE64(b.fills, 2)
		}
		_, err := j.publish(b)
		must.Be(t, err, ErrGap)
		if j.Answered() != 0 {
			t.Errorf("%d answered", j.Answered())
		}
		must.OK(t, j.Close())
	}
}

// TestTailThatCannotBeMade fails every operation on the file while it is made, opened or removed.
// The result is a clear error, and the next opening has everything.
func TestTailThatCannotBeMade(t *testing.T) {
	for mode := range tailModes {
		t.Run(mode, func(t *testing.T) { tailCannotBeMade(t, leave(t, mode)) })
	}
}

func tailCannotBeMade(t *testing.T, l *left) {
	all := uint64(leftStored + leftAhead)
	met := 0
	for i := int32(0); ; i++ {
		var n atomic.Int32
		hit := false
		fs := l.with(t, l.tail)
		o, fake := tailModes[l.mode](t, errorfs.Wrap(fs, errorfs.InjectorFunc(func(op errorfs.Op) error {
			if name := fs.PathBase(op.Path); name != "tail" && name != "tail.new" || n.Add(1)-1 != i {
				return nil
			}
			hit = true
			return syscall.ENOSPC
		})))
		o.tailShape.segments++ // made anew
		fake.fs = fs
		j, err := Open("j", o)
		if !hit {
			must.OK(t, err)
			must.OK(t, j.Close())
			break
		}
		met++
		if err == nil {
			err = j.Close()
		}
		must.Be(t, err, syscall.ENOSPC)
		_, err = recovered(fs, "boot-1", *l.flow.begin(), all, all)
		must.OK(t, err)
	}
	t.Logf("%d operations failed", met)
	if met < 8 {
		t.Errorf("%d operations failed, want at least 8", met)
	}
}

func TestTailThatCannotBeMapped(t *testing.T) {
	for mode := range tailModes {
		t.Run(mode, func(t *testing.T) { tailCannotBeMapped(t, leave(t, mode)) })
	}
}

func tailCannotBeMapped(t *testing.T, l *left) {
	for _, broken := range []struct{ mapErr, syncErr, roomErr error }{{mapErr: syscall.ENOMEM},
		{syncErr: syscall.EIO}, {roomErr: syscall.EFAULT}} {
		fs := l.with(t, l.tail)
		o, fake := tailModes[l.mode](t, fs)
		fake.mapErr, fake.syncErr, fake.roomErr = broken.mapErr, broken.syncErr, broken.roomErr
		_, err := Open("j", o)
		must.Be(t, err, errors.Join(broken.mapErr, broken.syncErr,
			broken.roomErr).(interface{ Unwrap() []error }).Unwrap()[0])
		_, err = recovered(fs, "boot-1", *l.flow.begin(), leftStored+leftAhead, leftStored+leftAhead)
		must.OK(t, err)
	}
	fatals := newFatals()
	o, fake := tailModes[l.mode](t, vfs.NewMem())
	o.Fatal, fake.mapErr = fatals.fatal, syscall.ENOMEM
	j := must.Get(Open("j", o))(t)
	must.Be(t, j.Create(testGenesis), syscall.ENOMEM)
	must.Be(t, j.Close(), syscall.ENOMEM)
}
