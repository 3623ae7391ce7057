package asof

import (
	"context"
	"errors"
	"time"

	"posttrade/journal"
)

// Defaults of the checkpoints: a history of ten million commands has one every 262,144.
const (
	// DefaultInterval is the distance of checkpoints, in commands, while the history is short.
	DefaultInterval = 1 << 18
	// DefaultCheckpoints bounds their number, and so the disk space: a checkpoint is the whole state.
	DefaultCheckpoints = 48
)

// checkpointPoll is how often Run looks at the head, and checkpointRest how long it leaves
// checkpoints alone after a failure: a try may replay a part of the history.
const (
	checkpointPoll = 5 * time.Second
	checkpointRest = 5 * time.Minute
)

// spacing is the distance of checkpoints in a history up to head: the interval, doubled until they
// are no more than the most that are kept.
//
// Doubling keeps every second checkpoint valid, so a longer history makes none of them anew.
func (h *History) spacing(head uint64) uint64 {
	space := h.o.Interval
	for head/space > uint64(h.o.Checkpoints) {
		space *= 2
	}
	return space
}

// Run makes checkpoints beside the running engine, and closes shadows that are not used, until ctx
// ends. What fails is reported, and tried again later.
//
// One goroutine calls it, once; it returns when ctx ends. Files that no manifest names are removed
// first: what a process that was killed has left.
func (h *History) Run(ctx context.Context) {
	t := time.NewTicker(checkpointPoll)
	defer t.Stop()
	if h.checkpoints != nil {
		if err := h.checkpoints.Clean(); err != nil {
			h.o.Report(err)
		}
	}
	var resting time.Time // until then
	for {
		if _, _, err := h.closeUnused(time.Now()); err != nil {
			h.o.Report(err)
		}
		if time.Now().After(resting) {
			if err := h.Checkpoint(ctx); err != nil && ctx.Err() == nil {
				h.o.Report(err)
				resting = time.Now().Add(checkpointRest)
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
	}
}

// Checkpoint makes the checkpoints that are due, at the lowest priority, and removes those that are
// not needed any more. It does nothing without a folder, and when the disk is as good as full.
//
// It follows the commits that are stable, not the durable head: a power cut must not leave a
// checkpoint of commands, or of a commit, that the journal has lost. What was made before an error
// or the end of ctx stays.
func (h *History) Checkpoint(ctx context.Context) error {
	if h.checkpoints == nil || h.j.StorageFull() {
		return nil
	}
	head := h.j.StableEnd()
	space := h.spacing(head)
	have, list := map[uint64]bool{}, h.checkpoints.Sequences()
	for _, at := range list {
		if len(list) <= h.o.Checkpoints || at%space == 0 {
			have[at] = true
		} else if err := h.checkpoints.Drop(at); err != nil {
			return err
		}
	}
	missing := space
	for have[missing] {
		missing += space
	}
	if missing > head {
		return nil
	}
	return journal.Politely(journal.Bulk, func() error {
		return h.fill(ctx, missing, head, space, have)
	})
}

// fill makes the missing checkpoints from a sequence on, with one shadow.
//
// The shadow starts at the nearest base before from, and is closed at the end: checkpoints take
// nothing from the warm ones. A checkpoint that is there already is only passed.
func (h *History) fill(ctx context.Context, from, head, space uint64,
	have map[uint64]bool) (err error) {
	sh, err := journal.OpenShadow(h.j, h.rebuild, from, h.checkpoints)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, sh.Close()) }()
	for at := from; at <= head; at += space {
		if err := sh.Follow(ctx, at, nil); err != nil {
			return err
		}
		if have[at] {
			continue
		}
		if err := h.checkpoints.Write(sh); err != nil {
			return err
		}
	}
	return nil
}

// Checkpoints is the number of checkpoints and the size of their files.
func (h *History) Checkpoints() (count int, bytes int64) {
	if h.checkpoints == nil {
		return 0, 0
	}
	return len(h.checkpoints.Sequences()), h.checkpoints.Bytes()
}
