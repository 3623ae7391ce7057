package why

import (
	"context"
	"errors"
	"slices"

	"posttrade/journal"
	"posttrade/matcher"
)

// The history is read backwards in windows that grow: what is looked for is usually near. Each
// window is read forwards, from its beginning. The last size bounds the memory of a window of
// fills: 16 MiB.
const (
	firstWindow = 1 << 12
	lastWindow  = 1 << 18
)

// windows calls f for ranges that cover [1, from], the last one first, until f returns true. Each
// is four times as long as the one before, up to lastWindow; both ends are inclusive.
func windows(from uint64, f func(first, last uint64) (enough bool, err error)) error {
	for size := uint64(firstWindow); from > 0; size = min(size*4, lastWindow) {
		first := uint64(1)
		if from > size {
			first = from - size + 1
		}
		if enough, err := f(first, from); enough || err != nil {
			return err
		}
		from = first - 1
	}
	return nil
}

// lastCommand returns the newest command at or before a sequence for which match is true.
//
// It reads each window to its end, because the newest match is the last one in it. Commands of
// templates 7 and 8 never match.
func lastCommand(ctx context.Context, j *journal.Journal, from uint64,
	match func(*matcher.Command) bool) (found matcher.Command, ok bool, err error) {
	err = windows(from, func(first, last uint64) (bool, error) {
		err := j.ReplayTo(ctx, first, last, func(cmds []matcher.Command, _ journal.ClientIDs) error {
			for i := range cmds {
				if cmds[i].TemplateID == matcher.TemplateCommand && match(&cmds[i]) {
					found, ok = cmds[i], true
				}
			}
			return nil
		})
		return ok, err
	})
	return found, ok, err
}

// eachFillBack calls f for the fills at or before a trade sequence, the newest first, until f
// returns false. It keeps the fills of one window at a time.
func eachFillBack(ctx context.Context, j *journal.Journal, from uint64,
	f func(*matcher.Fill) bool) error {
	var window []matcher.Fill
	return windows(from, func(first, last uint64) (bool, error) {
		window = window[:0]
		err := fillsOf(ctx, j, first, last, func(fill *matcher.Fill) bool {
			window = append(window, *fill)
			return true
		})
		if err != nil {
			return false, err
		}
		for _, fill := range slices.Backward(window) {
			if !f(&fill) {
				return true, nil
			}
		}
		return false, nil
	})
}

// errEnough ends a walk through the fills; it does not leave the package.
var errEnough = errors.New("enough")

// fillsOf calls f for the fills of a range of trade sequences, in order, until f returns false.
//
// ctx is looked at once a block of fills.
func fillsOf(ctx context.Context, j *journal.Journal, first, last uint64,
	f func(*matcher.Fill) bool) error {
	if first > last {
		return nil
	}
	err := j.Fills(first, func(fills []matcher.Fill) error {
		for i := range fills {
			if fills[i].TradeSeq > last || !f(&fills[i]) {
				return errEnough
			}
		}
		return ctx.Err()
	})
	if errors.Is(err, errEnough) {
		err = nil
	}
	return err
}
