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

// Options of Verify.
type Options struct {
	Old    []byte    // a note that the auditor has kept: its head must be a prefix; nil: none
	Report io.Writer // gets the lines of the report of ReportFrom to ReportTo; nil: none
	// The report's range; 0: the bundle's own.
	ReportFrom, ReportTo uint64
	// Progress is told how many of how many commands are replayed, after each batch; nil: it is not.
	Progress func(done, of uint64)
}

// Proven is what a bundle has shown.
type Proven struct {
	Manifest
	Signer string
	Head   verify.Checkpoint
	Old    *verify.Extension // nil: no older note was given
	Other  Digest            // of the report of Options.ReportFrom to ReportTo
}

// Verify proves the bundle whose files read gives. The error is a *verify.Refusal, or wraps
// verify.ErrRead.
func Verify(keys *verify.Keys, read verify.Read, o Options) (*Proven, error) {
	c := &checker{keys: keys, read: read, o: o}
	if err := c.prepare(); err != nil {
		return nil, err
	}
	defer c.engine.Close()
	if err := c.replay(); err != nil {
		return nil, err
	}
	if err := c.finish(); err != nil {
		return nil, err
	}
	return &c.proven, nil
}

// checker checks one bundle.
type checker struct {
	keys   *verify.Keys
	read   verify.Read
	o      Options
	m      *Manifest
	proven Proven
	head   verify.Checkpoint
	old    *verify.Checkpoint // nil: none
	tiles  *verify.Tiles

	engine  *matcher.Engine
	out     *matcher.Outlet
	builder leaf.Builder
	tally   *Tally
	report  *Tally // of another range than the bundle's, nil: none
	records *recordReader
	edges   Edges

	batch []command
	got   recordBuffer
	err   error // met while the engine was deciding
}

// file reads a file that the manifest names. One that it does not name is not asked for: a manifest
// with a changed name is at fault, not the folder.
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

func (c *checker) need(name string) ([]byte, error) {
	data, err := c.read(name)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", verify.ErrRead, err)
	}
	return data, nil
}

// prepare reads everything but the records, and makes the engine.
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
		return err
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
func (c *checker) openOld(note []byte) (err error) {
	if c.o.Old == nil {
		return nil
	}
	if c.proven.Old, err = c.keys.Extends(c.o.Old, note, c.read); err == nil {
		c.old = &c.proven.Old.Old
	}
	return err
}

// begin makes the engine at the genesis or from the snapshot, and the builder at its place.
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

func unpack(packed []byte) (io.Reader, error) {
	return zstd.NewReader(bytes.NewReader(packed), zstd.WithDecoderConcurrency(1),
		zstd.WithDecoderMaxMemory(64<<20))
}

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
		return nil, err
	}
	if at.Origin != c.head.Origin || at.Snapshot != c.m.Snapshot ||
		at.SnapshotSHA256 != sha256.Sum256(packed) {
		return nil, refuse(SnapshotName, "it is not the snapshot that %s names", AttestedName)
	}
	if err := verify.IsPrefix(&at, &c.head, c.read); err != nil {
		return nil, err
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

// replay decides every command again, in batches that end where something begins or is compared.
func (c *checker) replay() error {
	for at := c.m.Snapshot; ; {
		for _, t := range []*Tally{c.tally, c.report} {
			if t != nil && t.from == at+1 {
				t.Begin()
			}
		}
		if c.report != nil && at == c.o.ReportTo {
			c.report.Stop()
		}
		n, err := c.fill(c.until(at))
		if err != nil {
			return err
		}
		if n == 0 {
			return nil
		}
		if err := c.decide(); err != nil {
			return err
		}
		at += uint64(n)
		if c.o.Progress != nil {
			c.o.Progress(at-c.m.Snapshot, c.m.To-c.m.Snapshot)
		}
		if c.old != nil && at == c.old.Head {
			if root := c.builder.Root(); root != c.old.HeadRoot {
				return &verify.Refusal{Where: fmt.Sprintf("sequence %d", at), Blames: verify.BlameLog,
					Why: fmt.Sprintf("the records of the leaf lead to %x, the older head has %x: "+
						"history was rewritten", root, c.old.HeadRoot)}
			}
			c.proven.Old.Upto = at
		}
	}
}

// maxBatch is how many commands are decided at a time.
const maxBatch = 1024

// until is the last command of the batch behind at.
func (c *checker) until(at uint64) uint64 {
	end := min(at+maxBatch, c.m.To)
	stops := []uint64{c.m.From - 1, c.o.ReportFrom - 1, c.o.ReportTo}
	if c.old != nil {
		stops = append(stops, c.old.Head)
	}
	for _, stop := range stops {
		if stop > at {
			end = min(end, stop)
		}
	}
	return end
}

// fill reads the commands up to a sequence.
func (c *checker) fill(until uint64) (n int, err error) {
	c.batch = c.batch[:0]
	for c.records.at < until {
		next, more, err := c.records.command()
		if err != nil {
			return 0, err
		}
		if !more {
			return 0, refuse(fmt.Sprintf("sequence %d", c.records.at+1), "%s ends before it", RecordsName)
		}
		c.batch = append(c.batch, next)
	}
	return len(c.batch), nil
}

// decide gives the batch to the engine.
func (c *checker) decide() error {
	list := make([]matcher.Command, len(c.batch))
	for i := range c.batch {
		list[i] = c.batch[i].Command
	}
	if n, err := c.engine.ReplayBatch(list, c.out); err != nil {
		return refuse(fmt.Sprintf("sequence %d", list[n].InputSeq), "%v", err)
	}
	c.out.Flush()
	return c.err
}

// decided compares what the engine has decided with the records.
func (c *checker) decided(events []matcher.Event) {
	for i := range events {
		err := c.builder.Take(&events[i], func(seq uint64) []byte {
			return c.batch[seq-c.batch[0].InputSeq].id
		})
		if c.err == nil { // see may have met a difference
			c.err = err
		}
	}
	for _, t := range []*Tally{c.tally, c.report} {
		if t != nil && c.err == nil {
			c.err = t.Observe(events)
		}
	}
}

// see compares the records of a command: the builder gives the command's last.
func (c *checker) see(inputSeq, _ uint64, _ [verify.SaltBytes]byte, record []byte) {
	if record[0] == verify.KindFill {
		c.got.add(record)
		return
	}
	want := &c.batch[inputSeq-c.batch[0].InputSeq]
	where := fmt.Sprintf("sequence %d", inputSeq)
	if c.err == nil && !bytes.Equal(record, want.record) {
		c.err = refuse(where, "the engine decides %s, its record says %s", said(record),
			said(want.record))
	}
	if c.err == nil && !bytes.Equal(c.got, want.fills) {
		c.err = refuse(where, "the engine executes other fills than its records say")
	}
	c.got = c.got[:0]
}

func said(record []byte) []byte {
	text, err := verify.Decoded(record)
	if err != nil {
		return []byte(err.Error())
	}
	return text
}

// leaf compares a full leaf with the tree, or, behind the tree, leaves it to finish.
func (c *checker) leaf(data []byte) error {
	return c.tiles.Leaf(verify.LeafOf(c.builder.Head()), data)
}

// finish compares the last leaf and the digests.
func (c *checker) finish() error {
	if c.records.next != nil {
		return refuse(fmt.Sprintf("sequence %d", c.m.To+1), "%s goes on behind the range", RecordsName)
	}
	if err := c.lastLeaf(); err != nil {
		return err
	}
	fills, blotter, report, err := c.tally.End()
	if err != nil {
		return err
	}
	for _, d := range []struct {
		name      string
		got, want Digest
	}{{"fills", fills, c.m.Fills}, {"blotter", blotter, c.m.Blotter}, {"report", report, c.m.Report}} {
		if d.got != d.want {
			return refuse(ManifestName, "%s: the range gives %d with SHA-256 %s, it says %d, %s", d.name,
				d.got.Count, d.got.SHA256, d.want.Count, d.want.SHA256)
		}
	}
	if c.report != nil {
		_, _, c.proven.Other, err = c.report.End()
	}
	return err
}

// lastLeaf compares the leaf in which the range ends, if it does not end with it.
func (c *checker) lastLeaf() error {
	first, count := verify.LeafRange(verify.LeafOf(c.m.To))
	if c.m.To == first+count-1 {
		if len(c.edges.After) > 0 {
			return refuse(EdgesName, "no record shares the last leaf")
		}
		return nil
	}
	root := verify.Root(append(c.builder.Hashes(), c.edges.After...))
	index := verify.LeafOf(c.m.To)
	if index < c.head.Size {
		leaf := verify.Leaf{First: first, Count: count, Root: root}
		return c.tiles.Leaf(index, leaf.Append(nil))
	}
	if root != c.head.HeadRoot {
		return refuse(fmt.Sprintf("sequences %d to %d", first, c.head.Head),
			"their records lead to %x, the head is %x", root, c.head.HeadRoot)
	}
	return nil
}

// Is reports that a folder is a bundle.
func Is(read verify.Read) bool {
	_, err := read(ManifestName)
	return !errors.Is(err, fs.ErrNotExist)
}
