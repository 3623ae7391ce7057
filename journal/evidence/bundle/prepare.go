package bundle

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/klauspost/compress/zstd"

	"posttrade/journal/evidence/leaf"
	"posttrade/journal/evidence/verify"
	"posttrade/matcher"
)

// file reads a file that the manifest names. One that it does not name is not asked for: a manifest
// with a changed name is at fault, not the folder.
//
// The hash is only a first look, which names the file at fault: the manifest itself is not signed.
func (c *checker) file(name string) ([]byte, error) {
	if _, named := c.m.Files[name]; !named {
		return nil, refuse(ManifestName, "it does not name %s", name)
	}
	data, err := c.need(name)
	if err != nil {
		return nil, err
	}
	if sum := Sum(sha256.Sum256(data)); sum != c.m.Files[name] {
		return nil, refuse(name, "its SHA-256 is %s, %s has %q", sum, ManifestName, c.m.Files[name])
	}
	return data, nil
}

// need reads a file without which nothing can be judged. That it cannot be read proves nothing
// against the bundle: ErrRead, exit code 1.
func (c *checker) need(name string) ([]byte, error) {
	data, err := c.read(name)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", verify.ErrRead, err)
	}
	return data, nil
}

// prepare reads everything but the records, and makes the engine.
//
// The signed head comes first: the range, the origin, and later every leaf are compared with it.
func (c *checker) prepare() error {
	text, err := c.need(ManifestName)
	if err != nil {
		return err
	}
	if c.m, err = parseManifest(text); err != nil {
		if !verify.LooksLike(text, "origin", "snapshot", "blotter", "report", "files", "sha256") {
			err = fmt.Errorf("%w: %s is not a manifest: %v", verify.ErrRead, ManifestName, err)
		}
		return err
	}
	note, err := c.file(CheckpointName)
	if err != nil {
		return err
	}
	if c.head, c.proven.Signer, err = c.keys.Open(note); err != nil {
		return within(CheckpointName, err)
	}
	c.proven.Manifest, c.proven.Head = *c.m, c.head
	switch {
	case c.m.Origin != c.head.Origin:
		return refuse(ManifestName, "its origin is %q, its note's is %q", c.m.Origin, c.head.Origin)
	case c.m.To > c.head.Head:
		return refuse(ManifestName, "it goes to sequence %d, its note ends at %d", c.m.To, c.head.Head)
	}
	c.tiles = verify.NewTiles(&c.head, c.read)
	if err := c.openOld(note); err != nil {
		return err
	}
	return c.begin()
}

// openOld compares the note that the auditor has kept with the bundle's.
//
// The tiles of the bundle must be enough for it. What lies in the older head's open leaf is
// compared by the replay, if the bundle covers it.
func (c *checker) openOld(note []byte) (err error) {
	if c.o.Old == nil {
		return nil
	}
	if c.proven.Old, err = c.keys.Extends(c.o.Old, note, c.read); err == nil {
		c.old = &c.proven.Old.Old
	}
	return err
}

// begin makes the engine at the genesis or from the snapshot, and the builder at its place. The
// genesis record is proven as leaf 0: the salts' key and the limits come from it.
func (c *checker) begin() error {
	text, err := c.file(GenesisName)
	if err != nil {
		return err
	}
	g, err := matcher.ParseGenesis(text)
	if err != nil {
		return refuse(GenesisName, "%v", err)
	}
	if c.builder.Key, err = leaf.SaltKey(g, sha256.Sum256(text)); err != nil {
		return refuse(GenesisName, "%v", err)
	}
	if err := c.tiles.Leaf(0, leaf.Genesis(&c.builder.Key, text)); err != nil {
		return err
	}
	packed, err := c.file(RecordsName)
	if err != nil {
		return err
	}
	plain, err := unpack(packed)
	if err != nil {
		return refuse(RecordsName, "%v", err)
	}
	if c.records, err = newRecordReader(plain, c.m.Snapshot); err != nil {
		return err
	}
	edge, err := c.file(EdgesName)
	if err != nil {
		return err
	}
	if c.edges, err = parseEdges(edge); err != nil {
		return err
	}
	if c.engine, err = c.makeEngine(g); err != nil {
		return err
	}
	c.builder.Resume(c.m.Snapshot+1, c.edges.Before)
	c.builder.Full, c.builder.Seen = c.leaf, c.see
	c.out = matcher.NewOutlet(1024, c.decided)
	c.tally = NewTally(c.m.From, c.engine, nil)
	if c.o.Report != nil {
		c.report = NewTally(c.o.ReportFrom, c.engine, c.o.Report)
	}
	return nil
}

// unpack reads zstd. The bounds are there because the bytes come from strangers: one goroutine, and
// at most 64 MiB for the decoder.
func unpack(packed []byte) (io.Reader, error) {
	return zstd.NewReader(bytes.NewReader(packed), zstd.WithDecoderConcurrency(1),
		zstd.WithDecoderMaxMemory(64<<20))
}

// makeEngine makes the engine that stands before the records. A snapshot must be the one that a
// signed head of the same log names, and that head's tree the beginning of this one's.
func (c *checker) makeEngine(g *matcher.Genesis) (*matcher.Engine, error) {
	if c.m.Snapshot == 0 {
		e, err := matcher.New(g)
		if err != nil {
			return nil, refuse(GenesisName, "%v", err)
		}
		return e, nil
	}
	packed, err := c.file(SnapshotName)
	if err != nil {
		return nil, err
	}
	note, err := c.file(AttestedName)
	if err != nil {
		return nil, err
	}
	at, _, err := c.keys.Open(note)
	if err != nil {
		return nil, within(AttestedName, err)
	}
	if at.Origin != c.head.Origin || at.Snapshot != c.m.Snapshot ||
		at.SnapshotSHA256 != sha256.Sum256(packed) {
		return nil, refuse(SnapshotName, "it is not the snapshot that %s names", AttestedName)
	}
	if err := verify.IsPrefix(&at, &c.head, c.read); err != nil {
		return nil, err
	}
	for _, head := range []*verify.Checkpoint{&c.head, c.old} {
		if head != nil && head.Snapshot == at.Snapshot && !head.Names(&at) {
			c.proven.Differing = append(c.proven.Differing, *head)
		}
	}
	plain, err := unpack(packed)
	if err == nil {
		var e *matcher.Engine
		if e, err = matcher.ReadSnapshot(g, plain); err == nil && e.AppliedSeq() == c.m.Snapshot {
			return e, nil
		}
		if err == nil {
			err = errors.Join(fmt.Errorf("it is of sequence %d", e.AppliedSeq()), e.Close())
		}
	}
	return nil, refuse(SnapshotName, "%v", err)
}

// within names the file that a refusal of a note is about: a bundle has two.
func within(name string, err error) error {
	var refused *verify.Refusal
	if errors.As(err, &refused) && refused.Where == "" {
		return &verify.Refusal{Where: name, Why: refused.Why, Blames: refused.Blames}
	}
	return err
}

// Is reports that a folder is a bundle: that it has a manifest, whether or not it can be read.
func Is(read verify.Read) bool {
	_, err := read(ManifestName)
	return !errors.Is(err, fs.ErrNotExist)
}
