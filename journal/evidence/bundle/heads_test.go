package bundle_test

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"maps"
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
	v.replace(files, bundle.AttestedName, v.signed(&at))
	_, err = bundle.Verify(v.keys(), reading(files), bundle.Options{})
	var refusal *verify.Refusal
	if !errors.As(err, &refusal) || refusal.Blames != verify.BlameLog {
		t.Error(err)
	}
}

// TestAnotherFileOfTheSnapshotIsNamed: the bundle's own head names another one than the head that
// came with the snapshot.
func TestAnotherFileOfTheSnapshotIsNamed(t *testing.T) {
	v := newVenue(t, 300, 500, 100)
	files := v.export(850, 0)
	head, _, err := v.keys().Open(files[bundle.CheckpointName])
	must.OK(t, err)
	if head.Snapshot != 800 {
		t.Fatalf("%+v", head)
	}
	var said strings.Builder
	j := bundle.Job{Name: "range", Read: reading(files)}
	must.OK(t, j.Prove(v.keys(), &said))
	if strings.Contains(said.String(), "another file") {
		t.Error(said.String())
	}
	head.SnapshotSHA256[0] ^= 1
	v.replace(files, bundle.CheckpointName, v.signed(&head))
	must.OK(t, j.Prove(v.keys(), &said))
	if !strings.Contains(said.String(),
		"\nsnapshot the signed head at sequence 900 names another file of it, sha256 ") {
		t.Error(said.String())
	}
}

// replace puts another file into a bundle, and its sum into the manifest.
func (v *venue) replace(files map[string][]byte, name string, data []byte) {
	v.t.Helper()
	var m bundle.Manifest
	must.OK(v.t, json.Unmarshal(files[bundle.ManifestName], &m))
	files[name] = data
	m.Files[name] = bundle.Sum(sha256.Sum256(data))
	files[bundle.ManifestName] = m.Text()
}

// TestTheSnapshotsHeadHasTheCosignatures: without a quorum a head is published before it is
// cosigned, and again after. The bundle takes its own head where that names the snapshot, and else
// the one with the most signatures.
func TestTheSnapshotsHeadHasTheCosignatures(t *testing.T) {
	v := newVenue(t, 300, 500, 100, 50)
	skey, vkey, err := note.GenerateKey(rand.Reader, "posttrade/another")
	must.OK(t, err)
	cosigner := must.Get(note.NewSigner(skey))(t)
	name := filepath.Join(v.logDir(), "checkpoints")
	cosigned := func(text []byte) []byte {
		n := must.Get(note.Open(text, note.VerifierList(must.Get(note.NewVerifier(v.log.VKey()))(t))))(t)
		return must.Get(note.Sign(n, cosigner))(t)
	}
	var kept []byte // each head plain, then cosigned, then plain
	plain := must.Get(os.ReadFile(name))(t)
	for text := range strings.SplitSeq(string(plain), "\n\nposttrade/") {
		text = "posttrade/" + strings.TrimSpace(strings.TrimPrefix(text, "posttrade/")) + "\n"
		for _, one := range [][]byte{[]byte(text), cosigned([]byte(text)), []byte(text)} {
			kept = append(append(kept, one...), '\n')
		}
	}
	must.OK(t, os.WriteFile(name, kept, 0o600))
	in := v.input()
	in.Head = cosigned(must.Get(evidence.ReadHead(v.logDir()))(t))
	both := must.Get(verify.ParseKeys([]string{vkey}, nil))(t)
	for _, from := range []uint64{840, 920, 930} { // from the snapshot at 800, and two at 900
		at := uint64(900)
		if from > 900 {
			at = 950
		}
		if from == 930 { // only its own head is cosigned
			must.OK(t, os.WriteFile(name, plain, 0o600))
		}
		dir := filepath.Join(t.TempDir(), "bundle")
		p := must.Get(export.Write(t.Context(), in, from, 0, dir))(t)
		text := must.Get(os.ReadFile(filepath.Join(dir, bundle.AttestedName)))(t)
		head, _, err := both.Open(text)
		if err != nil || head.Snapshot != p.Snapshot || head.Head != at {
			t.Errorf("from %d: %+v, %v", from, head, err)
		}
	}
}

// TestAHeadOfAnotherKeyIsNotExported, and is not called a contradiction: the next head may not be
// published yet.
func TestAHeadOfAnotherKeyIsNotExported(t *testing.T) {
	v := newVenue(t, 300)
	in := v.input()
	other := must.Get(evidence.LoadSigner(t.TempDir(), "", "posttrade/other"))(t)
	in.Key = other.VKey
	_, err := export.Write(t.Context(), in, 1, 0, filepath.Join(t.TempDir(), "bundle"))
	if err == nil || errors.Is(err, evidence.ErrContradiction) ||
		!strings.Contains(err.Error(), "is signed with another key") {
		t.Error(err)
	}
}

// TestARefusedNoteNamesItsFile: a bundle has two.
func TestARefusedNoteNamesItsFile(t *testing.T) {
	v := newVenue(t, 300, 500, 100)
	good := v.export(850, 0)
	for _, name := range []string{bundle.CheckpointName, bundle.AttestedName} {
		files := maps.Clone(good)
		other := must.Get(evidence.LoadSigner(t.TempDir(), "", "posttrade/other"))(t)
		v.replace(files, name, must.Get(note.Sign(&note.Note{Text: "a\nb\n"}, other.Signer))(t))
		_, err := bundle.Verify(v.keys(), reading(files), bundle.Options{})
		var refusal *verify.Refusal
		if !errors.As(err, &refusal) || refusal.Where != name {
			t.Errorf("%s: %v", name, err)
		}
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

// TestASnapshotOfWhichTheHeadsNameAnotherFileIsNotUsed: another build has written that file. It says
// nothing against the journal, and the bundle begins at the genesis.
func TestASnapshotOfWhichTheHeadsNameAnotherFileIsNotUsed(t *testing.T) {
	v := newVenue(t, 300, 500, 100)
	head := must.Get(evidence.ParseNote(must.Get(evidence.ReadHead(v.logDir()))(t)))(t)
	head.SnapshotSHA256[0] ^= 1
	in := v.input()
	in.Head = v.signed(&head)
	must.OK(t, os.WriteFile(filepath.Join(v.logDir(), "checkpoints"), append(in.Head, '\n'), 0o600))
	p, err := export.Write(t.Context(), in, 850, 0, filepath.Join(t.TempDir(), "bundle"))
	if err != nil || p.To != 900 || p.Snapshot != 0 {
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
