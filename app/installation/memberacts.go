package installation

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"posttrade/app/settings"
	"posttrade/journal/quorum"
	"posttrade/matcher/note"
)

// What a change of the members is about, on record.
//
// The JSON texts are part of the record in the journal: names and order stay.
type (
	byMember struct {
		Member string `json:"member"`
	}
	failedMember struct {
		Act    string `json:"act"`
		Member string `json:"member"`
		Code   string `json:"code"`
		Detail string `json:"detail"`
	}
)

// memberKinds are the kinds of the acts on members.
//
// Replaced is a member that came back with another disk.
var memberKinds = map[quorum.ChangeKind]string{quorum.Added: note.MemberAdd,
	quorum.Removed: note.MemberGone, quorum.Replaced: note.MemberSwap}

// Errors of a change of the members that names no operator as it should.
var (
	errNoReason = errors.New("profile=production needs a reason: posttrade cluster ... --reason=TEXT")
	errSubject  = errors.New("the subject is not 1 to 500 characters without control characters")
)

// recordChange puts a change of the members on record. The leader calls it, which has its engine.
//
// An error refuses the change: no change of the members is made that is not on record. It blocks
// until the note is durable on a majority.
func (in *Installation) recordChange(c *settings.Config, log *slog.Logger) quorum.Recorder {
	return func(ctx context.Context, change quorum.Change) error {
		n, err := noteOfChange(change, c.String("profile") == "production")
		if err != nil {
			return err
		}
		inputSeq, err := note.Record(ctx, in.Core.Desk, &n, time.Now())
		if err != nil {
			return err
		}
		n.Log(log, inputSeq)
		return nil
	}
}

// noteOfChange is the note of a change. A member that comes back with another disk has no
// operator.
//
// needReason is set in production. A change that has failed after it was put on record is noted
// once more, as refused, with its act in the object. Errors are those of the operator's texts.
func noteOfChange(c quorum.Change, needReason bool) (n note.Note, err error) {
	n = note.Note{Kind: memberKinds[c.Kind], Address: c.From,
		Object: note.Value(byMember{c.Member})}
	switch {
	case c.Reason != "":
		if n.Reason, err = note.CheckReason(c.Reason); err != nil {
			return n, err
		}
	case needReason && c.Kind != quorum.Replaced:
		return n, errNoReason
	}
	if c.Subject != "" {
		if n.Subject, err = note.CheckReason(c.Subject); err != nil {
			return n, errSubject
		}
	}
	if c.Failed != nil {
		n.Object = note.Value(failedMember{n.Kind, c.Member, "FAILED", c.Failed.Error()})
		n.Kind = note.ActRefused
		return n, nil
	}
	if c.Old != nil {
		n.Old = note.Value(c.Old)
	}
	if c.New != nil {
		n.New = note.Value(c.New)
	}
	return n, nil
}
