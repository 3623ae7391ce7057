package note

import (
	"context"
	"fmt"
	"time"

	"posttrade/matcher"
	"posttrade/matcher/desk"
)

// Record puts an act on record that is not a command: a forced settlement, a repair, a new epoch, a
// change of the members. It returns the sequence of the note's first part when the note is durable.
// While the desk or the ring has no room it tries again, until ctx ends.
//
// Errors: ErrSize; those of the desk, test them by errors.Is; ctx's.
func Record(ctx context.Context, d *desk.Desk, n *Note, now time.Time) (inputSeq uint64,
	err error) {
	w, err := n.Write()
	if err != nil {
		return 0, err
	}
	err = desk.SubmitTicketUntil(ctx, d, w.Len(), func(t *desk.Ticket) error {
		w.Put(t, now.UnixMilli())
		return nil
	}, func(a *desk.Answer) error {
		if a.Kind != matcher.EventApplied {
			return fmt.Errorf("note: sequence %d was refused: %v", a.InputSeq, a.Reason)
		}
		if inputSeq == 0 {
			inputSeq = a.InputSeq
		}
		return nil
	})
	return inputSeq, err
}
