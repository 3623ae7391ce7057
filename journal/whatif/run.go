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
	chunkCommands = 1024
	chunkEvents   = 4096
	chunksAround  = 6
)

// Options of Run.
type Options struct {
	From, To uint64 // both inclusive
	Changes  Changes
	Report   func(Difference) error
	Progress func(inputSeq uint64) // may be nil; called from Run's goroutine
}

// chunk is a part of the history on its way through the stages.
type chunk struct {
	cmds            []matcher.Command
	before, after   []matcher.Event // of the baseline, and of the supposed engine
	items           []item
	supposed        []matcher.Command
	plain           bool // the supposed engine gets cmds as they are, and items is empty
	window, window2 *window
}

// window is an outlet that keeps all events of a chunk.
type window struct{ matcher.Outlet }

func newWindow() *window {
	w := &window{}
	w.use(make([]matcher.Event, chunkEvents))
	w.More = func(*matcher.Outlet) {
		w.use(append(make([]matcher.Event, 0, 2*len(w.Slots)), w.Slots...)[:2*len(w.Slots)])
	}
	return w
}

func (w *window) use(slots []matcher.Event) {
	w.Slots, w.Mask, w.Limit = slots, int64(len(slots)-1), int64(len(slots))
}

// run is one comparison.
type run struct {
	o        Options
	h        *asof.History
	genesis  *matcher.Genesis
	baseline *matcher.Engine
	supposed *matcher.Engine
	changer  *changer
	names    names
	next     uint64 // the number of the next order at the beginning
	compare  comparer
}

// Run decides the range anew and reports the differences, in the order of the history. The result
// is of what was compared, also when ctx ends first: the error is then that of ctx.
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
	if r.supposed, err = copyOf(r.genesis, r.baseline); err != nil {
		return res, err
	}
	defer func() { err = errors.Join(err, r.supposed.Close()) }()
	return r.run(ctx)
}

// copyOf makes another engine in the same state.
func copyOf(g *matcher.Genesis, e *matcher.Engine) (*matcher.Engine, error) {
	if e.AppliedSeq() == 0 {
		return matcher.New(g)
	}
	r, w := io.Pipe()
	go func() { w.CloseWithError(e.WriteSnapshot(w)) }()
	to, err := matcher.ReadSnapshot(g, r)
	if err != nil {
		err = errors.Join(err, r.CloseWithError(err))
	}
	return to, err
}

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
	decided, changed := make(chan *chunk, 1), make(chan *chunk, 1)
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
	res := r.compare.result
	res.From, res.To = r.o.From, done
	res.Accounts = profits(started, r.baseline, r.supposed)
	res.Unknown = r.o.Changes.unknown(r.baseline)
	return res, errors.Join(failed, readErr)
}

// leave takes the open orders of the accounts that are left out off the supposed book.
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

// read takes the history apart and has the baseline decide it.
func (r *run) read(ctx context.Context, free <-chan *chunk, out chan<- *chunk) error {
	last := int64(0)
	err := r.h.Journal().Commands(ctx, r.o.From, r.o.To,
		func(cmds []matcher.Command) error {
			for len(cmds) > 0 {
				n := min(len(cmds), chunkCommands)
				c := <-free
				c.cmds = append(c.cmds[:0], cmds[:n]...)
				if err := r.decide(c); err != nil {
					return err
				}
				last = max(last, timeOf(&cmds[n-1]))
				out <- c
				cmds = cmds[n:]
			}
			return nil
		})
	if err == nil {
		c := <-free
		c.cmds, c.before, c.plain = c.cmds[:0], nil, false
		c.items = r.changer.remainder(c.items[:0], last)
		out <- c
	}
	return err
}

// decide has the baseline decide a chunk and changes its commands for the supposed engine. Before a
// command with a verdict of the gate the baseline is asked what it would decide itself.
func (r *run) decide(c *chunk) error {
	w := c.window
	w.Next, c.items = 0, c.items[:0]
	apply := func(from, to int) error {
		n, err := r.baseline.ReplayBatch(c.cmds[from:to], &w.Outlet)
		if err != nil {
			err = fmt.Errorf("whatif: sequence %d: %w", c.cmds[from+n].InputSeq, err)
		}
		return err
	}
	if c.plain = r.changer.plain(c.cmds); c.plain {
		err := apply(0, len(c.cmds))
		c.before = w.Slots[:w.Next]
		return err
	}
	from := 0
	for i := range c.cmds {
		cmd := &c.cmds[i]
		anew := false
		if verdict(cmd) {
			if err := apply(from, i); err != nil {
				return err
			}
			from = i
			anew = r.baseline.Judge(cmd).Reason == matcher.RiskReason(cmd.OrderRef)
		}
		c.items = r.changer.add(c.items, cmd, anew)
	}
	err := apply(from, len(c.cmds))
	c.before = w.Slots[:w.Next]
	return err
}

// verdict reports a record that carries a refusal of the gate.
func verdict(c *matcher.Command) bool {
	return c.OrderRef != 0 && c.TemplateID == matcher.TemplateCommand &&
		(c.Type == matcher.OrderNew || c.Type == matcher.TradeNew)
}

// suppose has the supposed engine decide a chunk.
func (r *run) suppose(c *chunk) {
	w := c.window2
	w.Next = 0
	if c.plain {
		r.supposed.ApplyBatch(c.cmds, &w.Outlet)
		c.after = w.Slots[:w.Next]
		return
	}
	c.supposed = c.supposed[:0]
	for i := range c.items {
		c.supposed = append(c.supposed, c.items[i].cmd)
	}
	if !r.changer.reorder {
		r.supposed.ApplyBatch(c.supposed, &w.Outlet)
		c.after = w.Slots[:w.Next]
		return
	}
	// The numbers of orders differ from the history's: every command is given those of the supposed
	// engine.
	r.names.note(c.before)
	for i := range c.supposed {
		r.names.translate(&c.supposed[i])
		at := w.Next
		r.supposed.Apply(&c.supposed[i], &w.Outlet)
		r.names.learn(c.items[i].was, &w.Slots[at])
	}
	c.after = w.Slots[:w.Next]
	r.names.restore(c.after)
}
