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
	return submit(ctx, d, n, nil, now)
}

// Act sequences a command behind its note, as Record does, and returns the command's sequence.
//
// Errors: those of Record, and a Refused when the engine refuses the command.
func Act(ctx context.Context, d *desk.Desk, n *Note, act matcher.Command,
	now time.Time) (inputSeq uint64, err error) {
	return submit(ctx, d, n, &act, now)
}

// Refused is an act that the engine has refused. It was sequenced, with its note, and changed
// nothing; InputSeq is the act's.
type Refused struct {
	InputSeq uint64
	Reason   matcher.RiskReason
}

func (r Refused) Error() string {
	return fmt.Sprintf("note: sequence %d was refused: %v", r.InputSeq, r.Reason)
}

// submit sequences a note and, unless act is nil, the act behind it, in one ticket. The sequence
// that it returns is the act's, or that of the first part. The act's event time is the caller's.
func submit(ctx context.Context, d *desk.Desk, n *Note, act *matcher.Command,
	now time.Time) (inputSeq uint64, err error) {
	w, err := n.Write()
	if err != nil {
		return 0, err
	}
	commands := w.Len()
	if act != nil {
		commands++
	}
	err = desk.SubmitTicketUntil(ctx, d, commands, func(t *desk.Ticket) error {
		if act != nil {
			*t.Command(w.Len()) = *act
		}
		w.Put(t, now.UnixMilli())
		return nil
	}, func(a *desk.Answer) error {
		if a.Kind != matcher.EventApplied {
			return Refused{a.InputSeq, a.Reason}
		}
		if inputSeq == 0 || act != nil {
			inputSeq = a.InputSeq
		}
		return nil
	})
	return inputSeq, err
}
