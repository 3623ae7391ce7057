package journal

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/cockroachdb/pebble/v2/vfs"

	"posttrade/matcher"
)

// ErrFills reports fill blocks that a replay of the commands does not give. Checksums and chain
// hold then: it is the decisions that differ.
var ErrFills = errors.New("fills are not those of a replay")

// VerifyOptions of Verify, Stats, Export, Read and AcceptHistory. The zero value reads the disk and
// recomputes nothing.
type VerifyOptions struct {
	FS vfs.FS // tests; default the operating system's
	// ArchiveDir is where the archives are; "": what was moved out cannot be read.
	ArchiveDir string
	// Engine, if set, makes an engine at the genesis: Verify then replays every
	// command and compares the fills with the fill blocks, byte for byte.
	Engine func(genesis []byte) (Engine, error)

	boot string
}

// Report is what Verify and Stats saw. After an error it covers what was read before it.
type Report struct {
	Seed [32]byte
	// The end of the history, with what only the tail has; Chain is that of the last commit in the
	// store.
	InputSeq uint64
	TradeSeq uint64
	Chain    [32]byte
	Anchored uint64 // the anchor's input sequence
	// Commits, fills and client ids, with those that only the tail has.
	Blocks    uint64
	Fills     uint64
	ClientIDs uint64
	FirstTime int64 // event times, milliseconds
	LastTime  int64
	RawBytes  uint64 // of command payloads, before packing
	Packed    uint64 // of all blocks, as stored, with envelopes
	Tail      uint64 // commands that only the tail has: the next start puts them into the store
	Replayed  bool   // fills were recomputed
	Snapshots []Snapshot
	Copy      string // of AcceptHistory: where it has copied what it replaced
}

// Verify reads the whole journal in dir, changing nothing, and checks genesis, every checksum,
// every chain link, contiguity of both sequences, client ids, and the anchor. The error names the
// first thing that does not hold by key and sequence; the report covers everything before it. If a
// server has the journal open, Verify reads the history up to some moment after the call (view).
//
//   - Errors: ErrCorrupt, ErrFills, ErrShortened, ErrDiverged, ErrArchived, those of the tail and
//     of the snapshots' manifests, what openView refuses, ctx's own. The files of snapshots are not
//     read.
//   - Cost: every block is read and unpacked, on one goroutine; with Engine also a replay, and the
//     memory of an engine.
func Verify(ctx context.Context, dir string, o VerifyOptions) (Report, error) {
	var r Report
	err := readOnly(dir, &o, func(db *blockStore, genesis []byte, a reading, t *tailImage) error {
		r.Seed, r.Anchored = hashOf(genesis), a.inputSeq
		check, err := newFillCheck(genesis, o.Engine)
		if err != nil {
			return err
		}
		r.Replayed = check != nil
		return errors.Join(verifyAll(ctx, db, &o, dir, a, t, &r, check), check.close())
	})
	return r, err
}

// verifyAll checks the store against the anchor, then what only the tail has, then the manifests,
// and fills r in as it goes. The anchor's point must be the end of a block.
func verifyAll(ctx context.Context, db *blockStore, o *VerifyOptions, dir string, a reading,
	t *tailImage, r *Report, check *fillCheck) error {
	if r.Seed != a.seed {
		return fmt.Errorf("journal: key=g: genesis hash %x, anchor has %x: %w", r.Seed, a.seed,
			ErrDiverged)
	}
	w := newWalker(db, r.Seed)
	defer w.close()
	met := a.inputSeq == 0
	err := w.walk(0, func(b *decoded) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		r.add(b)
		r.InputSeq, r.TradeSeq, r.Chain = w.at.inputSeq, w.at.tradeSeq, w.at.chain
		if w.at.inputSeq == a.inputSeq {
			if met = w.at.chain == a.chain && w.at.tradeSeq == a.tradeSeq; !met {
				return fmt.Errorf("journal: key=%s inputSeq=%d: file=%s offset=%d has another chain: %w",
					w.lastKey(), b.last(), o.FS.PathJoin(dir, anchorName), a.offset, ErrDiverged)
			}
		}
		return check.commit(b)
	})
	if err != nil {
		return err
	}
	switch name := o.FS.PathJoin(dir, anchorName); {
	case w.at.inputSeq < a.inputSeq:
		return fmt.Errorf(
			"journal: last key=%s ends at inputSeq=%d, file=%s offset=%d has seen inputSeq=%d: %w",
			w.lastKey(), w.at.inputSeq, name, a.offset, a.inputSeq, ErrShortened)
	case !met:
		return fmt.Errorf("journal: no block ends at inputSeq=%d, as file=%s offset=%d has seen: %w",
			a.inputSeq, name, a.offset, ErrDiverged)
	}
	if err := checkStrays(db, w.at); err != nil {
		return err
	}
	if err := verifyTail(db, t, w.at, o.boot, r, check); err != nil {
		return err
	}
	list, bad, err := listSnapshots(db)
	r.Snapshots = list
	return errors.Join(err, errors.Join(bad...))
}

// verifyTail checks what only the tail has, and counts it as commits that are still to come. The
// chain stays the store's.
func verifyTail(db *blockStore, t *tailImage, head point, boot string, r *Report,
	check *fillCheck) error {
	if t == nil {
		return nil
	}
	if err := t.compare(db, r.Seed, head, boot); err != nil {
		return err
	}
	return t.commits(head, func(d *decoded) error {
		r.add(d)
		r.InputSeq, r.TradeSeq = d.last(), d.lastTrade()
		r.Tail += uint64(d.count)
		return check.commit(d)
	})
}

// add counts one commit. The times are that of the first commit, and the latest at a commit's end:
// a late price may stand behind younger commands.
func (r *Report) add(b *decoded) {
	if r.Blocks++; r.Blocks == 1 {
		r.FirstTime = b.firstTime
	}
	r.Fills += uint64(b.envelope.fills)
	r.ClientIDs += uint64(b.envelope.ids)
	r.LastTime = max(r.LastTime, b.lastTime)
	r.RawBytes += uint64(b.raw)
	r.Packed += b.stored
}

// fillCheck recomputes fills. A nil fillCheck checks nothing. It holds an engine until close.
type fillCheck struct {
	engine Engine
	out    *matcher.Outlet
	fills  []byte
}

// newFillCheck makes the engine at its genesis; nil when make is nil. The commits must then come
// from the first on.
func newFillCheck(genesis []byte, make func([]byte) (Engine, error)) (*fillCheck, error) {
	if make == nil {
		return nil, nil
	}
	engine, err := make(genesis)
	if err != nil {
		return nil, fmt.Errorf("journal: verify: %w", err)
	}
	c := &fillCheck{engine: engine}
	c.out = matcher.NewOutlet(shadowEvents, func(events []matcher.Event) {
		for i := range events {
			if events[i].Kind == matcher.EventFilled {
				f := events[i].Fill()
				c.fills = append(c.fills, f.Bytes()[:]...)
			}
		}
	})
	return c, nil
}

// commit replays one commit and compares its fills with the block's, byte for byte. ErrFills names
// the first that differs.
func (c *fillCheck) commit(b *decoded) error {
	if c == nil {
		return nil
	}
	c.fills = c.fills[:0]
	if n, err := c.engine.ReplayBatch(b.commands, c.out); err != nil {
		return fmt.Errorf("journal: verify inputSeq=%d: %w", b.commands[n].InputSeq, err)
	}
	c.out.Flush()
	stored := fillBytesOf(b.fills)
	if bytes.Equal(c.fills, stored) {
		return nil
	}
	at := 0
	for at < min(len(stored), len(c.fills)) && stored[at] == c.fills[at] {
		at++
	}
	return fmt.Errorf(
		"journal: key=%s: %d fills from inputSeq=%d, a replay gives %d, first difference at "+
			"tradeSeq=%d: %w",
		keyName(newKey(keyFills, b.link)), len(b.fills), b.first, len(c.fills)/recordBytes,
		b.link+uint64(at/recordBytes), ErrFills)
}

func (c *fillCheck) close() error {
	if c == nil {
		return nil
	}
	return c.engine.Close()
}

// Stats reads what Verify reads without recomputing fills, and reports it.
func Stats(ctx context.Context, dir string, o VerifyOptions) (Report, error) {
	o.Engine = nil
	return Verify(ctx, dir, o)
}

// readOnly opens an existing journal without changing it, for the time of f. To an error it adds
// what is known of its cause: a copy of an open journal, a list of files that was cut.
func readOnly(dir string, o *VerifyOptions, f func(db *blockStore, genesis []byte, a reading,
	t *tailImage) error) (err error) {
	defer func() { err = withCopied(err, o.FS, dir) }()
	s, err := openView(dir, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	return s.explained(f(s.db, s.genesis, s.anchor, s.tail))
}

// Export writes the commands from..to (0 = the head) of the journal in dir as ndjson, one object a
// line, with stable field names; see exportCommand. It verifies what it reads. Lines before an
// error have been written: the caller must look at the error before it trusts them. from may be the
// next sequence, which has no lines; one behind that is an error.
func Export(ctx context.Context, dir string, w io.Writer, from, to uint64, o VerifyOptions) error {
	j, err := Read(dir, o)
	if err != nil {
		return err
	}
	return errors.Join(j.Export(ctx, w, from, to), j.Close())
}

// Export is Export of an open journal, up to its durable head.
func (j *Journal) Export(ctx context.Context, w io.Writer, from, to uint64) error {
	if err := j.reaches(from); err != nil {
		return err
	}
	var line []byte
	return j.replay(ctx, from, to, false, func(d *decoded) error {
		line = line[:0]
		return exportCommit(w, &line, d)
	})
}

// reaches is an error when the journal ends before the command ahead of from.
func (j *Journal) reaches(from uint64) error {
	if head, _ := j.Head(); from > head+1 {
		return fmt.Errorf("journal: export from=%d: the journal ends at inputSeq=%d", from, head)
	}
	return nil
}

// exportCommit writes the lines of one commit, in line's memory.
func exportCommit(w io.Writer, line *[]byte, d *decoded) error {
	for i := range d.commands {
		c := &d.commands[i]
		*line = exportCommand(*line, c, d.ids.Of(c.InputSeq))
	}
	if _, err := w.Write(*line); err != nil {
		return fmt.Errorf("journal: export inputSeq=%d: %w", d.first, err)
	}
	return nil
}
