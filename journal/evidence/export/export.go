package export

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"golang.org/x/mod/sumdb/note"

	"posttrade/journal"
	"posttrade/journal/evidence"
	"posttrade/journal/evidence/bundle"
	"posttrade/journal/evidence/verify"
	"posttrade/matcher"
)

// Input is what a bundle is made from. All but Head must be set.
type Input struct {
	Journal *journal.Journal
	// Log is the folder of the log.
	Log string
	// Engine makes an engine at its genesis (state nil) or from a snapshot's state; it must be a
	// *matcher.Engine, which names the securities.
	Engine func(state io.Reader) (journal.Engine, error)
	// Key is the public key of the log: the bundle is verified before it is given away.
	Key string
	// Head is the signed head, read before the journal was opened: so the journal has all that the
	// head covers. nil: the newest.
	Head []byte
}

// errInput reports what keeps a bundle from being made: a folder that is not empty, or an empty
// range.
var errInput = errors.New("cannot be exported")

// Write writes the range from..to (0 = what the newest head covers) into dir, which must be empty
// or not be there, and verifies the bundle. A bundle that is refused is an error that wraps
// evidence.ErrContradiction: the journal is not what was signed.
//
//   - Shape: the manifest is written behind its files; a folder without one is no export.
//   - Errors: evidence.ErrNotYet for a range beyond the newest head; those of ctx, the journal and
//     the file system. What was written stays.
//   - Cost: two replays, of the range and of what lies between it and the nearest snapshot, one to
//     write and one to verify.
func Write(ctx context.Context, s Input, from, to uint64, dir string) (*bundle.Proven, error) {
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

// exporter is one Write.
type exporter struct {
	// s and dir are the caller's; m is filled in as the files are written.
	s   Input
	dir string
	m   bundle.Manifest
	// note is the signed head, and head what it says: nothing behind it is exported.
	note []byte
	head verify.Checkpoint
	// keys has the key of the log, which has signed note.
	keys verify.Keys
	g    *matcher.Genesis
}

// prepare makes the folder, and writes what does not need a replay.
//
// The range is settled here: a from of 0 is the first command, a to of 0 the head.
func (x *exporter) prepare() error {
	if list, err := os.ReadDir(x.dir); err == nil && len(list) > 0 {
		return fmt.Errorf("export: folder %s is not empty: %w", x.dir, errInput)
	}
	if err := x.openHead(); err != nil {
		return err
	}
	if x.m.To == 0 {
		x.m.To = x.head.Head
	}
	x.m.From = max(x.m.From, 1)
	if x.m.From > x.m.To {
		return fmt.Errorf("export: the range of %d to %d is empty: %w", x.m.From, x.m.To, errInput)
	}
	if x.m.To > x.head.Head {
		return fmt.Errorf("export: sequences %d to %d, the newest signed head is %d: %w", x.m.From,
			x.m.To, x.head.Head, evidence.ErrNotYet)
	}
	x.m.Origin = x.head.Origin
	text, _ := x.s.Journal.Genesis()
	var err error
	if x.g, err = matcher.ParseGenesis(text); err != nil {
		return err
	}
	return errors.Join(x.add(bundle.CheckpointName, x.note), x.add(bundle.GenesisName, text),
		x.addSnapshot())
}

// openHead reads the signed head. One that only another key has signed, as after a change of keys
// until the next head is published, says nothing against the journal: it cannot be exported yet.
func (x *exporter) openHead() (err error) {
	if x.note = x.s.Head; x.note == nil {
		if x.note, err = evidence.ReadHead(x.s.Log); err != nil {
			return err
		}
	}
	if x.head, err = evidence.ParseNote(x.note); err != nil {
		return err
	}
	if x.keys, err = verify.ParseKeys([]string{x.s.Key}, nil); err != nil {
		return err
	}
	key, err := note.NewVerifier(x.s.Key)
	if err != nil {
		return err
	}
	var other *note.UnverifiedNoteError
	if _, err := note.Open(x.note, note.VerifierList(key)); errors.As(err, &other) {
		return fmt.Errorf("export: the newest head, of sequence %d, is signed with another key than %s: "+
			"%w", x.head.Head, x.s.Key, errInput)
	}
	return nil // any other error is found by the verification of the bundle
}

// write writes a file of the bundle, for its owner only: a bundle discloses its range.
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

// addSnapshot looks for the newest snapshot before the range that a signed head names, and adds
// both. Without one the bundle begins at the genesis. A snapshot that is gone or changed, or that
// only a head behind the bundle's own names, is passed over. So is one of which the heads name
// another file: another build may have written it.
//
// The bundle's own head is taken where it names the snapshot: a verifier with its witnesses' keys
// then accepts both or none.
func (x *exporter) addSnapshot() error {
	list, err := x.s.Journal.Snapshots()
	if err != nil {
		return fmt.Errorf("export: %w", err)
	}
	for _, s := range list {
		if s.InputSeq >= x.m.From || s.InputSeq == 0 {
			continue
		}
		data, err := os.ReadFile(filepath.Join(x.s.Journal.Dir(), filepath.FromSlash(s.State.Path)))
		like := verify.Checkpoint{Head: x.head.Head, Snapshot: s.InputSeq,
			SnapshotSHA256: sha256.Sum256(data)}
		if err != nil || bundle.Sum(like.SnapshotSHA256) != s.State.SHA256 {
			continue
		}
		head := x.note
		if !x.head.Names(&like) {
			if head, err = evidence.Attested(x.s.Log, &like, &x.keys); err != nil {
				return err
			}
		}
		if head == nil {
			continue // an older one, or the genesis, does as well
		}
		x.m.Snapshot = s.InputSeq
		return errors.Join(x.add(bundle.SnapshotName, data), x.add(bundle.AttestedName, head))
	}
	return nil
}

// verify checks the bundle, and copies the tiles that this needs: each one that the check asks for
// and the folder does not have comes from the log. So the same check needs nothing but the folder
// later.
func (x *exporter) verify() (*bundle.Proven, error) {
	own := bundle.Folder(x.dir)
	var full error // of a tile that could not be copied
	p, err := bundle.Verify(&x.keys, func(name string) ([]byte, error) {
		data, err := own(name)
		if !errors.Is(err, os.ErrNotExist) {
			return data, err
		}
		if data, _, err = evidence.Tile(x.s.Log, name); err != nil {
			return nil, err
		}
		full = x.write(name, data)
		return data, full
	}, bundle.Options{})
	var refused *verify.Refusal
	switch {
	case full != nil:
		return nil, full
	case errors.As(err, &refused):
		return nil, fmt.Errorf("export: %w: %w", err, evidence.ErrContradiction)
	case err != nil: // a file that cannot be read says nothing about the journal
		return nil, fmt.Errorf("export: %w", err)
	}
	return p, nil
}
