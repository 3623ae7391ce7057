package tca

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"posttrade/matcher"
	"posttrade/matcher/int128"
	"posttrade/ring/disk"
)

// The files of the index.
const (
	samplesName    = "samples"
	arrivalsName   = "arrivals"
	checkpointName = "checkpoint"
)

// checkpointMagic names the format and its version.
const checkpointMagic = "PTTCA001"

// errCheckpoint reports a checkpoint that cannot be used.
var errCheckpoint = errors.New("unusable checkpoint")

// A checkpoint, in words of 64 bits, little endian, after the magic and the SHA-256 of the genesis
// record:
//
//	inputSeq, the 8 words of that command
//	blocks of the file arrivals, entries behind them, px, millis and print of each
//	blocks of the file samples, securities with a sample; of each:
//	  id, first millis, full leaves, entries behind them, millis, px and sum (2) of each
//	  levels above the leaves; of each: full blocks, entries behind them, millis and number of each
//	open orders; of each, ascending: orderRef, px, millis
//
// The end is the SHA-256 of all that. A checkpoint depends on the commands alone: the same history
// gives the same bytes.

// write writes the index as a checkpoint.
//
// It holds no lock: only Run's goroutine or Close calls it, and no other goroutine changes the
// index. Securities are written in the order of their ids and orders in that of their orderRefs, so
// that equal indexes give equal bytes.
func (x *index) write(to io.Writer, genesis [sha256.Size]byte) error {
	w := &wordWriter{w: bufio.NewWriterSize(to, 1<<16), sum: sha256.New()}
	w.bytes([]byte(checkpointMagic))
	w.bytes(genesis[:])
	w.words(x.applied)
	w.bytes(x.last.Bytes()[:])
	w.words(x.executions.file.blocks, uint64(len(x.executions.recent)))
	for _, e := range x.executions.recent {
		w.words(uint64(e.px), uint64(e.millis), e.print)
	}
	known := 0
	for id := range x.samples.of {
		known += min(1, len(x.samples.of[id].recent))
	}
	w.words(x.samples.file.blocks, uint64(known))
	for id := range x.samples.of {
		h := &x.samples.of[id]
		if len(h.recent) == 0 {
			continue
		}
		w.words(uint64(id), uint64(h.firstMillis), h.leaves, uint64(len(h.recent)))
		for _, s := range h.recent {
			w.words(uint64(s.millis), uint64(s.px), uint64(s.sum.Hi), s.sum.Lo)
		}
		w.words(uint64(len(h.nodes)))
		for _, e := range h.nodes {
			w.words(e.blocks, uint64(len(e.recent)))
			for _, b := range e.recent {
				w.words(uint64(b.millis), b.number)
			}
		}
	}
	w.words(uint64(len(x.open)))
	for _, ref := range slices.Sorted(maps.Keys(x.open)) {
		w.words(uint64(ref), uint64(x.open[ref].px), uint64(x.open[ref].millis))
	}
	if w.err == nil {
		_, w.err = w.w.Write(w.sum.Sum(nil))
	}
	return errors.Join(w.err, w.w.Flush())
}

// maxSecurity is the largest id that the engine issues.
const maxSecurity = 1<<24 - 1

// read fills the index from a checkpoint. It changes no file. It sets the numbers of blocks that
// the files of executions and samples must have.
//
// The index must be empty. After an error it is filled in part and must be cleared. Errors are
// errCheckpoint.
func (x *index) read(text []byte, genesis [sha256.Size]byte) (sampleBlocks,
	arrivalBlocks uint64, err error) {
	body := len(text) - sha256.Size
	head := len(checkpointMagic) + sha256.Size
	if body < head || sha256.Sum256(text[:body]) != [sha256.Size]byte(text[body:]) {
		return 0, 0, fmt.Errorf("tca: checkpoint of %d bytes does not match its checksum: %w", len(text),
			errCheckpoint)
	}
	if string(text[:len(checkpointMagic)]) != checkpointMagic {
		return 0, 0, fmt.Errorf("tca: checkpoint format %q, want %q: %w",
			text[:len(checkpointMagic)], checkpointMagic, errCheckpoint)
	}
	if !bytes.Equal(text[len(checkpointMagic):head], genesis[:]) {
		return 0, 0, fmt.Errorf("tca: checkpoint of another genesis: %w", errCheckpoint)
	}
	r := &wordReader{b: text[head:body]}
	x.applied = r.word()
	if len(r.b) >= matcher.CommandBytes {
		r.b = r.b[copy(x.last.Bytes()[:], r.b):]
	}
	arrivalBlocks = r.word()
	for range r.count(executionWords, blockExecutions-1) {
		x.executions.recent = append(x.executions.recent,
			execution{arrival{int64(r.word()), int64(r.word())}, r.word()})
	}
	sampleBlocks = r.word()
	for range r.count(8, maxSecurity) {
		id := r.word()
		if id > maxSecurity {
			r.bad = true
			break
		}
		r.history(x.samples.history(uint32(id)))
	}
	for range r.count(3, 1<<32-1) {
		ref := uint32(r.word())
		x.open[ref] = arrival{int64(r.word()), int64(r.word())}
	}
	if r.bad || len(r.b) != 0 {
		return 0, 0, fmt.Errorf("tca: checkpoint inputSeq=%d is not well formed: %w", x.applied,
			errCheckpoint)
	}
	return sampleBlocks, arrivalBlocks, nil
}

// history reads the open part of one security's samples, and refuses counts that no history can
// have.
func (r *wordReader) history(h *history) {
	h.firstMillis, h.leaves = int64(r.word()), r.word()
	for range r.count(sampleWords, leafSamples) {
		h.recent = append(h.recent,
			sample{int64(r.word()), int64(r.word()), int128.Int{Hi: int64(r.word()), Lo: r.word()}})
	}
	for range r.count(2, maxLevel) {
		e := edge{blocks: r.word()}
		for range r.count(branchWords, nodeBranches) {
			e.recent = append(e.recent, branch{int64(r.word()), r.word()})
		}
		h.nodes = append(h.nodes, e)
		r.bad = r.bad || len(e.recent) == 0
	}
	r.bad = r.bad || len(h.recent) == 0
}

// save writes a checkpoint of the index, after it has synced the blocks that the checkpoint depends
// on. Only Run's goroutine or Close calls it.
//
// The order is what makes it safe: blocks on the disk first, then the checkpoint in one rename
// (disk.Replace). After a crash in between, the older checkpoint counts on fewer blocks, which are
// there.
func (t *TCA) save() error {
	if err := errors.Join(t.index.samples.file.sync(), t.index.executions.file.sync()); err != nil {
		return err
	}
	name := filepath.Join(t.o.Dir, checkpointName)
	err := disk.Replace(name, 0o600, func(w io.Writer) error { return t.index.write(w, t.genesis) })
	if err != nil {
		return fmt.Errorf("tca: checkpoint inputSeq=%d: %w", t.index.applied, err)
	}
	t.saved = t.index.applied
	return nil
}

// load fills the index from the checkpoint, and empties it when there is no usable one.
//
// The error is one of the file system. torn stays set then, so that no report uses the index.
func (t *TCA) load() error {
	text, err := os.ReadFile(filepath.Join(t.o.Dir, checkpointName))
	if errors.Is(err, fs.ErrNotExist) {
		return t.reset()
	} else if err != nil {
		return fmt.Errorf("tca: read checkpoint: %w", err)
	}
	t.mu.Lock()
	t.clear()
	sampleBlocks, arrivalBlocks, err := t.index.read(text, t.genesis)
	if err == nil {
		err = errors.Join(t.index.samples.file.cut(sampleBlocks),
			t.index.executions.file.cut(arrivalBlocks))
	}
	t.torn = err != nil
	t.mu.Unlock()
	if errors.Is(err, errCheckpoint) {
		t.o.Logger.Warn("tca: builds the price history again", "cause", err)
		return t.reset()
	} else if err != nil {
		return err
	}
	t.saved = t.index.applied
	t.applied.Store(t.index.applied)
	return nil
}

// reset empties the index and its files. It removes the checkpoint first: the checkpoint must not
// be valid for the blocks that are written next.
func (t *TCA) reset() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.torn = true
	t.applied.Store(0)
	t.saved = 0
	err := os.Remove(filepath.Join(t.o.Dir, checkpointName))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("tca: remove checkpoint: %w", err)
	}
	if err := disk.SyncDir(t.o.Dir); err != nil {
		return err
	}
	t.clear()
	if err := errors.Join(t.index.samples.file.cut(0), t.index.executions.file.cut(0)); err != nil {
		return err
	}
	t.torn = false
	t.damaged.Store(false)
	return nil
}

// clear empties the index but not its files. The caller holds t.mu.
//
// The files stay open and are shared with the new index.
func (t *TCA) clear() {
	t.index = index{
		samples:    samples{file: t.index.samples.file},
		executions: executions{file: t.index.executions.file},
		open:       map[uint32]arrival{},
	}
}
