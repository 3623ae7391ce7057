package bundle

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"runtime"

	"posttrade/journal/evidence/leaf"
	"posttrade/journal/evidence/verify"
	"posttrade/matcher"
)

// Options of Verify.
type Options struct {
	// Old is a note that the auditor has kept: its head must be a prefix; nil: none.
	Old []byte
	// Report gets the lines of the report of ReportFrom to ReportTo; nil: none is made. Its error ends
	// the verification.
	Report io.Writer
	// The report's range. It must lie behind the snapshot and within the bundle, as OpenReport makes
	// sure.
	ReportFrom, ReportTo uint64
	// Progress is told how many of how many commands are replayed, after each batch; nil: it is not.
	Progress func(done, of uint64)
}

// Proven is what a bundle has shown. The manifest in it holds: its digests have been computed
// again.
type Proven struct {
	Manifest
	// Signer is the name and number of the log's key that has signed Head.
	Signer string
	Head   verify.Checkpoint
	Old    *verify.Extension // nil: no older note was given
	Other  Digest            // of the report of Options.ReportFrom to ReportTo
	// Differing are the heads, of Head and of the older note, that name another file of the snapshot
	// than the bundle has: see verify.Extension.TwoSnapshots.
	Differing []verify.Checkpoint
}

// Verify proves the bundle whose files read gives. The error is a *verify.Refusal, or wraps
// verify.ErrRead.
//
// read is asked for the files of the bundle and for the tiles that bind it to the head. Nothing
// that it gives is believed.
//
// Cost: the replay of the whole bundle; one engine, and the compressed records, in memory.
func Verify(keys *verify.Keys, read verify.Read, o Options) (*Proven, error) {
	c := &checker{keys: keys, read: read, o: o}
	if err := c.prepare(); err != nil {
		return nil, err
	}
	defer func() { c.engine.Close() }() // the one of the end
	if err := c.replay(); err != nil {
		return nil, err
	}
	if err := c.finish(); err != nil {
		return nil, err
	}
	return &c.proven, nil
}

// checker checks one bundle, on one goroutine. prepare makes everything below, replay decides the
// commands, and finish compares what only the end shows.
type checker struct {
	keys *verify.Keys
	read verify.Read
	o    Options
	// m is the manifest: what the bundle claims. head is the signed head: what is believed.
	m      *Manifest
	proven Proven
	head   verify.Checkpoint
	// old is the head of Options.Old; nil: none was given. Its open leaf is compared by the replay.
	old *verify.Checkpoint
	// tiles has the leaves' hashes of head's tree.
	tiles *verify.Tiles

	// engine decides the records again; out is where its events go, in pieces that may end within a
	// command.
	engine *matcher.Engine
	out    *matcher.Outlet
	// builder makes records and leaves of what the engine decides, as the log has made its own.
	builder leaf.Builder
	// tally computes what the manifest says of the range.
	tally *Tally
	// report is of another range than the bundle's; nil: none.
	report  *Tally
	records *recordReader
	// edges are the hashes beside the range, which no record in the bundle gives.
	edges Edges

	// batch has the commands being decided, got the fills of the one that passes, with their lengths.
	batch []command
	got   recordBuffer
	// err is the first difference, met while the engine was deciding: its outlet cannot return one.
	err error
}

// replay decides every command again, in batches that end where something begins or is compared: at
// the ends of the two ranges and at the older head.
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
//
// It bounds the memory, and how often progress is told.
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

// maxFillBytes is how many bytes of fills end a batch: each of its commands may have as many fills
// as orders are open.
const maxFillBytes = 4 << 20

// fill reads the commands up to a sequence into the batch, or fewer when they have many fills or
// one raises a capacity. Fewer than the manifest says are a refusal.
func (c *checker) fill(until uint64) (n int, err error) {
	c.batch = c.batch[:0]
	open, bytes := c.engine.Counts().OpenOrders, 0
	for c.records.at < until && bytes < maxFillBytes {
		// A command fills each open order at most once, and each match has two fills. Every command of
		// the batch may open an order.
		next, more, err := c.records.command(2 * (open + len(c.batch) + 1))
		if err != nil {
			return 0, err
		}
		if !more {
			return 0, refuse(fmt.Sprintf("sequence %d", c.records.at+1), "%s ends before it", RecordsName)
		}
		c.batch = append(c.batch, next)
		bytes += len(next.fills)
		if next.raises() {
			break
		}
	}
	return len(c.batch), nil
}

// decide gives the batch to the engine, which compares as it goes (decided). The engine checks the
// form of every command, because the records come from strangers.
func (c *checker) decide() error {
	list := make([]matcher.Command, len(c.batch))
	for i := range c.batch {
		list[i] = c.batch[i].Command
	}
	room := c.engine.Capacities()
	if n, err := c.engine.ReplayBatch(list, c.out); err != nil {
		return refuse(fmt.Sprintf("sequence %d", list[n].InputSeq), "%v", err)
	}
	c.out.Flush()
	if c.err == nil && c.engine.Capacities() != room {
		return c.rebuild()
	}
	return c.err
}

// rebuild makes the engine anew from its state, after a raise: a raised engine keeps the tables
// that it had before until it is closed, and a stranger may have written any number of raises.
func (c *checker) rebuild() error {
	var state bytes.Buffer
	err := c.engine.WriteSnapshot(&state)
	if err := errors.Join(err, c.engine.Close()); err != nil {
		return fmt.Errorf("%w: %w", verify.ErrRead, err)
	}
	runtime.GC() // where tables are memory of the collector, the new ones may not fit beside the old
	engine, err := matcher.ReadSnapshot(c.engine.Genesis(), &state)
	if err != nil {
		return fmt.Errorf("%w: %w", verify.ErrRead, err)
	}
	c.engine, c.tally.names = engine, engine
	if c.report != nil {
		c.report.names = engine
	}
	return nil
}
