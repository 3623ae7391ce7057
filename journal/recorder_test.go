package journal

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"posttrade/matcher"
	"posttrade/ring"
	"posttrade/ring/must"
	"posttrade/ring/waittest"
)

// desk stands for the waiting callers: it hands out client ids and checks that answers come in
// order.
type desk struct {
	flow    flow
	events  atomic.Uint64
	durable atomic.Uint64
	failed  atomic.Pointer[error]
	bad     atomic.Pointer[error]
	journal *Journal
}

func (d *desk) Observe(*matcher.Event) { d.events.Add(1) }

func (d *desk) ClientID(ref uint64) []byte { return d.flow.clientID(ref) }

func (d *desk) Durable(inputSeq uint64) {
	if before := d.durable.Swap(inputSeq); inputSeq <= before {
		err := fmt.Errorf("durable %d after %d", inputSeq, before)
		d.bad.Store(&err)
	}
	if d.journal.Answered() != inputSeq {
		err := fmt.Errorf("told %d, the journal says %d", inputSeq, d.journal.Answered())
		d.bad.Store(&err)
	}
}

func (d *desk) Fail(err error) { d.failed.Store(&err) }

// rig is a journal with a recorder on a ring that a toy engine writes.
type rig struct {
	j    *Journal
	out  *ring.Fanout[matcher.Event]
	desk *desk
	rec  *Recorder
	toy  *toy
	done chan error

	outlet matcher.Outlet
}

func newRig(t testing.TB, j *Journal, capacity int, f flow, o RecorderOptions,
	observers ...Observer) *rig {
	t.Helper()
	region := must.Get(ring.Anonymous(ring.FanoutBytes[matcher.Event](capacity)))(t)
	t.Cleanup(func() {
		_ = j.Close()       // the test has closed it, or has failed
		if j.Err() == nil { // behind a failure the committer may still use the ring
			must.OK(t, region.Close())
		}
	})
	out := must.Get(ring.NewFanout[matcher.Event](region, capacity))(t)
	r := &rig{j: j, out: out, desk: &desk{flow: f, journal: j}, toy: &toy{flow: f},
		done: make(chan error, 1)}
	r.toy.applied, r.toy.tradeSeq = j.Head()
	r.rec = NewRecorder(j, out, r.desk, o, observers...)
	r.outlet = matcher.Outlet{Slots: out.Slots(), Mask: out.Mask()}
	return r
}

// send applies the flow's next n commands, publishing after every command.
func (r *rig) send(n int) {
	for range n {
		c := r.toy.flow.command(r.toy.applied + 1)
		for r.out.Limit()-r.outlet.Next < 4 {
			runtime.Gosched()
		}
		r.outlet.Limit = r.out.Limit()
		r.toy.apply(&c, &r.outlet)
		r.out.PublishTo(r.outlet.Next)
	}
}

func (r *rig) run() { go func() { r.done <- r.rec.Run() }() }

// until polls a counter that another goroutine raises.
func until(t testing.TB, what string, ok func() bool) {
	t.Helper()
	waittest.Spin(t, what, ok)
}

func TestRecorderRecordsWhatTheEngineDid(t *testing.T) {
	for _, mode := range []string{DurabilityFsync, DurabilityOS, withTail, withLog} {
		for _, capacity := range []int{16, 4096} {
			t.Run(fmt.Sprintf("%s ring of %d", mode, capacity), func(t *testing.T) {
				o := strict(t, vfs.NewMem())
				if options := tailModes[mode]; options != nil {
					o, _ = options(t, o.FS)
				} else {
					o.Durability = mode
				}
				j := openNew(t, "j", o)
				f := flow{seed: 9, idsEvery: 3}
				views := &tally{}
				r := newRig(t, j, capacity, f, RecorderOptions{BlockCommands: 64}, views)
				r.run()
				const n = 3000
				r.send(n)
				until(t, "durable", func() bool { return r.desk.durable.Load() == n })
				r.send(1) // one alone is committed at once
				until(t, "durable", func() bool { return r.desk.durable.Load() == n+1 })
				r.rec.Stop()
				must.OK(t, <-r.done)
				if err := r.desk.bad.Load(); err != nil {
					t.Error(*err)
				}
				if want := n + 1 + r.toy.tradeSeq; views.events != want || r.desk.events.Load() != want {
					t.Errorf("observed %d and %d events, want %d", views.events, r.desk.events.Load(), want)
				}
				if got := uint64(r.rec.Events()); got != views.events {
					t.Errorf("counted %d events, want %d", got, views.events)
				}
				expectHistory(t, j, &f, n+1)
				commits := uint64(n / 64)
				if mode == withLog { // a write may hold any number of commands
					commits = 1
				}
				if m := j.Metrics(); m.Commits < commits || m.Durable != n+1 || m.InFlight != 0 ||
					m.CommitBytes == 0 {
					t.Errorf("metrics %+v", m)
				}
				must.OK(t, j.Close())
			})
		}
	}
}

func TestRecorderStopsWithWhatIsInTheRing(t *testing.T) {
	j := openNew(t, "j", strict(t, vfs.NewMem()))
	r := newRig(t, j, 1024, flow{seed: 2}, RecorderOptions{Idle: ring.Park, IdleSet: true})
	r.send(100)
	r.rec.Stop()
	r.run()
	must.OK(t, <-r.done)
	expectHistory(t, j, &flow{seed: 2}, 100)
	must.OK(t, j.Close())
}

func TestRecorderFailsStopAndLetsTheMatcherGo(t *testing.T) {
	toggle := &errorfs.Toggle{Injector: errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind == errorfs.OpFileSyncData || op.Kind == errorfs.OpFileSync {
			return syscall.EIO
		}
		return nil
	})}
	fatals := newFatals()
	mem := vfs.NewCrashableMem()
	j := openNew(t, "j", Options{FS: errorfs.Wrap(mem, toggle), Fatal: fatals.fatal})
	f := flow{seed: 2}
	r := newRig(t, j, 64, f, RecorderOptions{BlockCommands: 16})
	r.run()
	r.send(100)
	until(t, "durable", func() bool { return r.desk.durable.Load() == 100 })
	toggle.On()
	r.send(2000) // many times the ring: the recorder goes on taking events
	<-fatals.hit
	r.rec.Stop()
	must.Be(t, <-r.done, ErrPoisoned)
	if err := r.desk.failed.Load(); err == nil || !errors.Is(*err, syscall.EIO) {
		t.Errorf("the callers that wait were told %v", err)
	}
	if n := fatals.count(); n != 1 {
		t.Errorf("the Fatal hook was called %d times", n)
	}
	acked := r.desk.durable.Load()
	if acked != 100 {
		t.Errorf("%d acked after the sync failed", acked)
	}
	must.Get(recovered(mem.CrashClone(vfs.CrashCloneCfg{}), "boot-2", f, acked, 2100))(t)
}

// TestRecorderRefusesABrokenEngine plants a gap in the sequence.
func TestRecorderRefusesABrokenEngine(t *testing.T) {
	fatals := newFatals()
	j := openNew(t, "j", Options{FS: vfs.NewMem(), Fatal: fatals.fatal})
	r := newRig(t, j, 64, flow{seed: 2}, RecorderOptions{})
	r.toy.applied = 5
	r.send(1)
	r.rec.Stop()
	r.run()
	err := <-r.done
	must.Be(t, err, ErrGap)
	must.Be(t, err, ErrPoisoned)
}

// TestRecorderDoesNotAllocate goes the whole way from the ring to the store and allocates nothing
// there. It does not count what the store and the runtime allocate meanwhile: a flush may or may
// not fall into these commits.
func TestRecorderDoesNotAllocate(t *testing.T) {
	t.Run("from the store", func(t *testing.T) {
		recorderAllocations(t, Options{Fatal: func(err error) { t.Error(err) }})
	})
	t.Run("from the tail", func(t *testing.T) { recorderAllocations(t, onDisk(t, DurabilityOS)) })
}

func recorderAllocations(t *testing.T, o Options) {
	j := openNew(t, t.TempDir(), o)
	f := flow{seed: 9}
	r := newRig(t, j, 1<<15, f, RecorderOptions{})
	const n = 4096
	commands := make([]matcher.Command, n)
	for i := range commands {
		commands[i] = f.command(uint64(i + 1))
		commands[i].Type = matcher.OrderCancel
	}
	round := func() { // one block: the recorder's own loop body, on this goroutine
		for i := range commands {
			r.toy.applied++
			commands[i].InputSeq = r.toy.applied
			ev := r.toy.slot(&r.outlet)
			*ev = matcher.Event{Kind: matcher.EventApplied, Flags: matcher.EventFirst | matcher.EventLast}
			*ev.Cmd() = commands[i]
		}
		r.out.PublishTo(r.outlet.Next)
		for {
			lo, hi := r.out.Ready(recorderBatch)
			if lo == hi {
				break
			}
			for pos := lo; pos < hi; pos++ {
				r.rec.record(r.out.At(pos))
			}
			r.out.Release(hi)
			if j.tail != nil {
				r.rec.publish()
			}
		}
		r.outlet.Limit = r.out.Limit()
		r.rec.cut()
		must.OK(t, r.rec.commits[len(r.rec.commits)-1].Wait())
	}
	r.outlet.Limit = r.out.Limit()
	for range 30 {
		round()
	}
	for where, made := range allocatedHere(t, func() {
		for range 50 {
			round()
		}
	}) {
		t.Errorf("50 commits of %d commands: %d objects allocated in %s", n, made, where)
	}
	must.OK(t, j.Close())
}

func TestBlocksAreTheRecordersBytes(t *testing.T) {
	j := openNew(t, "j", strict(t, vfs.NewMem()))
	f := flow{seed: 4, idsEvery: 2}
	r := newRig(t, j, 1024, f, RecorderOptions{})
	r.send(50)
	r.rec.Stop()
	r.run()
	must.OK(t, <-r.done)
	var got []byte
	must.OK(t, j.Fills(1, func(fills []matcher.Fill) error {
		got = append(got, fillBytesOf(fills)...)
		return nil
	}))
	want := (&flow{seed: 4}).block(&Block{}, 50)
	if !bytes.Equal(got, want.fills) {
		t.Errorf("fills differ")
	}
	must.OK(t, j.Close())
}

// TestCommandIsCommittedWhole publishes the events of a command one by one: a
// commit with half of its fills would be a different history.
func TestCommandIsCommittedWhole(t *testing.T) {
	j := openNew(t, "j", strict(t, vfs.NewMem()))
	f := flow{seed: 9}
	first := uint64(1)
	for !f.trades(first) {
		first++
	}
	r := newRig(t, j, 64, f, RecorderOptions{})
	r.run()
	r.send(int(first - 1))
	until(t, "durable", func() bool { return r.desk.durable.Load() == first-1 })
	c := f.command(first)
	r.outlet.Limit = r.out.Limit()
	start := r.outlet.Next
	r.toy.apply(&c, &r.outlet)
	for pos := start + 1; pos <= r.outlet.Next; pos++ {
		if j.Applied() != first-1 {
			t.Fatal("half a command was handed to the store")
		}
		r.out.PublishTo(pos)
		until(t, "event taken", func() bool { return r.rec.Events() == pos })
	}
	until(t, "durable", func() bool { return r.desk.durable.Load() == first })
	r.rec.Stop()
	must.OK(t, <-r.done)
	expectHistory(t, j, &f, first)
	must.OK(t, j.Close())
}

// TestTruncatedTailIsAFailedDisk truncates the mapped file while the recorder writes to it.
func TestTruncatedTailIsAFailedDisk(t *testing.T) {
	fatals, dir := newFatals(), t.TempDir()
	o := onDisk(t, DurabilityOS)
	o.Fatal = fatals.fatal
	j := openNew(t, dir, o)
	r := newRig(t, j, 64, flow{seed: 2}, RecorderOptions{})
	r.run()
	r.send(10)
	until(t, "answered", func() bool { return r.desk.durable.Load() == 10 })
	must.OK(t, os.Truncate(filepath.Join(dir, tailName), 0))
	r.send(500) // many times the ring: the recorder goes on taking events
	<-fatals.hit
	r.rec.Stop()
	must.Be(t, <-r.done, errTailFault)
	if n := r.desk.durable.Load(); n != 10 {
		t.Errorf("%d answered", n)
	}
	must.Be(t, j.Close(), ErrPoisoned)
}

// A recorder may be made as soon as the last commit before it has ended. For the race detector.
func TestRecorderBeginsBehindTheLastCommit(t *testing.T) {
	for range 20 {
		j := openNew(t, "j", strict(t, vfs.NewMem()))
		f := &flow{seed: 1}
		appendAll(t, j, f, 3)
		r := newRig(t, j, 64, *f, RecorderOptions{})
		r.run()
		r.send(5)
		until(t, "the commands", func() bool { head, _ := j.Head(); return head == 8 })
		r.rec.Stop()
		must.OK(t, <-r.done)
		must.OK(t, j.Close())
	}
}
