package asof

import (
	"context"
	"errors"

	"posttrade/matcher"
)

// Before returns the last sequence before a time in epoch milliseconds: behind it comes the first
// order, change of an order, trade or booking of that time or later. 0 is the genesis; it is the
// durable head when all of them are older. Edges give commands their times before they are
// sequenced: where two commands raced over the time, either may come first.
//
// It is a binary search by sequence. Times are close to ascending, not strictly so; where they go
// back, the answer is one of the places at which they pass millis. Cost: the logarithm of the head,
// in short readings of the journal.
func (h *History) Before(ctx context.Context, millis int64) (inputSeq uint64, err error) {
	head := h.Head()
	first := head + 1 // known to be of the time or later
	for lo, hi := uint64(1), head; lo <= hi; {
		mid := lo + (hi-lo)/2
		at, time, err := h.dated(ctx, mid, hi)
		switch {
		case err != nil:
			return 0, err
		case at == 0:
			hi = mid - 1
		case time >= millis:
			first, hi = at, mid-1
		default:
			lo = at + 1
		}
	}
	return first - 1, nil
}

// dated finds the first command of from to to whose time an edge has given, 0 for none. A price may
// say that it is older, and a control says nothing.
//
// It reads a thousand commands at a time: one that qualifies is usually near.
func (h *History) dated(ctx context.Context, from, to uint64) (at uint64, time int64, err error) {
	const some = 1 << 10
	for ; at == 0 && from <= to; from += some {
		err := h.j.Commands(ctx, from, min(from+some-1, to), func(cmds []matcher.Command) error {
			for i := range cmds {
				if c := &cmds[i]; c.TemplateID == matcher.TemplateCommand && c.EventTimeMillis != 0 {
					switch c.Type {
					case matcher.OrderNew, matcher.OrderCancel, matcher.OrderReplace, matcher.TradeNew,
						matcher.ForceFill, matcher.SwapBook, matcher.SwaptionBook:
						at, time = c.InputSeq, c.EventTimeMillis
						return errEnough
					}
				}
			}
			return nil
		})
		if err != nil && !errors.Is(err, errEnough) {
			return 0, 0, err
		}
	}
	return at, time, nil
}
