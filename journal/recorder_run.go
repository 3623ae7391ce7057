package journal

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"runtime/pprof"

	"posttrade/matcher"
	"posttrade/ring"
)

// Observer follows the events as they are recorded, before they are durable: views, blotter, the
// gate's image. clientID is that of the event's command, nil for none, and valid only during the
// call. Called by the recorder.
type Observer interface {
	Observe(ev *matcher.Event, clientID []byte)
}

// Answers receives what callers wait for. The recorder calls Observe and ClientID. The committer,
// or with a tail the recorder or a writer of the log, calls Durable in order. The goroutine that
// meets the failure calls Fail, once.
//
//   - ClientID returns the client's own id for the command that an event's Ref stands for; nil or
//     empty for none. The slice need hold only until the command's last event has been observed.
//   - Durable gets the inputSeq up to which answers may be given. It must not block: the next
//     answers, or the next commits, wait behind it.
type Answers interface {
	Observe(ev *matcher.Event)
	ClientID(ref uint64) []byte
	Durable(inputSeq uint64)
	Fail(err error)
}

// DefaultBlockCommands is the most commands of a block that the recorder cuts: half of what the
// format allows (MaxBlockCommands).
const DefaultBlockCommands = 8192

// RecorderOptions of NewRecorder. The zero value is adaptive, not pinned, with blocks of
// DefaultBlockCommands.
type RecorderOptions struct {
	Idle          ring.Strategy
	IdleSet       bool // use Idle; otherwise adaptive
	CPU           int  // used when Pinned
	Pinned        bool
	BlockCommands int // at most MaxBlockCommands; 0 = DefaultBlockCommands

	// Flush, if set, is called after every batch of events and whenever there are none: a reader that
	// asks the observers' own goroutine for something gets it then. It reports that there is more to
	// do. Wake makes an idle recorder call it.
	Flush func() (more bool)
}

// NewRecorder makes the gating reader of out. The journal must have its genesis and no other
// appender; the ring's first event must be that of the command after the head. It sets the
// journal's callbacks, so it comes before the first commit, and there is one recorder to a journal.
// Observers are called in the given order, each for every event.
func NewRecorder(j *Journal, out *ring.Fanout[matcher.Event], answers Answers, o RecorderOptions,
	observers ...Observer) *Recorder {
	idle := ring.Adaptive
	if o.IdleSet {
		idle = o.Idle
	}
	r := &Recorder{
		j: j, out: out, answers: answers, observers: observers, flush: o.Flush,
		idler: ring.NewIdler(idle, out.Waiter()), maxBlock: DefaultBlockCommands, cpu: -1,
	}
	r.idler.Lends(&r.lease)
	if o.Pinned {
		r.cpu = o.CPU
	}
	if o.BlockCommands > 0 {
		r.maxBlock = min(o.BlockCommands, MaxBlockCommands)
	}
	j.OnDurable(answers.Durable, answers.Fail)
	j.onRoom = r.room
	wake := r.Wake
	j.bound.reopened.Store(&wake)
	return r
}

// Run records until Stop, on its own locked thread. Then it hands over what is left and waits until
// that is durable. The error is the journal's poison, or that the thread could not be pinned. After
// a failure Run goes on until Stop and drops events, because the matcher waits for this reader.
// Once.
func (r *Recorder) Run() error {
	if err := r.idler.Lock(r.cpu); err != nil {
		return fmt.Errorf("journal: recorder: %w", err)
	}
	pprof.Do(context.Background(), pprof.Labels("stage", "recorder"), func(context.Context) {
		if !r.loopMapped() {
			r.loop() // drops events until Stop
		}
	})
	if r.failed == nil && !r.open && r.block.Commands() > 0 {
		r.cut()
	}
	if n := len(r.commits); r.failed == nil && n > 0 {
		if err := r.commits[n-1].Wait(); err != nil {
			r.failed = err
		}
	}
	return r.failed
}

// loopMapped runs loop and treats a fault of the tail's memory as a failure of the disk. It reports
// whether Stop has ended the loop.
func (r *Recorder) loopMapped() (ended bool) {
	return r.onFault(func() bool { r.loop(); return true })
}

// onFault runs some work of the recorder. Another process may have truncated the file below the
// tail, or a page of it may be unreadable: such a fault is a failure of the disk, and onFault then
// returns false. Any other panic goes on. The setting is the goroutine's, so a driver needs it as
// much as Run's thread.
func (r *Recorder) onFault(work func() bool) (done bool) {
	old := debug.SetPanicOnFault(true)
	defer debug.SetPanicOnFault(old)
	defer func() {
		met := recover()
		if met == nil {
			return
		}
		fault, ok := met.(interface{ Addr() uintptr })
		if !ok {
			panic(met)
		}
		r.fail(fmt.Errorf("journal: fault at %#x: %w", fault.Addr(), errTailFault))
	}()
	return work()
}

// errTailFault replaces a fault of mapped memory.
var errTailFault = errors.New("mapped file failed")

// Stop makes Run end once the ring is empty: stop the matcher first. It does not wait for Run. Any
// goroutine.
func (r *Recorder) Stop() {
	r.stop.Store(1)
	r.out.Waiter().Wake()
}

// Wake makes an idle recorder check for work once. Any goroutine.
func (r *Recorder) Wake() { r.out.Waiter().Wake() }

// Events is the number of events taken off the ring. Any goroutine.
func (r *Recorder) Events() int64 { return r.events.Load() }

// fail ends recording. A block that does not continue the history is a bug of the engine, and as
// final as a broken disk: it poisons the journal, which ends the process.
func (r *Recorder) fail(err error) {
	if !errors.Is(err, ErrPoisoned) {
		err = r.j.latch.Poison(err)
	}
	r.failed = err
}
