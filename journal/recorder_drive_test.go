package journal

import (
	"errors"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"posttrade/ring"
	"posttrade/ring/must"
)

// resting gives the rig a recorder with a thread that sleeps for ever.
func (r *rig) resting() *rig {
	r.rec.lease.Lend()
	return r
}

// behindTail is a resting recorder with a small tail. The log of its store is behind a gate.
func behindTail(t testing.TB, f flow) (*rig, *Journal, *gate) {
	t.Helper()
	g := newGate()
	o, _ := tailed(t, g.fs(vfs.NewMem()))
	j := openNew(t, "j", o)
	return newRig(t, j, 4096, f, RecorderOptions{}).resting(), j, g
}

// overflow drives more commands than the small tail holds while the gate is shut, and returns how
// many.
func (r *rig) overflow(t testing.TB, g *gate) (n int) {
	t.Helper()
	g.shut()
	for n = range 1000 {
		r.quietly(1)
		r.rec.Drive()
	}
	n++
	if got := r.desk.durable.Load(); got == uint64(n) || got == 0 {
		t.Errorf("answered %d of %d without the store", got, n)
	}
	return n
}

// quietly applies the flow's next n commands without a wake.
func (r *rig) quietly(n int) {
	for range n {
		c := r.toy.flow.command(r.toy.applied + 1)
		r.outlet.Limit = r.out.Limit()
		r.toy.apply(&c, &r.outlet)
	}
	r.out.PublishQuietlyTo(r.outlet.Next)
}

// end gives the recorder back to its thread and lets that finish.
func (r *rig) end(t testing.TB) error {
	t.Helper()
	r.rec.lease.Regain()
	r.rec.Stop()
	r.run()
	return <-r.done
}

// A goroutine that brings events to a resting recorder records them. The store's answers come by
// themselves, and the committer takes along what came while a commit was under way.
func TestDriveRecordsOnTheCallersGoroutine(t *testing.T) {
	g := newGate()
	j := openNew(t, "j", strict(t, g.fs(vfs.NewMem())))
	f := flow{seed: 9, idsEvery: 3}
	views := &tally{}
	r := newRig(t, j, 4096, f, RecorderOptions{}, views).resting()
	g.shut()
	r.quietly(3)
	r.rec.Drive()
	if views.events == 0 || uint64(r.rec.Events()) != views.events || j.Metrics().InFlight != 1 {
		t.Errorf("%d events observed, metrics %+v", views.events, j.Metrics())
	}
	r.quietly(5)
	r.rec.Drive()
	if n := j.Metrics().InFlight; n != 1 || r.rec.block.Commands() != 5 {
		t.Errorf("%d commits under way, %d commands wait", n, r.rec.block.Commands())
	}
	g.release()
	until(t, "durable", func() bool { return r.desk.durable.Load() == 8 })
	must.OK(t, r.end(t))
	if err := r.desk.bad.Load(); err != nil {
		t.Error(*err)
	}
	expectHistory(t, j, &f, 8)
	must.OK(t, j.Close())
}

// With a tail the driver answers and hands the block to the committer, which packs it and takes
// along what came meanwhile. The recorder's thread has no part in it.
func TestDriveAnswersFromTheTail(t *testing.T) {
	f := flow{seed: 9, idsEvery: 3}
	r, j, g := behindTail(t, f)
	g.shut()
	r.quietly(3)
	r.rec.Drive()
	if got := r.desk.durable.Load(); got != 3 || j.Metrics().InFlight != 1 || j.Durable() != 0 ||
		r.rec.block.Commands() != 0 {
		t.Errorf("answered %d, metrics %+v, %d commands wait", got, j.Metrics(), r.rec.block.Commands())
	}
	r.quietly(5)
	r.rec.Drive()
	if got := r.desk.durable.Load(); got != 8 || j.Metrics().InFlight != 1 ||
		r.rec.block.Commands() != 5 {
		t.Errorf("answered %d, metrics %+v, %d commands wait", got, j.Metrics(), r.rec.block.Commands())
	}
	g.release()
	until(t, "in the store", func() bool { return j.Durable() == 8 })
	r.quietly(2)
	r.rec.room() // the driver of these met the committer's turn and left them to it
	until(t, "answered", func() bool { return r.desk.durable.Load() == 10 })
	must.OK(t, r.end(t))
	expectHistory(t, j, &f, 10)
	must.OK(t, j.Close())
}

// The committer, too, leaves a block that the tail has no room for to the thread: it would wait for
// itself.
func TestTheCommitterDoesNotWaitForItself(t *testing.T) {
	f := flow{seed: 9}
	r, j, g := behindTail(t, f)
	var looked atomic.Int32
	room := j.onRoom
	j.onRoom = func() { room(); looked.Add(1) }
	n := r.overflow(t, g)
	r.rec.j.tail.limit, r.rec.j.tail.bytes = r.rec.j.tail.at, 0 // and it stays full
	g.release()
	until(t, "the committer has looked", func() bool { return looked.Load() > 0 })
	if j.Durable() == uint64(n) {
		t.Error("the committer has stored what waits for an answer")
	}
	must.OK(t, r.end(t))
	if got := r.desk.durable.Load(); got != uint64(n) {
		t.Errorf("answered %d of %d", got, n)
	}
	expectHistory(t, j, &f, uint64(n))
	must.OK(t, j.Close())
}

// The driver leaves to the thread what has to be waited for: a full block, and a full tail.
func TestDriverDoesNotWait(t *testing.T) {
	t.Run("full block", func(t *testing.T) {
		g := newGate()
		j := openNew(t, "j", strict(t, g.fs(vfs.NewMem())))
		f := flow{seed: 9}
		const most = 8
		r := newRig(t, j, 4096, f, RecorderOptions{BlockCommands: most}).resting()
		g.shut()
		for range 10 * most {
			r.quietly(1)
			r.rec.Drive()
		}
		if got := r.rec.block.Commands(); got != most {
			t.Errorf("%d commands in a block of %d", got, most)
		}
		g.release()
		must.OK(t, r.end(t))
		expectHistory(t, j, &f, 10*most)
		must.OK(t, j.Close())
	})
	t.Run("full tail", func(t *testing.T) {
		f := flow{seed: 9}
		r, j, g := behindTail(t, f)
		n := r.overflow(t, g)
		g.release()
		must.OK(t, r.end(t))
		if got := r.desk.durable.Load(); got != uint64(n) {
			t.Errorf("answered %d of %d", got, n)
		}
		expectHistory(t, j, &f, uint64(n))
		must.OK(t, j.Close())
	})
}

// Drive takes nothing from a recorder with a working thread, nor from another driver.
func TestDriveLeavesTheRecorderToWhoHasIt(t *testing.T) {
	for _, loan := range []ring.BorrowResult{ring.Kept, ring.Lent} {
		j := openNew(t, "j", strict(t, vfs.NewMem()))
		f := flow{seed: 9}
		r := newRig(t, j, 64, f, RecorderOptions{})
		if loan == ring.Lent {
			r.resting().rec.lease.Borrow()
		}
		r.quietly(1)
		r.rec.Drive()
		if got := r.rec.Events(); got != 0 {
			t.Errorf("loan %d: %d events taken", loan, got)
		}
		if loan == ring.Lent {
			r.rec.lease.Return()
			must.OK(t, r.end(t))
		} else {
			r.rec.Stop()
			r.run()
			must.OK(t, <-r.done)
		}
		expectHistory(t, j, &f, 1)
		must.OK(t, j.Close())
	}
}

// A flush that has more to do wakes the thread.
func TestDriverFlushes(t *testing.T) {
	j := openNew(t, "j", strict(t, vfs.NewMem()))
	var flushed atomic.Int64
	more := func() bool { return flushed.Add(1) < 3 }
	r := newRig(t, j, 64, flow{seed: 9}, RecorderOptions{Flush: more}).resting()
	r.quietly(1)
	r.rec.Drive()
	if got := flushed.Load(); got != 1 {
		t.Errorf("flushed %d times", got)
	}
	r.rec.lease.Regain()
	r.run()
	until(t, "flushed by the thread", func() bool { return flushed.Load() >= 3 })
	r.rec.Stop()
	must.OK(t, <-r.done)
	must.OK(t, j.Close())
}

// When a mapped file is truncated while a driver writes to it, the disk has failed; the driver does
// not crash.
func TestTruncatedTailUnderADriver(t *testing.T) {
	fatals, dir := newFatals(), t.TempDir()
	o := onDisk(t, DurabilityOS)
	o.Fatal, o.FlushInterval = fatals.fatal, time.Hour // a slow disk holds no answer back
	j := openNew(t, dir, o)
	r := newRig(t, j, 1024, flow{seed: 2}, RecorderOptions{}).resting()
	r.quietly(10)
	until(t, "ten are answered, after a slow sync too", func() bool {
		r.rec.Drive()
		return r.desk.durable.Load() == 10
	})
	must.OK(t, os.Truncate(filepath.Join(dir, tailName), 0))
	r.quietly(10)
	r.rec.Drive()
	<-fatals.hit
	if err := r.desk.failed.Load(); err == nil || !errors.Is(*err, errTailFault) {
		t.Errorf("the callers that wait were told %v", err)
	}
	must.Be(t, r.end(t), errTailFault)
	if n := r.desk.durable.Load(); n != 10 {
		t.Errorf("%d answered", n)
	}
	must.Be(t, j.Close(), ErrPoisoned)
}

// Commits do not overlap while blocks are small: the second one would only wait longer.
func TestSmallCommitsDoNotOverlap(t *testing.T) {
	g := newGate()
	j := openNew(t, "j", strict(t, g.fs(vfs.NewMem())))
	f := &flow{seed: 9}
	g.shut()
	c := must.Get(j.Append(f.block(&Block{}, 1)))(t)
	for commands, want := range map[int]bool{1: false, pipelinedFrom - 1: false, pipelinedFrom: true} {
		if got := j.Room(commands); got != want {
			t.Errorf("beside a commit under way: room for %d commands: %v, want %v", commands, got, want)
		}
	}
	g.release()
	must.OK(t, c.Wait())
	if !j.Room(1) {
		t.Error("no room for a single command when none is under way")
	}
	must.OK(t, j.Close())
}

// A commit that is used again has not ended until it is durable again.
func TestCommitIsUsedAgain(t *testing.T) {
	g := newGate()
	j := openNew(t, "j", strict(t, g.fs(vfs.NewMem())))
	f, c := &flow{seed: 10}, newCommit(j.latch)
	must.OK(t, j.append(f.block(&Block{}, 1), c))
	must.OK(t, c.Wait())
	g.shut()
	must.OK(t, j.append(f.block(&Block{}, 1), c))
	if n := len(c.done); n != 0 {
		t.Error("it has ended before its sync")
	}
	g.release()
	must.OK(t, c.Wait())
	must.OK(t, c.Wait()) // as often as one likes
	if c.end.inputSeq != 2 || j.Durable() != 2 {
		t.Errorf("a commit up to %d, durable %d, want 2", c.end.inputSeq, j.Durable())
	}
	must.OK(t, j.Close())
}

// A recorder makes one commit more than may be under way, and no others.
func TestRecorderUsesItsCommitsAgain(t *testing.T) {
	const cuts, commands = 200, 3
	j := openNew(t, "j", strict(t, vfs.NewMem()))
	f, r, used := &flow{seed: 11}, &Recorder{j: j}, map[*Commit]bool{}
	for range cuts {
		f.block(&r.block, commands)
		r.cut()
		must.OK(t, r.failed)
		used[r.commits[len(r.commits)-1]] = true
	}
	must.OK(t, r.commits[len(r.commits)-1].Wait())
	if got, want := j.Durable(), uint64(cuts*commands); got != want {
		t.Errorf("durable %d, want %d", got, want)
	}
	if got, want := len(used), j.o.MaxInFlight+1; got != want {
		t.Errorf("%d commits were made, want %d", got, want)
	}
	must.OK(t, j.Close())
}
