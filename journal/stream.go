package journal

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"

	"posttrade/journal/transfer"
)

// The longest body of a frame that is held in memory, by kind.
const (
	// The genesis, without its header.
	maxGenesis = 64 << 20
	// A manifest of a snapshot: JSON of some hundred bytes.
	maxManifest = 64 << 10
)

// maxBlock is the longest block of a kind: one that does not shrink is stored as it is.
func maxBlock(kind byte) uint64 { return envelopeBytes + maxRawOf(kind) }

// target takes what a streamVerifier reads, in the order of the stream: begin, then for each commit
// its blocks by put and committed, then for a snapshot its manifest by put, its files by file and
// filed. A block is given before it is verified; committed says that the blocks of the commit hold.
// What came before an error is for the target to discard. Slices are valid during the call only.
type target interface {
	begin(value []byte) error                          // the value under the key g
	put(key, value []byte) error                       // a block, or the manifest of a snapshot
	committed() error                                  // the last commit is complete
	file(in *transfer.Reader, file SnapshotFile) error // reads a file of the snapshot off the stream
	filed() error                                      // a snapshot's files are complete
}

// streamVerifier reads the stream of a transfer, or several that follow each other, and verifies
// everything: framing, checksums, the chain, that neither sequence has a hole, that fills and
// client ids belong to their commits, and the hash over each stream.
//
// The frames, by their kinds; what is in [] may be missing, * may be repeated:
//
//	g [b] (c [f] [i])* [s d [d]] e
//
// The genesis comes first, and in a section (b) the commit that it goes on from.
type streamVerifier struct {
	// Gets what the stream holds, up to limit.
	to    target
	limit uint64 // the last sequence to take; 0: all

	// Of the stream being read.
	in *transfer.Reader
	// The journal's genesis, from the first stream; each further one must have the same.
	genesis []byte
	begun   bool    // the target has the genesis
	walk    *walker // checks the commits; it reads the fills and ids off the stream
	held    bool    // a commit that the limit cuts: its blocks are not given to the target
	seen    Checked
}

// Checked is what was found in a stream.
type Checked struct {
	Genesis []byte
	// The commits before and at the end of what was read; from the first command on, From has zero
	// sequences and the hash of the genesis as its chain.
	From, To  Point
	FirstTime int64 // event times, milliseconds; 0: none
	LastTime  int64
	Snapshot  uint64 // the sequence of the snapshot; 0: none
}

// base makes the next stream one that continues, at p, the history with a genesis of that hash.
// Without base the first stream begins with the first command.
func (c *streamVerifier) base(seed [chainBytes]byte, p Point) {
	c.walk = c.newWalker(seed)
	c.walk.at = p.point()
}

// newWalker returns a walker that has no store: commits are given to its read, and it gets the
// other blocks of a commit from the stream.
func (c *streamVerifier) newWalker(seed [chainBytes]byte) *walker {
	w := newWalker(nil, seed)
	w.get = c.companion
	return w
}

func (c *streamVerifier) close() {
	if c.walk != nil {
		c.walk.close()
	}
}

// read reads one stream to its end, which is also the end of r. Errors: ErrBase when the stream
// does not go on from where the verifier is, transfer.ErrNotWhole for content that does not hold,
// and r's own and the target's as they are.
func (c *streamVerifier) read(r io.Reader) error {
	c.in = transfer.NewReader(r)
	section, err := c.in.Begin()
	if err != nil {
		return err
	}
	if err := c.begin(); err != nil {
		return err
	}
	if section {
		if err := c.follows(); err != nil {
			return err
		}
	} else if c.walk.at.inputSeq > 0 {
		return c.in.Bad("a whole journal, want what follows inputSeq=%d: %w", c.walk.at.inputSeq, ErrBase)
	}
	if c.seen.Genesis == nil {
		c.seen.Genesis, c.seen.From = c.genesis, c.walk.at.exported()
	}
	err = c.body()
	c.seen.To = c.walk.at.exported()
	return err
}

// begin reads the genesis. The first stream's opens the target, the others' must be the same
// (ErrBase). It also fixes the seed that the chain starts from.
func (c *streamVerifier) begin() error {
	v, err := c.in.Expect(keyGenesis, maxGenesis+genesisHeader)
	if err != nil {
		return err
	}
	genesis, err := parseGenesis(v)
	if err != nil {
		return c.in.Bad("key=g: %w", err)
	}
	seed := sha256.Sum256(genesis)
	c.genesis = genesis
	if c.walk == nil {
		c.walk = c.newWalker(seed)
	}
	if seed != c.walk.seed {
		return c.in.Bad("genesis hash %x, want %x: %w", seed, c.walk.seed, ErrBase)
	}
	if c.begun {
		return nil
	}
	c.begun = true
	return c.to.begin(v)
}

// follows reads the commit that the stream goes on from, and compares it with where the verifier
// is.
func (c *streamVerifier) follows() error {
	v, err := c.in.Expect(transfer.KindBase, baseBytes)
	if err != nil {
		return err
	}
	if len(v) != baseBytes {
		return c.in.Bad("base of %d bytes, want %d", len(v), baseBytes)
	}
	if p := parsePoint(v); p != c.walk.at {
		return c.in.Bad("goes on from inputSeq=%d chain=%x, want inputSeq=%d chain=%x: %w",
			p.inputSeq, p.chain[:4], c.walk.at.inputSeq, c.walk.at.chain[:4], ErrBase)
	}
	return nil
}

// body reads the frames behind the genesis, up to the end: commits, then at most one snapshot. A
// frame in any other place is refused.
func (c *streamVerifier) body() error {
	snapshot := false
	for {
		kind, length, err := c.in.Next()
		switch {
		case err != nil:
			return err
		case kind == keyCommands && !snapshot && !c.full():
			err = c.commit(length)
		case c.full() && !snapshot && (kind == keyCommands || kind == keyFills || kind == keyIDs):
			err = c.pass(kind, length)
		case kind == keySnapshot && !snapshot:
			snapshot = true
			err = c.snapshot(length)
		case kind == transfer.KindEnd:
			return c.in.End(length)
		default:
			return c.in.Bad("frame %q out of place", kind)
		}
		if err != nil {
			return err
		}
	}
}

// full reports that the verifier has all up to its limit.
func (c *streamVerifier) full() bool { return c.limit > 0 && c.walk.at.inputSeq >= c.limit }

// pass reads a block behind the limit. Only the hash over the stream covers it.
func (c *streamVerifier) pass(kind byte, length uint64) error {
	_, err := c.in.Body(length, maxBlock(kind))
	return err
}

// commit reads one commit, gives its blocks to the target as they come, verifies them, and then
// says that the commit is complete. Of a commit that the limit cuts the target gets the part alone.
func (c *streamVerifier) commit(length uint64) error {
	v, err := c.in.Body(length, maxBlock(keyCommands))
	if err != nil {
		return err
	}
	before := c.walk.at
	key := newKey(keyCommands, before.inputSeq+1)
	c.held = c.cuts(v)
	if err := c.put(key, v); err != nil {
		return err
	}
	if err := c.walk.read(key, v); err != nil {
		if errors.Is(err, ErrCorrupt) {
			return c.in.Bad("%w", err)
		}
		return err
	}
	d := c.walk.block
	if c.held {
		c.held = false
		if err := c.part(d, before); err != nil {
			return err
		}
	}
	if c.seen.FirstTime == 0 {
		c.seen.FirstTime = d.firstTime
	}
	c.seen.LastTime = max(c.seen.LastTime, d.lastTime)
	return c.to.committed()
}

// cuts reports that the limit lies inside of a block. A damaged one is found later.
func (c *streamVerifier) cuts(v []byte) bool {
	if c.limit == 0 {
		return false
	}
	e, _, err := parseEnvelope(v, keyCommands)
	return err == nil && e.last() > c.limit
}

// part packs the part of a commit up to the limit as a commit of its own, as if it had come alone:
// with its own chain, which is not the chain that the history has there. The verifier ends with it.
func (c *streamVerifier) part(d *decoded, before point) error {
	var b Block
	for i := range d.commands {
		if d.commands[i].InputSeq <= c.limit {
			b.Command(&d.commands[i])
		}
	}
	for i := range d.fills {
		if d.fills[i].InputSeq <= c.limit {
			b.Fill(&d.fills[i])
		}
	}
	for ids := d.ids; ; {
		at, id, ok := ids.Next()
		if !ok || at > c.limit {
			break
		}
		b.ClientID(at, id)
	}
	p, err := newPacker(CodecS2)
	if err != nil {
		return err
	}
	seal := sealer{packer: p}
	c.walk.at, err = seal.seal(&b, &before, func(kind byte, seq uint64, block []byte) error {
		return c.to.put(newKey(kind, seq), block)
	})
	return err
}

// companion gives the walker a block of the commit that it is reading: the stream's next frame,
// which must be of that kind.
func (c *streamVerifier) companion(key []byte) ([]byte, io.Closer, error) {
	v, err := c.in.Expect(key[0], maxBlock(key[0]))
	if err != nil {
		return nil, nil, err
	}
	return v, io.NopCloser(nil), c.put(key, v)
}

// put gives a block to the target.
func (c *streamVerifier) put(key, value []byte) error {
	if c.held {
		return nil
	}
	return c.to.put(key, value)
}

// snapshot reads the manifest and the files that it names. One behind the limit is passed over. The
// files' names must be those that a snapshot of that sequence has: a name decides where the target
// writes.
func (c *streamVerifier) snapshot(length uint64) error {
	v, err := c.in.Body(length, maxManifest)
	if err != nil {
		return err
	}
	s, err := readManifest(v)
	if err != nil {
		return c.in.Bad("manifest: %w", err)
	}
	take := c.limit == 0 || s.InputSeq <= c.limit
	names := []string{stateName(s.InputSeq)}
	files := []SnapshotFile{s.State}
	if s.Views != nil {
		names, files = append(names, viewsName(s.InputSeq)), append(files, *s.Views)
	}
	for i, f := range files {
		if f.Path != snapshotsName+"/"+names[i] || take && s.InputSeq > c.walk.at.inputSeq {
			return c.in.Bad("manifest of inputSeq=%d, head is %d, names file=%q: %w",
				s.InputSeq, c.walk.at.inputSeq, f.Path, errSizes)
		}
	}
	if take {
		c.seen.Snapshot = s.InputSeq
		if err := c.to.put(newKey(keySnapshot, s.InputSeq), v); err != nil {
			return err
		}
	}
	for _, f := range files {
		if err := c.file(f, take); err != nil {
			return err
		}
	}
	if !take {
		return nil
	}
	return c.to.filed()
}

// file reads one file of the snapshot, whose length the manifest has announced.
func (c *streamVerifier) file(s SnapshotFile, take bool) error {
	kind, length, err := c.in.Next()
	if err != nil {
		return err
	}
	if kind != transfer.KindFile || length != uint64(s.Bytes) {
		return c.in.Bad("frame %q of %d bytes, want file=%s of %d", kind, length, s.Path, s.Bytes)
	}
	if !take {
		return c.in.Copy(io.Discard, length)
	}
	return c.to.file(c.in, s)
}

// CheckStream reads a stream as ReceiveAll does, and writes nothing. With a base the stream must be
// what comes after that commit of the journal whose genesis has that hash; with the zero Point seed
// is not used. After an error Checked has what was read before it.
func CheckStream(r io.Reader, seed [32]byte, base Point) (Checked, error) {
	v := streamVerifier{to: discardTarget{}}
	if base.InputSeq > 0 {
		v.base(seed, base)
	}
	defer v.close()
	err := v.read(r)
	return v.seen, err
}

// discardTarget is the target of a streamVerifier that only checks.
type discardTarget struct{}

func (discardTarget) begin([]byte) error    { return nil }
func (discardTarget) put(_, _ []byte) error { return nil }
func (discardTarget) committed() error      { return nil }
func (discardTarget) filed() error          { return nil }

func (discardTarget) file(in *transfer.Reader, s SnapshotFile) error {
	sum := sha256.New()
	if err := in.Copy(sum, uint64(s.Bytes)); err != nil {
		return err
	}
	return s.same(in, sum.Sum(nil))
}

// same compares the hash of a file with that of the manifest. ErrSnapshot, at the place in the
// stream where the file ends.
func (s *SnapshotFile) same(in *transfer.Reader, sum []byte) error {
	if got := fmt.Sprintf("%x", sum); got != s.SHA256 {
		return in.Bad("file=%s: sha256 %s, want %s: %w", s.Path, got, s.SHA256, ErrSnapshot)
	}
	return nil
}
