package replay

import (
	"fmt"
	"io"
	"slices"
	"time"

	"posttrade/app/settings"
	"posttrade/perf/orderflow"
)

// lobsterCheck sends a LOBSTER flow event by event over one connection and compares the venue's
// book with the published one after each. It measures nothing: the reads of the book are between
// the orders.
type lobsterCheck struct {
	flow *orderflow.Lobster
	// worker is the driver's only one; the check calls it on its own goroutine instead of the worker's
	// run.
	worker *worker

	// transitions counts the comparisons, one for each event after the first; matching those without a
	// difference.
	transitions, matching int
	// first is the first difference as text, "" while there is none. Later ones often follow from it.
	first string
}

// run sends and compares everything. A book that is not empty at the start, or a step that is not
// accepted, is an error. A difference is not an error of run; see verdict.
func (c *lobsterCheck) run() error {
	for {
		e, err := c.flow.Next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if e.Number == 1 {
			if err := c.mustBeEmpty(); err != nil {
				return err
			}
		}
		if err := c.event(e); err != nil {
			return fmt.Errorf("replay: event %d: %w", e.Number, err)
		}
	}
}

// mustBeEmpty refuses a book with orders: they would execute against the flow, and every book would
// differ.
func (c *lobsterCheck) mustBeEmpty() error {
	security := c.flow.Security()
	before, err := c.worker.venue.depth(security, 1)
	if err != nil {
		return err
	}
	if len(before.Bids)+len(before.Asks) > 0 {
		return fmt.Errorf("replay: --check needs an empty book, and that of %s is not", security)
	}
	return nil
}

// event places the steps of one message, one at a time, because their order decides the book, and
// then compares as many levels as the files have. A step that is not accepted ends the check: the
// books after it could not agree.
func (c *lobsterCheck) event(e *orderflow.Event) error {
	w := c.worker
	for i := range e.Steps {
		j := job{step: e.Steps[i]}
		if j.step.Action == orderflow.New {
			w.fresh = append(w.fresh, j)
		} else {
			w.later = append(w.later, j)
		}
		if err := w.flush(); err != nil {
			return err
		}
	}
	if t := &w.tally; t.Accepted != t.Steps {
		return fmt.Errorf("a step was not accepted: refused %d %v, gone %d, not sent %d",
			t.Refused, t.Reasons, t.Gone, t.Untracked)
	}
	if e.Number == 1 {
		return nil
	}
	got, err := w.venue.depth(c.flow.Security(), c.flow.Levels())
	if err != nil {
		return err
	}
	c.transitions++
	if slices.Equal(got.Bids, e.Want.Bids) && slices.Equal(got.Asks, e.Want.Asks) {
		c.matching++
	} else if c.first == "" {
		c.first = fmt.Sprintf("event %d: bids %v asks %v, published %v %v",
			e.Number, got.Bids, got.Asks, e.Want.Bids, e.Want.Asks)
	}
	return nil
}

// verdict prints the result; a difference is settings.ErrMismatch, which is exit code 3. It also
// prints how much was taken from the book file, because that part of the books cannot differ.
func (c *lobsterCheck) verdict(stdout io.Writer) error {
	s := c.flow.Stats()
	fmt.Fprintf(stdout, "%d of %d transitions match\n", c.matching, c.transitions)
	fmt.Fprintf(stdout,
		"taken from the book file: %d levels of the first row; beyond the last published level "+
			"%d quantities that came into sight and %d that vanished\n", s.SeedLevels, s.EdgeSeeds,
		s.EdgeRemovals)
	if c.matching != c.transitions {
		return fmt.Errorf("replay: %w: %d of %d transitions differ, first %s",
			settings.ErrMismatch, c.transitions-c.matching, c.transitions, c.first)
	}
	return nil
}

// progressInterval is how often the progress line is drawn again.
const progressInterval = 200 * time.Millisecond

// progressWidth is the number of characters of the bar.
const progressWidth = 30
