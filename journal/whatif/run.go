package whatif

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"posttrade/journal/asof"
	"posttrade/matcher"
)

const (
	// The size of a chunk, and how many wait between two stages. A stage that has nothing to do puts
	// its thread to sleep, and to wake a thread takes as long as to decide tens of commands: chunks
	// are large and the queues are long, so that a stage seldom waits.
	chunkCommands = 4096
	chunksQueued  = 4
	// A window of events holds two events a command before it has to grow.
	chunkEvents = 2 * chunkCommands
	// chunksAround bounds how far the reader runs ahead, and so the memory: a chunk for each of the
	// three stages, the two queues, and one that lets the reader go on while the others are taken.
	// All windows together take 24 MiB, until one has to grow.
	chunksAround = 3 + 2*chunksQueued + 1
)

// Options of Run.
type Options struct {
	// The range, both inclusive: 1 <= From <= To <= the durable head.
	From, To uint64
	// Changes are what is supposed to be different.
	Changes Changes
	// Report gets every difference, from Run's goroutine, in the order of the history; a delayed
	// command's may come later. It must not be nil. Its error ends the run, and Run returns it.
	Report func(Difference) error
	// Progress gets the last sequence compared, after each chunk, from Run's goroutine. It may be nil.
	Progress func(inputSeq uint64)
}

// run is one comparison. The goroutine that reads owns baseline and changer, the one that supposes
// owns supposed and names, and Run's own goroutine owns compare. Before the stages start and after
// they have ended, all of it belongs to Run.
type run struct {
	o       Options
	h       *asof.History
	genesis *matcher.Genesis
	// baseline decides the history as it was; supposed decides it with the changes.
	baseline *matcher.Engine
	supposed *matcher.Engine
	changer  *changer
	names    names
	// next is the number of the next order before the range. Numbers below it are the same in both.
	next    uint64
	compare comparer
}

// Run decides the range anew and reports the differences.
//
//   - Shape: the baseline starts from the state before From, the supposed engine from a copy of it.
//     Nothing is written, and the running engine is not used.
//   - Errors: a range that is not within 1 to the head; damage that the journal finds; Report's
//     error; that of ctx. Result is of what was compared, also when ctx ends first. Accounts and
//     Unknown are then of the states at which the engines stopped, which may be some chunks behind
//     To.
//   - Cost: the memory of two engines, about two decisions a command, and the replay from the
//     nearest snapshot before From. Blocks; any goroutine may call it, the caller bounds how many
//     at a time.
func Run(ctx context.Context, h *asof.History, o Options) (res Result, err error) {
	if head := h.Head(); o.From == 0 || o.From > o.To || o.To > head {
		return res, fmt.Errorf("the range %d to %d is not within 1 to %d, the head", o.From, o.To, head)
	}
	r := &run{o: o, h: h}
	text, _ := h.Journal().Genesis()
	if r.genesis, err = matcher.ParseGenesis(text); err != nil {
		return res, err
	}
	base, err := h.Shadow(ctx, o.From-1)
	if err != nil {
		return res, err
	}
	defer func() { err = errors.Join(err, base.Close()) }()
	r.baseline = base.Engine().(*matcher.Engine)
	r.next = base.Views().(asof.Image).NextRef()
	if r.baseline.AppliedSeq() == 0 {
		r.supposed, err = matcher.New(r.genesis)
	} else {
		r.supposed, err = copyOf(r.genesis, r.baseline.WriteSnapshot)
	}
	if err != nil {
		return res, err
	}
	defer func() { err = errors.Join(err, r.supposed.Close()) }()
	return r.run(ctx)
}

// copyOf makes another engine in the state that snapshot writes. The state goes through a pipe, so
// it is never in memory as a file. snapshot runs on a goroutine of its own, which has ended when
// copyOf returns: the caller may then close the engine that it reads.
func copyOf(g *matcher.Genesis, snapshot func(io.Writer) error) (*matcher.Engine, error) {
	r, w := io.Pipe()
	written := make(chan struct{})
	go func() {
		defer close(written)
		w.CloseWithError(snapshot(w))
	}()
	to, err := matcher.ReadSnapshot(g, r)
	r.Close() // what is not read is not wanted: snapshot fails and ends
	<-written
	return to, err
}

// run starts the stages and compares what they hand on. A stage that fails stops reading; the
// others then run out of chunks and end. The loop goes on taking chunks after an error, because the
// stages wait for free ones and must end before the engines may be closed.
func (r *run) run(ctx context.Context) (Result, error) {
	r.changer = newChanger(&r.o.Changes)
	r.names = newNames(r.next)
	r.compare = newComparer(r.o.Report, r.changer.reorder, r.baseline)
	started := booksOf(r.baseline)
	for limit, value := range r.o.Changes.Limits {
		r.supposed.Suppose(limit, value)
	}
	r.leave()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	decided, changed := make(chan *chunk, chunksQueued), make(chan *chunk, chunksQueued)
	free := make(chan *chunk, chunksAround)
	for range chunksAround {
		free <- &chunk{window: newWindow(), window2: newWindow()}
	}
	var stages sync.WaitGroup
	var readErr error
	stages.Go(func() {
		defer close(decided)
		readErr = r.read(ctx, free, decided)
	})
	stages.Go(func() {
		defer close(changed)
		for c := range decided {
			r.suppose(c)
			changed <- c
		}
	})
	done, failed := r.o.From-1, error(nil)
	for c := range changed {
		if failed == nil {
			if failed = r.compare.chunk(c); failed != nil {
				cancel(failed)
			}
			if n := len(c.cmds); n > 0 {
				done = c.cmds[n-1].InputSeq
			}
			if r.o.Progress != nil {
				r.o.Progress(done)
			}
		}
		free <- c
	}
	stages.Wait()
	if failed != nil && errors.Is(readErr, context.Canceled) {
		readErr = nil // reading ended because of failed, which is no stop that the caller asked for
	}
	res := r.compare.result
	res.From, res.To = r.o.From, done
	res.Accounts = profits(started, r.baseline, r.supposed)
	res.Unknown = r.o.Changes.unknown(r.baseline)
	return res, errors.Join(failed, readErr)
}

// leave takes the open orders of the accounts that are left out off the supposed book. The cancels
// are collected first: EachOrder must not see the engine change. Their events are dropped, because
// they come before the range.
func (r *run) leave() {
	var cancels []matcher.Command
	r.supposed.EachOrder(func(o matcher.OrderInfo) bool {
		if o.Open() && r.changer.accounts[o.AccountID] {
			c := matcher.NewCommand(matcher.OrderCancel)
			c.OrderRef, c.AccountID = o.Ref, o.AccountID
			cancels = append(cancels, c)
		}
		return true
	})
	out := matcher.NewOutlet(1024, func([]matcher.Event) {})
	for i := range cancels {
		r.supposed.Apply(&cancels[i], out)
	}
}
