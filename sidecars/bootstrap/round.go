package bootstrap

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"posttrade/sidecars/control"
)

// round is one bootstrap and the following of the source after it.
type round struct {
	b     *Bootstrap
	feed  Feed
	begun time.Time

	deltas  chan control.Delta // from the reader; its capacity is that of the buffer
	faulted chan struct{}      // closed when fault is set
	fault   *fault             // found by the reader; guarded by b.mu until faulted is closed
	// Closed when the snapshot is installed: the reader may wait from then on.
	live    chan struct{}
	waiting chan struct{}   // holds a token while the reader is inside Next
	batch   []control.Delta // received, not yet applied

	high        uint64 // the stream's last version when the subscription was confirmed
	highPayload []byte
	epoch       uint64 // of the snapshot
	watermark   uint64 // of the snapshot, then of what was applied
}

// once runs one round. It reports whether the source became ready, and why the round ended.
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

// sameHistory checks that the snapshot belongs to the history of the stream and of this replica. A
// source with a database restored from a backup assigns its versions a second time, to other
// changes.
func (r *round) sameHistory(s *control.Snapshot) error {
	regression := func(format string, args ...any) error {
		return &fault{reason: VersionRegression, detail: fmt.Sprintf(format, args...)}
	}
	r.b.mu.Lock()
	epoch, watermark := r.b.status.Epoch, r.b.status.Watermark
	r.b.mu.Unlock()
	// The replica could never catch up: the stream has versions that the source does not have.
	if s.Watermark < r.high {
		return regression("the snapshot's watermark %d is below version %d, which the stream has",
			s.Watermark, r.high)
	}
	if s.Epoch == epoch && s.Watermark < watermark {
		return regression("the snapshot's watermark %d is below version %d, which was applied",
			s.Watermark, watermark)
	}
	last, err := control.ParseDelta(s.Source, r.highPayload)
	if r.high == 0 || err != nil { // what is no delta is judged when it comes
		return nil
	}
	if last.Epoch != s.Epoch {
		return &fault{reason: EpochChange,
			detail: fmt.Sprintf("the stream's last version %d has epoch %d, the snapshot %d",
				r.high, last.Epoch, s.Epoch)}
	}
	key := last.Record.Key(s.Source)
	at := slices.IndexFunc(s.Records, func(x control.Record) bool { return x.Key(s.Source) == key })
	if at < 0 || s.Records[at].Version < r.high ||
		s.Records[at].Version == r.high && !s.Records[at].Same(&last.Record) {
		return regression("the stream's version %d of %s is not in the snapshot's history", r.high, key)
	}
	return nil
}

// behind returns the fault of a source with changes that do not reach the stream.
func (r *round) behind(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	if err := r.b.o.Behind(ctx, r.watermark); err != nil {
		return &fault{reason: Disconnected, detail: err.Error()}
	}
	return nil
}

// fetch gets the snapshot while the reader buffers deltas.
func (r *round) fetch(ctx context.Context) (control.Snapshot, error) {
	ctx, cancel := context.WithTimeout(ctx, r.b.o.FetchTimeout)
	defer cancel()
	type result struct {
		snapshot control.Snapshot
		err      error
	}
	fetched := make(chan result, 1)
	go func() {
		s, err := r.b.o.Fetch(ctx)
		fetched <- result{s, err}
	}()
	select {
	case <-r.faulted:
		return control.Snapshot{}, r.fault
	case f := <-fetched:
		if f.err != nil {
			return control.Snapshot{}, &fault{reason: snapshotReason(f.err), detail: f.err.Error()}
		}
		return f.snapshot, nil
	}
}

func snapshotReason(err error) Reason {
	switch {
	case errors.Is(err, control.ErrChecksum):
		return ChecksumFailure
	case errors.Is(err, control.ErrCount):
		return CountMismatch
	case errors.Is(err, control.ErrMalformed):
		return Malformed
	}
	return Disconnected
}

// follow applies deltas as they come, and checks for silence.
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
const maxApply = 1024

// apply takes n buffered deltas and appends them to the batch.
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

func (b *Bootstrap) stateIs(s State) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.status.State == s
}

// take adds a delta to the batch unless it is late.
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

// streamOrder judges the deltas of a stream one by one.
type streamOrder struct {
	source  control.Source
	last    uint64 // version of the predecessor, 0 for none
	payload []byte // of the predecessor
}

// judge reads a payload. fresh is false for a copy of the predecessor.
func (o *streamOrder) judge(payload []byte) (d control.Delta, fresh bool, f *fault) {
	d, err := control.ParseDelta(o.source, payload)
	switch {
	case err != nil:
		return d, false, &fault{reason: Malformed, detail: err.Error()}
	case o.last == 0 || d.Version == o.last+1:
	case d.Version == o.last && bytes.Equal(payload, o.payload):
		return d, false, nil
	case d.Version <= o.last:
		return d, false, &fault{reason: VersionRegression,
			detail: fmt.Sprintf("version %d after %d", d.Version, o.last)}
	default:
		return d, false, &fault{reason: Gap,
			detail: fmt.Sprintf("version %d after %d", d.Version, o.last)}
	}
	o.last, o.payload = d.Version, append(o.payload[:0], payload...)
	return d, true, nil
}
