package journal

import (
	"context"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"posttrade/matcher"
)

// replayDepth is how many unpacked commits wait for the reader. Each holds the memory of a commit.
const replayDepth = 4

// Replay gives every durable command from inputSeq from on, in order, a commit at a time, to fn,
// and verifies checksum, contiguity, chain, fills and client ids on the way. It stops at the head
// as it was at the call. from may lie inside a commit; beyond the head there is nothing.
//
//   - fn runs on the caller's goroutine, and may use the slices only until it returns.
//   - Errors: fn's own and ctx's as they are; ErrCorrupt and the store's for what cannot be read,
//     with the key; ErrArchived.
//   - Cost: a long replay reads and unpacks ahead on a goroutine of its own, in memory of some
//     commits. Any goroutine, any number at the same time.
func (j *Journal) Replay(ctx context.Context, from uint64,
	fn func(cmds []matcher.Command, ids ClientIDs) error) error {
	return j.replay(ctx, from, 0, false, func(d *decoded) error { return fn(d.commands, d.ids) })
}

// ReplayTo is Replay up to and including inputSeq to, or the head if that comes first; to = 0 is
// the head. The last commit is cut there, so a reader that goes on from to+1 sees each command
// once.
func (j *Journal) ReplayTo(ctx context.Context, from, to uint64,
	fn func(cmds []matcher.Command, ids ClientIDs) error) error {
	return j.replay(ctx, from, to, false, func(d *decoded) error { return fn(d.commands, d.ids) })
}

// Commands is ReplayTo for a reader that needs the commands only: it reads and checks neither fills
// nor client ids, which are as much again. Checksums, contiguity and chain of the commands are
// checked.
func (j *Journal) Commands(ctx context.Context, from, to uint64,
	fn func(cmds []matcher.Command) error) error {
	return j.replay(ctx, from, to, true, func(d *decoded) error { return fn(d.commands) })
}

// FillsOf appends to dst the fills of one durable command, from the one commit that holds it. It
// waits until that is in the store. Errors: ctx's own; those of Replay. Any goroutine.
func (j *Journal) FillsOf(ctx context.Context, inputSeq uint64,
	dst []matcher.Fill) ([]matcher.Fill, error) {
	if err := j.WaitHead(ctx, inputSeq); err != nil {
		return dst, err
	}
	err := j.replay(ctx, inputSeq, inputSeq, false, func(d *decoded) error {
		for i := range d.fills {
			if d.fills[i].InputSeq == inputSeq {
				dst = append(dst, d.fills[i])
			}
		}
		return nil
	})
	return dst, err
}

// replay is the common part of all replays. to = 0 means the head. bare leaves fills and client ids
// unread. What only the tail has, while the journal is open for reading only, comes behind what the
// store has.
func (j *Journal) replay(ctx context.Context, from, to uint64, bare bool,
	fn func(*decoded) error) error {
	head, _ := j.Head()
	if to == 0 || to > head {
		to = head
	}
	from = max(from, 1)
	stored, _ := j.storeHead(to, 0)
	var err error
	if stored-min(from, stored) < readAhead {
		err = j.replayHere(ctx, from, stored, bare, fn)
	} else {
		err = replay(ctx, j.db, j.Seed(), from, stored, bare, fn)
	}
	if err == nil && stored < to {
		err = j.behindStore(ctx, from, to, fn)
	}
	return err
}

// readAhead is how many commands a replay must read at least before a goroutine that reads ahead of
// it pays off. For a polite caller that goroutine is a thread that begins and ends. A reader that
// follows the head takes in fewer at a time, many times a second.
//
// It is counted in commands between from and the end, before anything has been read.
const readAhead = 1 << 15

// replayHere is replay on the caller's own goroutine, with memory that is kept between calls: a
// short replay starts no goroutine and, once a walker has grown, allocates little.
func (j *Journal) replayHere(ctx context.Context, from, to uint64, bare bool,
	fn func(*decoded) error) error {
	if from > to {
		return ctx.Err()
	}
	w := j.borrowWalker()
	defer j.returnWalker(w)
	w.bare = bare
	if err := w.seek(from); err != nil {
		return err
	}
	end := from - 1
	var stopped error // by ctx or fn, in the error's own form
	err := w.walk(to, func(d *decoded) error {
		if stopped = ctx.Err(); stopped == nil {
			d.cut(from, to)
			end = d.first + uint64(len(d.commands)) - 1
			stopped = fn(d)
		}
		return stopped
	})
	switch {
	case stopped != nil:
		return stopped
	case err != nil:
		return err
	case end < to:
		return endsEarly(end, to)
	}
	return nil
}

// borrowWalker returns a walker that stands at the journal's beginning. The borrower sets bare.
func (j *Journal) borrowWalker() *walker {
	w, kept := j.walkers.Get().(*walker)
	if !kept {
		return newWalker(j.db, j.Seed())
	}
	w.at, w.lastAt = point{chain: w.seed}, 0
	return w
}

// returnWalker keeps a walker's memory for the next borrower. What its decoder holds outside of
// that memory is freed.
func (j *Journal) returnWalker(w *walker) {
	w.unpack.close()
	j.walkers.Put(w)
}

// endsEarly reports, as ErrCorrupt, a journal that holds less than its head says: end is the last
// command read.
func endsEarly(end, head uint64) error {
	return fmt.Errorf("journal: replay ends at inputSeq=%d, head is %d: %w", end, head, errSizes)
}

// ahead is a walker that walks ahead of its reader, on a goroutine of its own:
//
//	walker --ready--> reader
//	walker <--free--- reader
//
// Each commit is in one place: with the walker, in ready, with the reader or in free. free has room
// for all of them, so giving one back never blocks.
type ahead struct {
	ready, free chan *decoded
	err         error // of the walker; the reader's when ready is closed
	join        func()
}

// walkAhead begins to walk up to and including inputSeq to. The walker closes ready at its end,
// also when ctx ends.
func walkAhead(ctx context.Context, w *walker, to uint64) *ahead {
	a := &ahead{
		ready: make(chan *decoded, replayDepth), free: make(chan *decoded, replayDepth+2),
	}
	for range replayDepth + 1 {
		a.free <- &decoded{}
	}
	a.join = alike(func() {
		defer close(a.ready)
		defer w.close()
		a.err = w.walk(to, func(d *decoded) error {
			select {
			case a.ready <- d:
			case <-ctx.Done():
				return ctx.Err()
			}
			select {
			case w.block = <-a.free:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		})
	})
	return a
}

// drain takes what is ready until the walker has ended.
func (a *ahead) drain() {
	for range a.ready {
	}
}

// replay walks the commits that hold [from, to] ahead of fn, and cuts the first and the last to
// size. It never returns, and never panics, while its walker still reads the store. A panic of the
// walker is replay's.
func replay(ctx context.Context, db *blockStore, seed [chainBytes]byte, from, to uint64, bare bool,
	fn func(*decoded) error) error {
	if from > to {
		return ctx.Err()
	}
	w := newWalker(db, seed)
	w.bare = bare
	if err := w.seek(from); err != nil {
		w.close()
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	a := walkAhead(ctx, w, to)
	defer func() { // fn may panic
		cancel()
		a.drain()
	}()
	var err error
	end := from - 1
	for d := range a.ready {
		if err = ctx.Err(); err == nil {
			d.cut(from, to)
			end = d.first + uint64(len(d.commands)) - 1
			err = fn(d)
		}
		if err != nil {
			break
		}
		a.free <- d
	}
	if err == nil {
		err = ctx.Err()
	}
	cancel()
	a.drain()
	a.join()
	switch {
	case err != nil:
		return err
	case a.err != nil:
		return a.err
	case end < to:
		return endsEarly(end, to)
	}
	return nil
}

// cut drops the commands outside [from, to], and their ids. The fills stay whole, and so do the
// envelope's counts.
func (d *decoded) cut(from, to uint64) {
	if d.first < from {
		skip := from - d.first
		d.commands = d.commands[skip:]
		for {
			rest := d.ids
			at, _, ok := rest.Next()
			if !ok || at >= from {
				break
			}
			d.ids = rest
		}
		d.first = from
	}
	if last := d.first + uint64(len(d.commands)) - 1; last > to {
		d.commands = d.commands[:uint64(len(d.commands))-(last-to)]
		d.ids.until(to)
	}
}

// Fills gives every durable fill from tradeSeq from on to fn, in order, a block at a time,
// verifying checksums and contiguity. It does not verify the chain, which would need the commands
// as well. It stops at the head as it was at the call; fn may use the slice only until it returns.
//
// Cost: a search for the first block, then the fill blocks alone. Any goroutine. ErrArchived: the
// fills are in an archive that cannot be read.
func (j *Journal) Fills(from uint64, fn func([]matcher.Fill) error) error {
	_, end := j.Head()
	from = max(from, 1)
	_, head := j.storeHead(0, end)
	if from <= head {
		if err := j.storedFills(from, head, fn); err != nil {
			return err
		}
	}
	if head == end {
		return nil
	}
	return j.fillsBehindStore(max(from, head+1), fn)
}

// storedFills is Fills of what the store has, up to head. An iterator is given up after
// blocksPerIterator blocks and at the end of an archive, and the next one begins with a search.
func (j *Journal) storedFills(from, head uint64, fn func([]matcher.Fill) error) error {
	r := fillReader{unpack: newUnpacker(), next: from, head: head, fn: fn}
	defer r.unpack.close()
	for r.next <= head {
		db, _, _, err := j.db.of(keyFills, r.next)
		if err != nil {
			return err
		}
		start, err := blockHolding(db, keyFills, r.next)
		if err != nil {
			return err
		}
		before := r.next
		if err := iterate(db, newKey(keyFills, start), []byte{keyFills + 1}, r.some); err != nil {
			return err
		}
		if r.next == before {
			return fmt.Errorf("journal: fills end at tradeSeq=%d, head is %d: %w", before-1, head, errSizes)
		}
	}
	return nil
}

// fillReader gives the fills from next up to head to fn, and moves next on.
type fillReader struct {
	unpack     *unpacker
	fills      []matcher.Fill // memory of the block being read
	next, head uint64
	fn         func([]matcher.Fill) error
}

// some reads as many blocks as one iterator may be held for.
func (r *fillReader) some(it *pebble.Iterator) error {
	n := 0
	for ok := it.First(); ok && r.next <= r.head && n < blocksPerIterator; ok = it.Next() {
		if err := r.block(it); err != nil {
			return err
		}
		n++
	}
	return nil
}

// block gives the fills of the block under the iterator to fn, without those before next.
func (r *fillReader) block(it *pebble.Iterator) (err error) {
	if r.fills, err = readFills(r.unpack, it, r.fills); err != nil {
		return err
	}
	part, first := r.fills, r.fills[0].TradeSeq
	if first < r.next {
		part = part[min(r.next-first, uint64(len(part))):]
	}
	if len(part) == 0 || part[0].TradeSeq != r.next {
		return fmt.Errorf("journal: key=%s: starts at tradeSeq=%d, want %d: %w",
			keyName(it.Key()), first, r.next, errSizes)
	}
	r.next += uint64(len(part))
	return r.fn(part)
}

// LastFills returns the last n durable fills in ascending order, fewer if there are fewer, or if
// the others have been moved into an archive that cannot be read. The slice is the caller's.
func (j *Journal) LastFills(n int) ([]matcher.Fill, error) {
	_, head := j.Head()
	if n <= 0 || head == 0 {
		return nil, nil
	}
	from := uint64(1)
	if head > uint64(n) {
		from = head - uint64(n) + 1
	}
	if _, _, _, err := j.db.of(keyFills, from); errors.Is(err, ErrArchived) {
		// A start must not need the archive.
		if from = j.db.archives.end().tradeSeq + 1; from > head {
			return nil, nil
		}
	}
	out := make([]matcher.Fill, 0, head-from+1)
	err := j.Fills(from, func(f []matcher.Fill) error {
		if room := cap(out) - len(out); len(f) > room {
			f = f[:room] // committed while we read
		}
		out = append(out, f...)
		return nil
	})
	return out, err
}

// blockHolding is the first sequence of the block of a kind that holds seq, by its key alone: the
// block may end before seq.
func blockHolding(db *blockStore, kind byte, seq uint64) (first uint64, err error) {
	err = iterate(db, []byte{kind}, newKey(kind, seq+1), func(it *pebble.Iterator) error {
		if !it.Last() {
			return fmt.Errorf("journal: no block %c holds %d: %w", kind, seq, errSizes)
		}
		at, ok := keySeq(it.Key())
		if !ok {
			return fmt.Errorf("journal: key=%s: %w", keyName(it.Key()), errSizes)
		}
		first = at
		return nil
	})
	return first, err
}

// readFills unpacks the fill block under the iterator into fills' memory, and returns what it has
// become. It checks the first and the last tradeSeq.
func readFills(u *unpacker, it *pebble.Iterator, fills []matcher.Fill) ([]matcher.Fill, error) {
	v, err := it.ValueAndErr()
	if err != nil {
		return fills, err
	}
	e, payload, err := parseEnvelope(v, keyFills)
	if err == nil {
		fills = resize(fills, int(e.count))
		err = u.unpack(fillBytesOf(fills), &e, payload)
	}
	if err == nil && (fills[0].TradeSeq != e.first || fills[len(fills)-1].TradeSeq != e.last()) {
		err = errSizes
	}
	if err != nil {
		return fills, fmt.Errorf("journal: key=%s: %w", keyName(it.Key()), err)
	}
	return fills, nil
}
