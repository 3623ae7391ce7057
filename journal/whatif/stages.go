package whatif

import (
	"context"
	"fmt"

	"posttrade/matcher"
)

// chunk is a part of the history on its way through the stages. One stage owns it at a time: the
// channels hand it on, and free gives it back with its memory.
type chunk struct {
	// cmds are the history's commands, a copy: the journal takes its slices back. The chunk behind the
	// last one has none, only what remainder gives.
	cmds []matcher.Command
	// before are the events of the baseline, after those of the supposed engine. They lie in the
	// windows.
	before, after []matcher.Event
	// items are the changed commands, with what the comparison needs; supposed are the commands of the
	// items alone, side by side, as the engine takes them.
	items    []item
	supposed []matcher.Command
	// plain: the supposed engine gets cmds as they are, and items is empty.
	plain bool
	// window is the outlet of the baseline, window2 that of the supposed engine.
	window, window2 *window
}

// window is an outlet that keeps all events of a chunk: when it is full it doubles. So events can
// be compared after the whole chunk was decided, and a position of the outlet is an index of Slots.
type window struct{ matcher.Outlet }

func newWindow() *window {
	w := &window{}
	w.use(make([]matcher.Event, chunkEvents))
	w.More = func(*matcher.Outlet) {
		w.use(append(make([]matcher.Event, 0, 2*len(w.Slots)), w.Slots...)[:2*len(w.Slots)])
	}
	return w
}

// use makes slots the window. Their number is a power of two, for the mask.
func (w *window) use(slots []matcher.Event) {
	w.Slots, w.Mask, w.Limit = slots, int64(len(slots)-1), int64(len(slots))
}

// read takes the history apart and has the baseline decide it. It blocks while no chunk is free. At
// the end of the range it sends one chunk more, with what the changer still holds back; after an
// error or the end of ctx it does not, because that would be compared too early.
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
//
// An error of the baseline means that the journal holds a record that its engine does not accept;
// it names the sequence.
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

// verdict reports a record that carries a refusal of the gate. Only orders and market trades can;
// in other commands OrderRef has another meaning (matcher.Command lists them).
func verdict(c *matcher.Command) bool {
	return c.OrderRef != 0 && c.TemplateID == matcher.TemplateCommand &&
		(c.Type == matcher.OrderNew || c.Type == matcher.TradeNew)
}

// suppose has the supposed engine decide a chunk.
//
// It has no errors: a command that does not fit is refused by the engine like any other.
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
