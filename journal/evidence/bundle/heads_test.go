package bundle_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/mod/sumdb/note"

	"posttrade/journal"
	"posttrade/journal/evidence"
	"posttrade/journal/evidence/bundle"
	"posttrade/journal/evidence/export"
	"posttrade/journal/evidence/verify"
	"posttrade/ring/must"
)

// input is what the venue's bundles are made from.
func (v *venue) input() export.Input {
	return export.Input{Journal: v.j, Log: v.logDir(), Engine: v.rebuild, Key: v.log.VKey()}
}

// signed is a head as the log's key signs it.
func (v *venue) signed(c *verify.Checkpoint) []byte {
	v.t.Helper()
	s := must.Get(evidence.LoadSigner(v.logDir(), "", c.Origin))(v.t)
	return must.Get(note.Sign(&note.Note{Text: c.Text()}, s.Signer))(v.t)
}

// TestTwoHeadsOfOneSizeHaveOneRoot: the head that names the snapshot is as large as the bundle's
// own, has another root, and is signed with the log's key.
func TestTwoHeadsOfOneSizeHaveOneRoot(t *testing.T) {
	v := newVenue(t, 300, 500)
	files := v.export(800, 0)
	at, _, err := v.keys().Open(files[bundle.AttestedName])
	must.OK(t, err)
	head, _, err := v.keys().Open(files[bundle.CheckpointName])
	must.OK(t, err)
	if at.Size != head.Size || at.Root != head.Root {
		t.Fatalf("%+v %+v", at, head)
	}
	at.Root[0] ^= 1
	files[bundle.AttestedName] = v.signed(&at)
	var m bundle.Manifest
	must.OK(t, json.Unmarshal(files[bundle.ManifestName], &m))
	m.Files[bundle.AttestedName] = bundle.Sum(sha256.Sum256(files[bundle.AttestedName]))
	files[bundle.ManifestName] = m.Text()
	_, err = bundle.Verify(v.keys(), reading(files), bundle.Options{})
	var refusal *verify.Refusal
	if !errors.As(err, &refusal) || refusal.Blames != verify.BlameLog {
		t.Error(err)
	}
}

// TestASnapshotOfALaterHeadIsNotUsed: the log goes on after the head was read, and only its next
// head names the snapshot.
func TestASnapshotOfALaterHeadIsNotUsed(t *testing.T) {
	v := newVenue(t, 300, 500)
	text := must.Get(evidence.RootUpTo(v.logDir(), 512))(t)
	root := must.Get(hex.DecodeString(text))(t)
	newest := must.Get(evidence.ParseNote(must.Get(evidence.ReadHead(v.logDir()))(t)))(t)
	in := v.input()
	in.Head = v.signed(&verify.Checkpoint{Origin: newest.Origin, Size: 3, Root: verify.Hash(root),
		Head: 512, HeadRoot: verify.Root(nil)})
	p, err := export.Write(t.Context(), in, 400, 0, filepath.Join(t.TempDir(), "bundle"))
	if err != nil || p.To != 512 || p.Snapshot != 0 {
		t.Errorf("%+v %v", p, err)
	}
}

// TestOnlyARefusalIsAContradiction: a folder that takes no tile says nothing about the journal; a
// tile of the log that was changed does.
func TestOnlyARefusalIsAContradiction(t *testing.T) {
	v := newVenue(t, 300)
	dir := filepath.Join(t.TempDir(), "bundle")
	in := v.input()
	in.Engine = func(state io.Reader) (journal.Engine, error) { // the folder is there by now
		return must.Get(v.rebuild(state))(t), os.Symlink(filepath.Join(dir, "no", "such"),
			filepath.Join(dir, "tile"))
	}
	_, err := export.Write(context.Background(), in, 1, 0, dir)
	if err == nil || errors.Is(err, evidence.ErrContradiction) ||
		!strings.HasPrefix(err.Error(), "export: mkdir "+filepath.Join(dir, "tile")) {
		t.Errorf("a folder that takes no tile: %v", err)
	}
	tiles := must.Get(filepath.Glob(filepath.Join(v.logDir(), "tile", "0", "*")))(t)
	if len(tiles) == 0 {
		t.Fatal("no tile")
	}
	for _, tile := range tiles {
		must.OK(t, filepath.WalkDir(tile, func(path string, d os.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			data := must.Get(os.ReadFile(path))(t)
			data[0] ^= 1
			return os.WriteFile(path, data, 0o600)
		}))
	}
	_, err = export.Write(context.Background(), v.input(), 1, 0, filepath.Join(t.TempDir(), "other"))
	if !errors.Is(err, evidence.ErrContradiction) {
		t.Errorf("a changed tile: %v", err)
	}
}
