package journal

import (
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"posttrade/ring/must"
)

// hangs is a disk. Its syncs of the log hang while its gate is shut, and may fail then.
type hangs struct {
	*gate
	hung atomic.Int32 // syncs that have met a shut gate
	err  atomic.Pointer[error]
}

func newHangs() *hangs { return &hangs{gate: newGate()} }

func (h *hangs) fs(fs vfs.FS) vfs.FS {
	return errorfs.Wrap(fs, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind != errorfs.OpFileSyncData || !isLog(op.Path) {
			return nil
		}
		h.mu.Lock()
		open := h.open
		h.mu.Unlock()
		select {
		case <-open:
			return nil
		default:
		}
		h.hung.Add(1)
		<-open
		if err := h.err.Load(); err != nil {
			return *err
		}
		return nil
	}))
}

// boundRig is a recorder in mode "os" with a tail, on such a disk.
func boundRig(t testing.TB, interval time.Duration) (
	r *rig, j *Journal, h *hangs, mem *vfs.MemFS, tail *fakeTail,
) {
	t.Helper()
	h, mem = newHangs(), vfs.NewCrashableMem()
	o, tail := tailed(t, h.fs(mem))
	o.FlushInterval = interval
	o.Fatal = func(error) {}
	j = openNew(t, "j", o)
	return newRig(t, j, 4096, flow{seed: 9, idsEvery: 3}, RecorderOptions{}), j, h, mem, tail
}

// answer drives n commands and expects them answered.
func (r *rig) answer(t testing.TB, n int) {
	t.Helper()
	want := r.toy.applied + uint64(n)
	r.quietly(n)
	until(t, "answered", func() bool { r.rec.Drive(); return r.desk.durable.Load() == want })
}

// While a sync hangs for longer than the bound, nothing more is answered. What was answered is no
// more than what came within the bound, and a power cut takes only from that. When the sync
// returns, the recorder's own thread answers everything.
func TestAnswersStopWhileASyncHangs(t *testing.T) {
	r, j, h, mem, tail := boundRig(t, 20*time.Millisecond)
	r.resting()
	r.answer(t, 10)
	until(t, "stable", func() bool { return j.Stable() == 10 })
	h.shut()
	r.answer(t, 1) // something to sync
	until(t, "a sync hangs", func() bool { return h.hung.Load() > 0 })
	until(t, "the bound is reached", j.held)
	taken := r.rec.Events()
	r.quietly(50)
	for range 100 {
		r.rec.Drive()
		r.rec.room()
	}
	if got := r.desk.durable.Load(); got != 11 || r.rec.Events() != taken {
		t.Errorf("%d are answered, want 11; %d events taken, want %d", got, r.rec.Events(), taken)
	}
	if !r.rec.Empty() {
		t.Error("the recorder's thread would not rest")
	}
	left := tail.into(t, mem.CrashClone(vfs.CrashCloneCfg{}), func() bool { return false })
	o, _ := tailed(t, left)
	o.boot = "boot-2"
	k := must.Get(Open("j", o))(t)
	if head, _ := k.Head(); head != 10 {
		t.Errorf("a power cut leaves %d commands, want the 10 that were synced", head)
	}
	must.OK(t, k.Close())
	r.rec.lease.Regain()
	r.run()
	h.release()
	until(t, "all are answered", func() bool { return r.desk.durable.Load() == 61 })
	r.rec.Stop()
	must.OK(t, <-r.done)
	if err := r.desk.bad.Load(); err != nil {
		t.Error(*err)
	}
	expectHistory(t, j, &flow{seed: 9, idsEvery: 3}, 61)
	must.OK(t, j.Close())
}

// When some events of a command have been taken, the command is completed and answered.
func TestBoundCompletesTheCommandItMeets(t *testing.T) {
	r, j, _, _, _ := boundRig(t, time.Hour)
	r.resting()
	f := flow{seed: 9, idsEvery: 3}
	for n := 1; ; n++ { // to a command that has fills
		c := f.command(uint64(n))
		trades := uint64(0)
		if len(f.fills(&c, &trades)) > 0 {
			r.answer(t, n-1)
			break
		}
	}
	before := r.desk.durable.Load()
	r.quietly(3)
	r.rec.take(1)
	if !r.rec.open {
		t.Fatal("the command has one event")
	}
	j.bound.shut.Store(true)
	r.rec.Drive()
	for r.rec.open { // one event a turn
		r.rec.Drive()
	}
	r.rec.Drive()
	if got := r.desk.durable.Load(); got != before+1 {
		t.Errorf("%d are answered, want %d", got, before+1)
	}
	j.boundTick()
	until(t, "the rest", func() bool { r.rec.Drive(); return r.desk.durable.Load() == before+3 })
	must.OK(t, r.end(t))
	must.OK(t, j.Close())
}

// A sync that hangs and then fails ends the journal, and the waiting callers get the error.
func TestHangingSyncThatFailsEndsTheJournal(t *testing.T) {
	r, j, h, _, _ := boundRig(t, 20*time.Millisecond)
	r.resting()
	h.shut()
	r.answer(t, 1)
	until(t, "a sync hangs", func() bool { return h.hung.Load() > 0 })
	until(t, "the bound is reached", j.held)
	r.quietly(500)
	r.rec.lease.Regain()
	r.run()
	eio := error(syscall.EIO)
	h.err.Store(&eio)
	h.release()
	until(t, "the waiting callers are told", func() bool { return r.desk.failed.Load() != nil })
	r.quietly(1)
	r.rec.Stop()
	must.Be(t, <-r.done, syscall.EIO)
	if got := r.desk.durable.Load(); got != 1 {
		t.Errorf("%d are answered, want 1", got)
	}
	must.Be(t, j.Close(), syscall.EIO)
}

// TestAPoisonedJournalClosesWhileASyncHangs poisons a journal while one of its tickers waits for a
// sync that does not come. Close returns with the cause; what the ticker does later harms nothing.
func TestAPoisonedJournalClosesWhileASyncHangs(t *testing.T) {
	for _, mode := range []string{DurabilityOS, withTail, withLog} {
		t.Run(mode, func(t *testing.T) {
			h := newHangs()
			fs := h.fs(vfs.NewMem())
			o := strict(t, fs)
			if o.Durability = mode; mode != DurabilityOS {
				o, _ = tailModes[mode](t, fs)
			}
			o.FlushInterval, o.Fatal = time.Millisecond, func(error) {}
			j, f := openNew(t, "j", o), flow{seed: 9}
			h.shut()
			appendAll(t, j, &f, 3)
			until(t, "a sync hangs", func() bool { return h.hung.Load() > 0 })
			eio := error(syscall.EIO)
			h.err.Store(&eio)
			_ = j.latch.Poison(syscall.ENOSPC)
			closed := make(chan error, 1)
			go func() { closed <- j.Close() }()
			select {
			case err := <-closed:
				must.Be(t, err, syscall.ENOSPC)
				must.Be(t, err, ErrPoisoned)
				h.release()
			case <-time.After(10 * time.Second):
				t.Error("Close waits for a sync that hangs")
				h.release()
				<-closed
			}
			j.tickers.Wait()
			must.Be(t, j.Err(), syscall.ENOSPC)
		})
	}
}

// On a disk where every sync takes longer than the bound, answers are released between two syncs.
func TestSlowDiskAnswersBetweenTwoSyncs(t *testing.T) {
	r, j, h, _, _ := boundRig(t, 20*time.Millisecond)
	r.run()
	for n := range 5 {
		h.shut()
		r.send(20)
		until(t, "the bound is reached", j.held)
		h.release()
		until(t, "answered", func() bool { return r.desk.durable.Load() == uint64(n+1)*20 })
	}
	r.rec.Stop()
	must.OK(t, <-r.done)
	must.OK(t, j.Close())
}

// A member's journal, which has no tail, holds no answers: a majority has the commands.
func TestJournalWithoutATailIsNotHeld(t *testing.T) {
	h := newHangs()
	o := strict(t, h.fs(vfs.NewMem()))
	o.Durability, o.FlushInterval = DurabilityOS, time.Millisecond
	j := openNew(t, "j", o)
	r := newRig(t, j, 4096, flow{seed: 9}, RecorderOptions{})
	r.run()
	h.shut()
	r.send(1)
	until(t, "a sync hangs", func() bool { return h.hung.Load() > 0 })
	r.send(20)
	until(t, "answered", func() bool { return r.desk.durable.Load() == 21 })
	if j.held() {
		t.Error("held")
	}
	h.release()
	r.rec.Stop()
	must.OK(t, <-r.done)
	must.OK(t, j.Close())
}
