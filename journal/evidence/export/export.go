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
	"posttrade/journal/evidence"
	"posttrade/journal/evidence/bundle"
	"posttrade/journal/evidence/leaf"
	"posttrade/journal/evidence/verify"
	"posttrade/matcher"
)

// Source is where a bundle comes from.
type Source struct {
	Journal *journal.Journal
	Log     string // the folder of the log
	Engine  func(state io.Reader) (journal.Engine, error)
	Key     string // the public key of the log: the bundle is verified before it is given away
	Head    []byte // the signed head, read before the journal was opened; nil: the newest
}

// errSource reports what keeps a bundle from being made.
var errSource = errors.New("cannot be exported")

// Write writes the range from..to (0 = what the newest head covers) into dir, which must be empty
// or not be there, and verifies the bundle. A bundle that cannot be verified is an error that wraps
// evidence.ErrContradiction: the journal is not what was signed.
func Write(ctx context.Context, s Source, from, to uint64, dir string) (*bundle.Proven, error) {
	x := &exporter{s: s, dir: dir, m: bundle.Manifest{Version: bundle.Version, From: from, To: to,
		Files: map[string]string{}}}
	if err := x.prepare(); err != nil {
		return nil, err
	}
	if err := x.replayRange(ctx); err != nil {
		return nil, err
	}
	if err := x.write(bundle.ManifestName, x.m.Text()); err != nil {
		return nil, err
	}
	return x.verify()
}

type exporter struct {
	s    Source
	dir  string
	m    bundle.Manifest
	head verify.Checkpoint
	g    *matcher.Genesis
}

// prepare makes the folder, and writes what does not need a replay.
func (x *exporter) prepare() error {
	if list, err := os.ReadDir(x.dir); err == nil && len(list) > 0 {
		return fmt.Errorf("export: folder %s is not empty: %w", x.dir, errSource)
	}
	note := x.s.Head
	if note == nil {
		var err error
		if note, err = evidence.ReadHead(x.s.Log); err != nil {
			return err
		}
	}
	var err error
	if x.head, err = evidence.ParseNote(note); err != nil {
		return err
	}
	if x.m.To == 0 {
		x.m.To = x.head.Head
	}
	x.m.From = max(x.m.From, 1)
	if x.m.From > x.m.To {
		return fmt.Errorf("export: the range of %d to %d is empty: %w", x.m.From, x.m.To, errSource)
	}
	if x.m.To > x.head.Head {
		return fmt.Errorf("export: sequences %d to %d, the newest signed head is %d: %w", x.m.From,
			x.m.To, x.head.Head, evidence.ErrNotYet)
	}
	x.m.Origin = x.head.Origin
	text, _ := x.s.Journal.Genesis()
	if x.g, err = matcher.ParseGenesis(text); err != nil {
		return err
	}
	return errors.Join(x.add(bundle.CheckpointName, note), x.add(bundle.GenesisName, text),
		x.addSnapshot())
}

// write writes a file of the bundle.
func (x *exporter) write(name string, data []byte) error {
	path := filepath.Join(x.dir, filepath.FromSlash(name))
	err := os.MkdirAll(filepath.Dir(path), 0o700)
	if err == nil {
		err = os.WriteFile(path, data, 0o600)
	}
	if err != nil {
		return fmt.Errorf("export: %w", err)
	}
	return nil
}

// add writes a file that the manifest names.
func (x *exporter) add(name string, data []byte) error {
	x.m.Files[name] = bundle.Sum(sha256.Sum256(data))
	return x.write(name, data)
}

// addSnapshot looks for the newest snapshot before the range that a signed head names.
func (x *exporter) addSnapshot() error {
	keys, err := verify.ParseKeys([]string{x.s.Key}, nil)
	if err != nil {
		return err
	}
	list, err := x.s.Journal.Snapshots()
	if err != nil {
		return fmt.Errorf("export: %w", err)
	}
	for _, s := range list {
		if s.InputSeq >= x.m.From || s.InputSeq == 0 {
			continue
		}
		note, err := evidence.Attested(x.s.Log, s.InputSeq, &keys)
		if err != nil {
			return err
		}
		data, err := os.ReadFile(filepath.Join(x.s.Journal.Dir(), filepath.FromSlash(s.State.Path)))
		if note == nil || err != nil || bundle.Sum(sha256.Sum256(data)) != s.State.SHA256 {
			continue // an older one, or the genesis, does as well
		}
		x.m.Snapshot = s.InputSeq
		return errors.Join(x.add(bundle.SnapshotName, data), x.add(bundle.AttestedName, note))
	}
	return nil
}

// replayRange replays the range and writes its records.
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

// replay is a shadow engine with what is made of its events.
type replay struct {
	shadow  *journal.Shadow
	builder leaf.Builder
	tally   *bundle.Tally
	whole   []verify.Hash // of the last full leaf
}

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

// records writes records and edges, and counts what the manifest says.
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

// after adds the hashes of the records that follow the range in its last leaf.
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

// verify checks the bundle, and copies the tiles that this needs.
func (x *exporter) verify() (*bundle.Proven, error) {
	keys, err := verify.ParseKeys([]string{x.s.Key}, nil)
	if err != nil {
		return nil, err
	}
	own := bundle.Folder(x.dir)
	p, err := bundle.Verify(&keys, func(name string) ([]byte, error) {
		data, err := own(name)
		if !errors.Is(err, os.ErrNotExist) {
			return data, err
		}
		if data, _, err = evidence.Tile(x.s.Log, name); err != nil {
			return nil, err
		}
		return data, x.write(name, data)
	}, bundle.Options{})
	if err != nil {
		return nil, fmt.Errorf("export: %w: %w", err, evidence.ErrContradiction)
	}
	return p, nil
}
