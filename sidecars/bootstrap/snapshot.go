package bootstrap

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"posttrade/sidecars/control"
)

// sameHistory checks that the snapshot belongs to the history of the stream and of this replica. A
// source with a database restored from a backup assigns its versions a second time, to other
// changes.
//
// It compares with three things: the stream's last version, what this replica has applied in the
// same epoch, and the content of the stream's last change. Cost: a walk over the records.
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
//
// A second bounds it: the reader must not be kept waiting by a database that stands still.
func (r *round) behind(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	if err := r.b.o.Behind(ctx, r.watermark); err != nil {
		return &fault{reason: Disconnected, detail: err.Error()}
	}
	return nil
}

// fetch gets the snapshot while the reader buffers deltas.
//
// A fault of the reader ends it at once. Fetch then ends with its context, and its result is
// dropped.
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

// snapshotReason sorts the errors of control.ParseSnapshot; any other error is of the way to the
// source.
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
