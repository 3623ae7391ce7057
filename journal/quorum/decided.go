package quorum

import (
	"errors"
	"fmt"

	"posttrade/matcher"
)

// ErrOtherCommands: the cluster has agreed on other commands than this member's journal has at the
// same sequences. Agreed commands never change, so a member has forgotten what it had: an older
// copy of its folder was put back.
var ErrOtherCommands = errors.New("the cluster has agreed on other commands than this journal has")

// decidedPiece is how many commands are read from the journal at a time.
const decidedPiece = 8192

// decided reads the journal's commands beside agreed entries, one piece ahead. The zero value is
// ready.
type decided struct {
	from     uint64 // the sequence of the first command
	commands []matcher.Command
	// Set when something could not be read: it was moved into an archive, is damaged, which is the
	// scrub's to say, or is on its way into the journal. Nothing more is compared then.
	unread bool
}

// compare compares agreed commands, the first of which has sequence first, with those that the
// journal has: ErrOtherCommands. They are compared as the journal has them, but for the numbers
// that are given when a command is sequenced.
func (d *decided) compare(f *fsm, first uint64, agreed []matcher.Command, term uint64) error {
	for i := range agreed {
		was := d.at(f, first+uint64(i))
		if was == nil {
			return nil
		}
		want := agreed[i]
		if want.TemplateID == matcher.TemplateCommand {
			want.LeaderEpoch = uint32(term)
		}
		want.InputSeq, want.Version = was.InputSeq, was.Version
		if want != *was {
			return fmt.Errorf("sequence=%d term=%d, in the journal term=%d: %w", first+uint64(i), term,
				was.LeaderEpoch, ErrOtherCommands)
		}
	}
	if first+uint64(len(agreed)) > f.head {
		d.commands = nil // the last of them
	}
	return nil
}

// at is the journal's command of a sequence up to the head; nil when it cannot be read.
func (d *decided) at(f *fsm, seq uint64) *matcher.Command {
	if d.unread {
		return nil
	}
	if seq < d.from || seq-d.from >= uint64(len(d.commands)) {
		d.from, d.commands = seq, d.commands[:0]
		err := f.n.host.Decided(f.n.ctx, seq, min(f.head, seq+decidedPiece-1),
			func(commands []matcher.Command) error {
				d.commands = append(d.commands, commands...)
				return nil
			})
		if d.unread = err != nil || len(d.commands) == 0; d.unread {
			if err != nil && f.n.ctx.Err() == nil {
				f.n.o.Logger.Warn("cluster: agreed commands are not compared with the journal",
					"sequence", seq, "error", err)
			}
			return nil
		}
	}
	return &d.commands[seq-d.from]
}
