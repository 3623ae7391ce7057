package bootstrap

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"posttrade/sidecars/control"
)

// round is one bootstrap and the following of the source after it.
//
// The reader judges the order of the stream and never waits for the engine before the snapshot is
// installed; the applier compares with the snapshot. So a fault is found while a long Install runs.
//
// Lifetime: once makes it, with a confirmed feed; it ends with the first fault, and nothing of it
// is used by the next round.
type round struct {
	b     *Bootstrap
	feed  Feed
	begun time.Time

	deltas  chan control.Delta // from the reader; its capacity is that of the buffer
	faulted chan struct{}      // closed when fault is set
	fault   *fault             // found by the reader; guarded by b.mu until faulted is closed
	// Closed when the snapshot is installed: the reader may wait from then on.
	live    chan struct{}
	waiting chan struct{} // holds a token while the reader is inside Next
	// batch and watermark belong to the applier.
	batch []control.Delta // received, not yet applied

	high        uint64 // the stream's last version when the subscription was confirmed
	highPayload []byte
	epoch       uint64 // of the snapshot
	watermark   uint64 // of the snapshot, then of what was applied
}

// once runs one round. It reports whether the source became ready, and why the round ended.
//
// It returns after the reader has ended, so two rounds never overlap. An error that is a *fault
// quarantines the source; any other is the engine's or ctx's.
func (b *Bootstrap) once(ctx context.Context) (reached bool, err error) {
	outer := ctx
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	b.move(Bootstrapping)
	begun := time.Now()
	feed, err := b.o.Follow(ctx)
	if err != nil {
		return false, &fault{reason: Disconnected, detail: err.Error()}
	}
	r := &round{
		b: b, feed: feed, begun: begun, deltas: make(chan control.Delta, b.o.BufferCapacity),
		faulted: make(chan struct{}), live: make(chan struct{}), waiting: make(chan struct{}, 1),
	}
	r.high, r.highPayload = feed.Last()
	b.mu.Lock()
	b.round = r
	b.status.HighWatermark = max(b.status.HighWatermark, r.high)
	b.mu.Unlock()
	read := make(chan struct{})
	go func() {
		defer close(read)
		r.read(ctx)
	}()
	reached, err = r.run(ctx)
	// A fault that was found takes effect before the code waits for anything.
	if f := (*fault)(nil); outer.Err() == nil && errors.As(err, &f) {
		b.quarantine(f)
	}
	cancel()
	<-read
	b.mu.Lock()
	b.round = nil
	b.mu.Unlock()
	_ = feed.Close() // an error means that it is lost already, which needs no action
	return reached, err
}

// read is the reader: it judges deltas by the order of the stream and buffers them.
//
// It ends with ctx, after a fault, or when put gives up. The token in waiting tells silent whether
// the reader hears the stream at all.
func (r *round) read(ctx context.Context) {
	// The reader writes into payload, so it gets a copy.
	order := streamOrder{source: r.b.o.Source, last: r.high, payload: bytes.Clone(r.highPayload)}
	for {
		r.waiting <- struct{}{}
		messages, err := r.feed.Next(ctx)
		<-r.waiting
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			reason := Disconnected
			if errors.Is(err, ErrGap) {
				reason = Gap
			}
			r.fail(&fault{reason: reason, detail: err.Error()})
			return
		}
		for _, payload := range messages {
			d, fresh, f := order.judge(payload)
			if f != nil {
				r.fail(f)
				return
			}
			if !fresh {
				r.b.count(func(s *Status) { s.Repeated++ })
				continue
			}
			r.b.count(func(s *Status) { s.HighWatermark = max(s.HighWatermark, d.Version) })
			if !r.put(ctx, d) {
				return
			}
		}
	}
}

// put buffers a delta. While the snapshot is under way a full buffer is a fault. Afterwards put
// waits for room.
//
// False means that the reader must end. A reader that waits hears no heartbeats; silent knows.
func (r *round) put(ctx context.Context, d control.Delta) bool {
	select {
	case r.deltas <- d:
		return true
	default:
	}
	select {
	case <-r.live:
	default:
		r.fail(&fault{reason: BufferOverflow,
			detail: fmt.Sprintf("more than %d deltas before the snapshot", cap(r.deltas))})
		return false
	}
	select {
	case r.deltas <- d:
		return true
	case <-ctx.Done():
		return false
	}
}

// fail revokes readiness for a fault that the reader found, and ends the round.
//
// The order matters: fault is set before the state changes, so that move of the applier cannot make
// the source ready behind it; faulted is closed last, so that its reader sees fault.
func (r *round) fail(f *fault) {
	r.b.mu.Lock()
	r.fault = f
	r.b.mu.Unlock()
	r.b.quarantine(f)
	close(r.faulted)
}

// count changes the counters of the status.
func (b *Bootstrap) count(change func(*Status)) {
	b.mu.Lock()
	change(&b.status)
	b.mu.Unlock()
}

// run fetches and installs the snapshot, catches up and follows the stream.
//
// The source becomes Ready only after all deltas that were buffered during the snapshot are applied
// and Behind has nothing to say.
func (r *round) run(ctx context.Context) (reached bool, err error) {
	snapshot, err := r.fetch(ctx)
	if err != nil {
		return false, err
	}
	if err := r.sameHistory(&snapshot); err != nil {
		return false, err
	}
	if err := r.b.o.Sink.Install(ctx, snapshot); errors.Is(err, ErrRegression) {
		return false, &fault{reason: VersionRegression, detail: err.Error()}
	} else if err != nil {
		return false, err
	}
	r.epoch, r.watermark = snapshot.Epoch, snapshot.Watermark
	r.b.count(func(s *Status) {
		s.Epoch, s.Watermark, s.HighWatermark = r.epoch, r.watermark, max(s.HighWatermark, r.watermark)
	})
	close(r.live)
	r.b.move(Installed)
	if err := r.apply(ctx, len(r.deltas)); err != nil {
		return false, err
	}
	r.b.count(func(s *Status) { s.Took = time.Since(r.begun) })
	if err := r.behind(ctx); err != nil {
		return false, err
	}
	r.b.move(Ready)
	return true, r.follow(ctx)
}
