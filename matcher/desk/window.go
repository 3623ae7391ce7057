package desk

import (
	"errors"
	"runtime"

	"posttrade/matcher"
)

// Window hands in a stream of commands from one goroutine of this process: a
// replayed file, a load. It fills tickets of batch commands and keeps up to
// depth of them on their way; a full ring or a busy desk makes it wait.
type Window struct {
	desk     *Desk
	batch    int
	depth    int
	answered func(*Answer) // may be nil
	current  *Ticket       // being filled
	filled   int
	waiting  []*Ticket // in order of submission
	err      error     // the first error; it stays
}

// NewWindow returns a Window. answered is called on the caller's goroutine with
// every answer, in the order of the commands; an Answer is valid during the call.
func (d *Desk) NewWindow(batch, depth int, answered func(*Answer)) *Window {
	batch = min(max(batch, 1), MaxBatch)
	return &Window{desk: d, batch: batch, depth: max(depth, 1), answered: answered}
}

// Next returns the place to write the next command to, before the next call. An
// error ends the stream: what is on its way is given up, its outcome unknown.
func (w *Window) Next() (*matcher.Command, error) {
	if w.filled == w.batch {
		w.submit()
	}
	if w.current == nil {
		w.acquire()
	}
	if w.err != nil {
		return nil, w.err
	}
	w.filled++
	return w.current.Command(w.filled - 1), nil
}

// Flush submits what is filled in and waits for every answer.
func (w *Window) Flush() error {
	if w.filled > 0 {
		w.current.Shorten(w.filled)
		w.submit()
	}
	for len(w.waiting) > 0 {
		w.finish()
	}
	return w.err
}

// acquire takes the next ticket to fill.
func (w *Window) acquire() {
	for len(w.waiting) >= w.depth {
		w.finish()
	}
	for w.err == nil {
		t, err := w.desk.Acquire(w.batch)
		if err == nil {
			w.current, w.filled = t, 0
			return
		}
		w.retry(err, ErrBusy)
	}
}

func (w *Window) submit() {
	t := w.current
	w.current, w.filled = nil, 0
	for w.err == nil {
		err := t.Submit()
		if err == nil {
			w.waiting = append(w.waiting, t)
			return
		}
		w.retry(err, ErrFull)
	}
	t.Release()
}

// retry makes room after a refusal that passes, and fails on any other.
func (w *Window) retry(err, passing error) {
	switch {
	case !errors.Is(err, passing):
		w.fail(err)
	case len(w.waiting) > 0:
		w.finish()
	default:
		runtime.Gosched() // others have filled ring or desk
	}
}

// finish waits for the oldest ticket.
func (w *Window) finish() {
	t := w.waiting[0]
	if err := t.Wait(0); err != nil {
		w.fail(err)
		return
	}
	if w.answered != nil {
		for i := range t.Len() {
			w.answered(t.Answer(i))
		}
	}
	t.Release()
	w.waiting = append(w.waiting[:0], w.waiting[1:]...)
}

func (w *Window) fail(err error) {
	w.err = err
	for _, t := range w.waiting {
		t.Release()
	}
	w.waiting = nil
}
