package export

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/klauspost/compress/zstd"

	"posttrade/journal"
	"posttrade/journal/evidence/bundle"
	"posttrade/journal/evidence/leaf"
	"posttrade/journal/evidence/verify"
	"posttrade/matcher"
)

// replayRange replays the range and writes its records. The shadow begins at the beginning of the
// leaf in which the records begin, so that the hashes before them are there for the edges.
func (x *exporter) replayRange(ctx context.Context) (err error) {
	key, err := leaf.SaltKey(x.g, x.s.Journal.Seed())
	if err != nil {
		return err
	}
	first, _ := verify.LeafRange(verify.LeafOf(x.m.Snapshot + 1))
	var names *matcher.Engine
	shadow, err := journal.NewShadow(x.s.Journal, func(state io.Reader) (journal.Engine, error) {
		e, err := x.s.Engine(state)
		names, _ = e.(*matcher.Engine)
		return e, err
	}, first-1)
	if err != nil {
		return fmt.Errorf("export: %w", err)
	}
	defer func() { err = errors.Join(err, shadow.Close()) }()
	if err := shadow.Follow(ctx, first-1, nil); err != nil {
		return err
	}
	r := &replay{shadow: shadow, tally: bundle.NewTally(x.m.From, names, nil)}
	r.builder.Key, r.builder.Full = key, func([]byte) error { return nil }
	r.builder.Whole = func(hashes []verify.Hash) { r.whole = append(r.whole[:0], hashes...) }
	r.builder.StartAt(first - 1)
	return x.records(ctx, r)
}

// replay is a shadow engine with what is made of its events: records and leaves by the builder,
// digests by the tally. One goroutine uses it.
type replay struct {
	shadow  *journal.Shadow
	builder leaf.Builder
	tally   *bundle.Tally
	// whole has the hashes of the last full leaf: the builder drops its own when a leaf is full.
	whole []verify.Hash
}

// to replays up to a command. It does nothing when the shadow has passed that command already.
func (r *replay) to(ctx context.Context, inputSeq uint64) error {
	return r.shadow.Follow(ctx, inputSeq, func(events []matcher.Event) error {
		for i := range events {
			if err := r.builder.Take(&events[i], r.shadow.ClientID); err != nil {
				return err
			}
		}
		return r.tally.Observe(events)
	})
}

// records writes records and edges, and counts what the manifest says. Records begin behind the
// snapshot; what the manifest counts begins at From.
func (x *exporter) records(ctx context.Context, r *replay) error {
	if err := r.to(ctx, x.m.Snapshot); err != nil {
		return err
	}
	e := bundle.Edges{Before: r.builder.Hashes()}
	path := filepath.Join(x.dir, bundle.RecordsName)
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return fmt.Errorf("export: %w", err)
	}
	sum := sha256.New()
	z, err := zstd.NewWriter(io.MultiWriter(f, sum), zstd.WithEncoderConcurrency(1))
	if err != nil {
		return errors.Join(err, f.Close())
	}
	w := bundle.NewRecordWriter(z)
	r.builder.Seen = w.See
	err = r.to(ctx, x.m.From-1)
	if err == nil {
		r.tally.Begin()
		err = r.to(ctx, x.m.To)
	}
	err = errors.Join(err, w.Flush(), z.Close(), f.Close())
	if err != nil {
		return fmt.Errorf("export: write file=%s: %w", path, err)
	}
	x.m.Files[bundle.RecordsName] = bundle.Sum([32]byte(sum.Sum(nil)))
	if x.m.Fills, x.m.Blotter, x.m.Report, err = r.tally.End(); err != nil {
		return err
	}
	r.builder.Seen = nil
	r.tally.Stop()
	return x.after(ctx, r, &e)
}

// after adds the hashes of the records that follow the range in its last leaf, up to the head: the
// leaf's root in the tree, or in the head's own line, is over all of them.
func (x *exporter) after(ctx context.Context, r *replay, e *bundle.Edges) error {
	first, count := verify.LeafRange(verify.LeafOf(x.m.To))
	end := first + count - 1
	if held := len(r.builder.Hashes()); x.m.To < end {
		if err := r.to(ctx, min(end, x.head.Head)); err != nil {
			return err
		}
		hashes := r.builder.Hashes()
		if x.head.Head >= end {
			hashes = r.whole
		}
		e.After = hashes[held:]
	}
	return x.add(bundle.EdgesName, e.Text())
}
