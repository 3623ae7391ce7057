package bootstrap

import (
	"context"
	"fmt"
	"time"

	"posttrade/sidecars/control"
)

// follow applies deltas as they come, and checks for silence.
//
// It never returns nil.
func (r *round) follow(ctx context.Context) error {
	look := time.NewTicker(r.b.o.MaxSilence / 4)
	defer look.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-r.faulted:
			return r.fault
		case d := <-r.deltas:
			if err := r.take(&d); err != nil {
				return err
			}
			if err := r.apply(ctx, len(r.deltas)); err != nil {
				return err
			}
		case <-look.C:
			if err := r.silent(); err != nil {
				return err
			}
			if err := r.behind(ctx); err != nil {
				return err
			}
		}
	}
}

// silent returns the fault of a feed from which no message or heartbeat has come for too long.
// While the reader is not inside Next it reads nothing, so there is no fault then.
func (r *round) silent() error {
	if len(r.waiting) == 0 {
		return nil
	}
	if quiet := time.Since(r.feed.LastHeard()); quiet > r.b.o.MaxSilence {
		return &fault{reason: Disconnected,
			detail: fmt.Sprintf("neither a delta nor a heartbeat for %v", quiet.Round(time.Millisecond))}
	}
	return nil
}

// maxApply is how many deltas are passed on together.
//
// It bounds the batch that a Sink gets, and how late Status shows progress.
const maxApply = 1024

// apply takes n buffered deltas and appends them to the batch.
//
// n is at most what the buffer held when the caller looked, so apply does not wait for deltas that
// have not come.
func (r *round) apply(ctx context.Context, n int) error {
	for ; n > 0; n-- {
		select {
		case <-r.faulted:
			return r.fault // the deltas before the fault are in the next snapshot
		case d := <-r.deltas:
			if err := r.take(&d); err != nil {
				return err
			}
		}
		if len(r.batch) == maxApply {
			if err := r.flush(ctx); err != nil {
				return err
			}
		}
	}
	return r.flush(ctx)
}

// flush passes the batch to the sink and publishes the new watermark.
//
// Moving a ready source to Ready again passes the new watermark to the sink.
func (r *round) flush(ctx context.Context) error {
	if len(r.batch) == 0 {
		return nil
	}
	if err := r.b.o.Sink.Apply(ctx, r.batch); err != nil {
		return err
	}
	applied := uint64(len(r.batch))
	r.batch = r.batch[:0]
	r.b.count(func(s *Status) {
		s.Applied += applied
		s.Watermark, s.HighWatermark = r.watermark, max(s.HighWatermark, r.watermark)
	})
	if r.b.stateIs(Ready) {
		r.b.move(Ready)
	}
	return nil
}

// stateIs compares under the lock; the reader may change the state right after.
func (b *Bootstrap) stateIs(s State) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.status.State == s
}

// take adds a delta to the batch unless it is late.
//
// The reader has checked that the versions of the stream have no gap, so a gap here lies between
// the snapshot and the first delta behind it.
func (r *round) take(d *control.Delta) error {
	switch {
	case d.Epoch != r.epoch:
		return &fault{reason: EpochChange,
			detail: fmt.Sprintf("version %d has epoch %d, the snapshot %d", d.Version, d.Epoch, r.epoch)}
	case d.Version <= r.watermark:
		r.b.count(func(s *Status) { s.Late++ })
		return nil
	case d.Version > r.watermark+1:
		return &fault{reason: Gap,
			detail: fmt.Sprintf("version %d after the watermark %d", d.Version, r.watermark)}
	}
	r.watermark = d.Version
	r.batch = append(r.batch, *d)
	return nil
}
