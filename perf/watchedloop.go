package perf

import (
	"sync/atomic"
	"time"
	"unsafe"

	"posttrade/matcher"
	"posttrade/ring"
)

// watchedLoop decides an engine's commands in the place of matcher.Stage: the same turns over the
// same rings, but it reads the clock in each turn. The time between two turns is a gap, except when
// the loop went to sleep because there was nothing to decide.
//
// It has a reading of the clock in each turn that the stage does not have, and never lends its work
// to a submitting goroutine as the stage does. TestWatchedLoopDecidesLikeTheStage holds its events
// to the stage's.
type watchedLoop struct {
	// engine, in, out and outlet belong to the goroutine of Run.
	engine *matcher.Engine
	in     *ring.MPSC[matcher.Command]
	out    *ring.Fanout[matcher.Event]
	outlet matcher.Outlet
	idle   *ring.Idler
	room   *ring.Idler
	// parks is how often idle had gone to sleep up to the last turn: a higher count says that the loop
	// slept.
	parks uint64
	cpu   int

	// stopping is written by Stop.
	stopping atomic.Bool
	// thread is the kernel's number of the thread of the goroutine in Run, 0 before it. Run writes it.
	thread atomic.Int64
	// gaps is owned by Run; others read it when Run has returned.
	gaps *gapLog
}

// watch connects an engine to its rings. The stage that ran it before must have ended, because only
// one goroutine may decide. idle is how the loop waits; cpu is the core of the loop's thread, -1
// for any.
func watch(engine *matcher.Engine, in *ring.MPSC[matcher.Command], out *ring.Fanout[matcher.Event],
	idle ring.Strategy, cpu int) *watchedLoop {
	l := &watchedLoop{
		engine: engine, in: in, out: out, cpu: cpu, gaps: newGapLog(),
		idle: ring.NewIdler(idle, in.Waiter()), room: ring.NewIdler(ring.Yield, nil),
	}
	l.outlet = matcher.Outlet{Slots: out.Slots(), Mask: out.Mask(), Next: out.Published(),
		Limit: out.Limit(), More: l.more}
	return l
}

// Run decides until Stop, on the calling goroutine, and keeps that goroutine's thread locked. A
// core that is not there is an error; nothing was decided then. It returns when the input ring is
// empty after Stop.
func (l *watchedLoop) Run() error {
	if err := l.idle.Lock(l.cpu); err != nil {
		return err
	}
	l.thread.Store(threadID())
	l.gaps.begin(time.Now())
	for {
		lo, hi := l.in.Ready(stageBatch)
		if lo == hi && l.stopping.Load() && l.in.Empty() {
			return nil
		}
		l.turn(lo, hi)
		if parks := l.idle.Stats().Parks; parks != l.parks {
			l.parks = parks
			l.gaps.rested()
			continue
		}
		l.gaps.turn(int(hi - lo))
	}
}

// turn decides the commands that are there, and publishes their events. A batch that goes over the
// end of the ring's memory is decided in two pieces.
func (l *watchedLoop) turn(lo, hi int64) {
	if lo == hi {
		l.idle.Idle(l.in)
		return
	}
	l.idle.Reset()
	capacity := int64(l.in.Cap())
	for slot := lo; slot < hi; {
		n := min(hi-slot, capacity-slot&(capacity-1))
		l.engine.ApplyBatch(unsafe.Slice(l.in.At(slot), int(n)), &l.outlet)
		slot += n
	}
	l.out.PublishTo(l.outlet.Next)
	l.in.Release(hi)
}

// more publishes the events so far and waits for room in the output ring.
//
// The engine calls it in the middle of a batch. The wait is part of the gap, and marks it as full.
func (l *watchedLoop) more(o *matcher.Outlet) {
	l.out.PublishTo(o.Next)
	for o.Limit = l.out.Limit(); o.Limit <= o.Next; o.Limit = l.out.Limit() {
		l.gaps.full = true
		l.room.Idle(nil) // it never parks, so it needs no ring to ask
	}
}

// Stop tells Run to return when every command that was handed in is decided.
func (l *watchedLoop) Stop() { l.stopping.Store(true) }

// From gapLooked on, the loop asks the kernel about a gap, so that what the kernel did to the
// thread is charged to the right gap. It keeps a gap that is longer than gapKept, which is more
// than a full batch takes, and longer than the gaps that it dropped for lack of room.
const (
	gapLooked = 10 * time.Microsecond
	gapKept   = 50 * time.Microsecond
)

// gap is a time between two turns. The last three fields are differences of the kernel's counts for
// the thread since it was asked last, which is at the end of the last gap longer than gapLooked.
type gap struct {
	// end is since the log's start, took is the gap's length.
	end  time.Duration
	took time.Duration
	// decided is the number of commands in it.
	decided int
	// full says that it waited for room in the output ring.
	full bool
	// preempted is how often the kernel gave the thread's core to another one, slept how often the
	// thread gave it away itself, faults how often it touched memory that was not there.
	preempted int64
	slept     int64
	faults    int64
}

// maxGaps is the number of gaps that are kept. When there is no room, the shorter ones are dropped,
// so that the longest are always explained. Their memory is made before the loop starts, so that
// the loop does not allocate.
const maxGaps = 1 << 17

// gapLog is the log of the loop's thread. The loop writes it; other goroutines read it when the
// loop has ended.
type gapLog struct {
	// start is when the log began; last is the moment of the last turn, since then.
	start time.Time
	last  time.Duration
	// all has every gap, kept or not.
	all jitter
	// full says that the turn under way has waited for room.
	full bool
	// gaps are all gaps longer than kept.
	gaps []gap
	// kept is gapKept, or more when there was no room.
	kept time.Duration
	// lost is the number of gaps longer than gapKept, but not longer than kept.
	lost int
	// usage is the kernel's counts when the log asked last.
	usage threadUsage
}

func newGapLog() *gapLog { return &gapLog{gaps: make([]gap, 0, maxGaps), kept: gapKept} }

func (l *gapLog) begin(start time.Time) {
	l.start = start
	l.ask()
	l.last = time.Since(start)
}

// ask reads the kernel's counts for the calling thread.
func (l *gapLog) ask() {
	l.usage = usageOfThread()
}

// rested starts a new gap after a sleep that the loop asked for.
func (l *gapLog) rested() {
	l.ask()
	l.last = time.Since(l.start)
	l.all.took = l.last
}

// turn notes the time since the last turn, in which so many commands were decided. Up to the first
// bound of jitter it is no gap. Asking the kernel takes a system call, so only longer gaps pay for
// it.
func (l *gapLog) turn(decided int) {
	at := time.Since(l.start)
	took := at - l.last
	l.all.took, l.last = at, at
	if took <= jitterBounds[0] {
		return
	}
	l.all.add(took)
	if took > gapLooked {
		l.look(gap{end: at, took: took, decided: decided, full: l.full})
		l.full = false
		l.last = time.Since(l.start) // the time of the look belongs to no gap
	}
}

// look asks the kernel what it has done to the thread, and keeps a long gap.
func (l *gapLog) look(g gap) {
	before := l.usage
	l.ask()
	if g.took <= gapKept {
		return
	}
	if g.took > l.kept && len(l.gaps) == cap(l.gaps) {
		l.thin()
	}
	if g.took <= l.kept {
		l.lost++
		return
	}
	g.preempted = l.usage.preempted - before.preempted
	g.slept = l.usage.slept - before.slept
	g.faults = l.usage.faults - before.faults
	l.gaps = append(l.gaps, g)
}

// thin drops the gaps that are not longer than the mean; it never drops the longest.
func (l *gapLog) thin() {
	longest, sum := 0, time.Duration(0)
	for i := range l.gaps {
		sum += l.gaps[i].took
		if l.gaps[i].took > l.gaps[longest].took {
			longest = i
		}
	}
	l.kept = sum / time.Duration(len(l.gaps))
	long := l.gaps[:0]
	for i := range l.gaps {
		if l.gaps[i].took > l.kept || i == longest {
			long = append(long, l.gaps[i])
		}
	}
	l.lost += len(l.gaps) - len(long)
	l.gaps = long
}
