package journal

import (
	"context"
	"slices"

	"posttrade/matcher"
)

// A block of the journal holds up to some thousand commands, and is read whole. So a shadow that
// goes on in short steps, of fewer than shortStep commands, reads stepAhead commands at once, and
// takes the next steps from memory.
const (
	shortStep = 64
	stepAhead = 4096
)

// aheadPiece is a part of a block in memory of the shadow's own. Its commands are never empty while
// it is in ahead.
type aheadPiece struct {
	cmds []matcher.Command
	ids  ClientIDs
}

// step is Follow of a few commands. What was read ahead counts only if it begins with from: after a
// Follow of another kind it is read again.
func (sh *Shadow) step(ctx context.Context, from, to uint64) error {
	if head, _ := sh.j.Head(); to > head {
		to = head
	}
	for from <= to {
		if err := ctx.Err(); err != nil {
			return err
		}
		if len(sh.ahead) == 0 || sh.ahead[0].cmds[0].InputSeq != from {
			if err := sh.read(ctx, from); err != nil {
				return err
			}
			if len(sh.ahead) == 0 {
				return endsEarly(from-1, to)
			}
		}
		p := &sh.ahead[0]
		n := min(uint64(len(p.cmds)), to-from+1)
		if err := sh.take(p.cmds[:n], p.ids); err != nil {
			return err
		}
		if p.cmds = p.cmds[n:]; len(p.cmds) == 0 {
			sh.ahead = sh.ahead[1:]
		}
		from += n
	}
	return ctx.Err()
}

// read copies the commands from a sequence on, as far as a few steps need them, with their client
// ids. At the head it copies fewer, or none.
func (sh *Shadow) read(ctx context.Context, from uint64) error {
	sh.ahead = nil
	keep := func(cmds []matcher.Command, ids ClientIDs) error {
		ids.raw = slices.Clone(ids.raw)
		sh.ahead = append(sh.ahead, aheadPiece{slices.Clone(cmds), ids})
		return nil
	}
	return sh.j.ReplayTo(ctx, from, from+stepAhead-1, keep)
}
