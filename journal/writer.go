package journal

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"posttrade/ring"
)

// ErrGap reports a block that does not continue the history. Nothing was
// written; the journal is as before.
var ErrGap = errors.New("block does not continue the history")

// Commit is one block on its way to the disk.
//
//	appender:  admit -> apply (packs) --------> commits channel
//	                 -> hand  (block moved) --^
//	committer:          packHanded -> settle -> room given back -> done
//
// The appender writes a commit until it has gone into the channel, the committer from then until
// done. A commit is used again: begin resets it. The recorder has one more of them than may be in
// flight (Recorder.next).
type Commit struct {
	// The head of the history once the commit is durable. Writer: the goroutine that packs.
	end point
	// What its blocks take in the store, packed, with their envelopes; for the metrics.
	bytes int
	// The store's batch, from apply until settle has released it.
	batch *pebble.Batch
	// When the block was admitted; the wait for room is not part of it.
	started time.Time
	err     error // writer: the committer, before done
	// One place, taken when the commit has ended. Wait puts the token back, so any number of callers
	// may wait.
	done  chan struct{}
	latch *latch

	// the committer packs the block. writer: the appender, before the committer has the commit
	handed bool
	block  Block // if it is handed

	// answers wait for the store although there is a tail. writer: the appender, as above
	full bool
}

func newCommit(l *latch) *Commit { return &Commit{done: make(chan struct{}, 1), latch: l} }

// begin resets a commit that has ended and that no caller waits for any more. The token of its last
// end is taken back, otherwise the next Wait would return at once.
func (c *Commit) begin() {
	select {
	case <-c.done:
	default:
	}
	c.err, c.started, c.full = nil, time.Now(), false
}

// Wait blocks until the commit is durable, or returns why it never will be: the poison. It may be
// called any number of times until the commit is used again. Any goroutine.
func (c *Commit) Wait() error {
	select {
	case <-c.done:
		c.done <- struct{}{} // for the next caller that waits
		return c.err
	case <-c.latch.dead:
		return c.latch.Err()
	}
}

// OnDurable sets two functions. durable is called in order with the input sequence up to which
// answers may be released: by the committer after every commit, with a mapped tail by the appender,
// with a log by its writers, one at a time. fail is called once, with the poison, before the
// process is ended. The caller sets both before the first Append.
func (j *Journal) OnDurable(durable func(inputSeq uint64), fail func(error)) {
	j.onDurable = durable
	j.latch.onFail.Store(&fail)
}

// Room reports whether a commit of so many commands may start now: Append would not wait, and the
// commit is worth its cost. A second commit waits for the sync of the first anyway, and commands
// that come meanwhile wait behind both. So a small block waits and takes those commands along, and
// a large one is packed while the first is being synced. With a tail, tailPace must have passed
// since the last commit.
func (j *Journal) Room(commands int) bool {
	if j.holding.Load() {
		return false
	}
	limit := int64(j.o.MaxInFlight)
	if j.tail != nil || commands < pipelinedFrom {
		limit = 1
	}
	return j.inFlight.Load() < limit
}

// pipelinedFrom is the size of a block, in commands, from which packing it takes about as
// long as the pause between two syncs when commits do not overlap.
const pipelinedFrom = 512

// Append hands one block to the store as one atomic batch, synced, and returns without waiting for
// the sync. At most MaxInFlight commits are under way; with that many, Append waits for one to end.
//
//   - Shape: 1 to MaxBlockCommands commands, the first at head+1, contiguous; fills from the next
//     trade sequence, contiguous; client ids ascending, of commands in the block.
//   - Errors: ErrGap, ErrNoGenesis, ErrClosed: nothing is written. Anything else poisons.
//   - With a tail the answers of the block are released first, unless that has been done already.
//     When the tail has no room, Append waits for the store and releases the answers then.
//   - Cost: packing on the caller's thread, then the store's memtable; one Commit allocated.
//   - Source: FORMAT.md, section 2. Appender goroutine only.
func (j *Journal) Append(b *Block) (*Commit, error) {
	c := newCommit(j.latch)
	if err := j.append(b, c); err != nil {
		return nil, err
	}
	return c, nil
}

// append is Append with a given commit, which is new, or has ended when there is room. When packing
// fails, the place in the room is given back here, because the committer never sees the commit.
func (j *Journal) append(b *Block, c *Commit) error {
	full, err := j.admit(b, c)
	if err != nil {
		return err
	}
	if err := j.apply(b, c); err != nil {
		<-j.room
		j.inFlight.Add(-1)
		return err
	}
	j.commits <- c
	if full {
		return j.answerFromStore(c)
	}
	return nil
}

// hand is append for a block whose answers do not wait for the store: the committer packs it, and
// the appender goes on with an empty one, of a commit that has been packed, or new. It takes
// packing, the largest part of the cost, off the thread that releases the answers.
//
// hand must not run at the same time as append, which packs with the same buffers.
func (j *Journal) hand(b *Block, c *Commit) error {
	full, err := j.admit(b, c)
	if err != nil {
		return err
	}
	c.handed, c.block = true, *b
	select {
	case *b = <-j.spares:
	default:
		*b = Block{}
	}
	j.commits <- c
	if full {
		return j.answerFromStore(c)
	}
	return nil
}

// packHanded does the part of append that hand has left to the committer. A failure poisons, and
// settle then finds the poison. The empty block goes back to the appender; one that finds no place
// is left to the garbage collector.
func (j *Journal) packHanded(c *Commit) {
	if j.latch.Err() == nil {
		_ = j.apply(&c.block, c) // the latch keeps the error
	}
	c.handed = false
	c.block.Reset()
	select {
	case j.spares <- c.block:
	default:
	}
	c.block = Block{}
}

// admit checks a block, releases its answers if there is a tail, and waits for room. full means
// that the tail had no room and the answers wait for the store.
//
// The order matters: nothing is written before the block is known to continue the history, and
// answers from the tail do not wait for room in the store. given rises only when the block has been
// taken, so a refused block leaves the journal as it was.
func (j *Journal) admit(b *Block, c *Commit) (full bool, err error) {
	if err := j.usable(); err != nil {
		return false, err
	}
	if j.anchor == nil {
		return false, fmt.Errorf("journal: append inputSeq=%d: %w", b.first, ErrNoGenesis)
	}
	if err := j.continues(b); err != nil {
		return false, err
	}
	if j.tail != nil {
		taken, err := j.publish(b)
		if err != nil {
			return false, err
		}
		full = !taken
	}
	select {
	case j.room <- struct{}{}:
	case <-j.latch.dead:
		return false, j.latch.Err()
	}
	j.inFlight.Add(1)
	c.begin()
	c.full = full
	j.given.inputSeq += uint64(b.Commands())
	j.given.tradeSeq += uint64(b.fillCount)
	j.applied.Store(int64(j.given.inputSeq))
	return full, nil
}

// apply packs the block and puts it into the store's log and memtable, without waiting for the
// sync. A failure poisons, and tip stays: nothing may be chained behind a commit of which it is not
// known whether the store has it.
func (j *Journal) apply(b *Block, c *Commit) error {
	if err := j.write(b, c); err != nil {
		return j.latch.Poison(fmt.Errorf("journal: append inputSeq=%d: %w", b.first, err))
	}
	j.tip = c.end
	return nil
}

// write packs a block into one batch: the command block, then the fill block and the client-id
// block if it has any. The batch is applied as a whole or not at all, so a reader never finds
// commands without their fills. Each value is copied into the batch before the packer's buffer is
// used again.
func (j *Journal) write(b *Block, c *Commit) (err error) {
	c.batch, c.bytes = nil, 0
	c.end, err = j.sealer.seal(b, &j.tip, func(kind byte, seq uint64, block []byte) error {
		if c.batch == nil {
			c.batch = j.db.NewBatchWithSize(len(block) + 4096)
		}
		c.bytes += len(block)
		return c.batch.Set(putKey(&j.key, kind, seq), block, nil)
	})
	if ring.Checks {
		b.mustFollow(j.tip, c.end)
	}
	if err == nil {
		err = guard(func() error { return j.db.ApplyNoSyncWait(c.batch, pebble.Sync) })
	}
	if err == nil {
		err = j.latch.Err() // the store answers a fatal message inside the call with success
	}
	return err
}

// continues checks that the block follows what has been taken without a hole, in commands and in
// fills, and that its last client id belongs to one of its commands. It reads every record's
// sequence: a hole is refused before anything of the block is written.
func (j *Journal) continues(b *Block) error {
	n := b.Commands()
	if n == 0 || n > MaxBlockCommands {
		return fmt.Errorf("journal: append commands=%d, want 1 to %d: %w", n, MaxBlockCommands, ErrGap)
	}
	if len(b.fills) > maxFillsRaw {
		return fmt.Errorf("journal: append inputSeq=%d fills=%d, at most %d: %w", b.first,
			len(b.fills)/recordBytes, maxFillsRaw/recordBytes, ErrGap)
	}
	for i := range n {
		want := j.given.inputSeq + 1 + uint64(i)
		if got := binary.LittleEndian.Uint64(b.records[i*recordBytes+8:]); got != want {
			return fmt.Errorf("journal: append inputSeq=%d, want %d: %w", got, want, ErrGap)
		}
	}
	for i := range int(b.fillCount) {
		want := j.given.tradeSeq + 1 + uint64(i)
		if got := binary.LittleEndian.Uint64(b.fills[i*recordBytes:]); got != want {
			return fmt.Errorf("journal: append tradeSeq=%d, want %d: %w", got, want, ErrGap)
		}
	}
	if b.idCount > 0 && (b.lastIDSeq < b.first || b.lastIDSeq >= b.first+uint64(n)) {
		return fmt.Errorf("journal: append client id inputSeq=%d outside %d..%d: %w",
			b.lastIDSeq, b.first, b.first+uint64(n)-1, ErrGap)
	}
	return nil
}

// commitLoop waits for the syncs, in order, until Close closes the channel. After the first failure
// it only returns the poison. room is given back before done, so a caller that has waited for a
// commit finds a place for the next.
func (j *Journal) commitLoop() {
	for c := range j.commits {
		if c.handed {
			j.packHanded(c)
		}
		j.settle(c)
		// read before done: a tail and a recorder may begin when the last commit before them has ended
		rests, room := j.tail != nil, j.onRoom
		j.holding.Store(rests)
		<-j.room
		j.inFlight.Add(-1)
		c.done <- struct{}{}
		if rests {
			j.holdBlocks()
		}
		if room != nil {
			room()
		}
	}
}

// settle waits until one commit is durable, then raises the head: first the store's sync, with a
// log the log's write, then the anchor, then the head and, without a tail, the answers. So without
// a tail the anchor vouches for all that clients were told. c.err is the poison when any step
// fails; then neither head nor answers move.
func (j *Journal) settle(c *Commit) {
	if c.err = j.latch.Err(); c.err != nil {
		return
	}
	j.committing.Begin(c.started)
	err := guard(c.batch.SyncWait)
	j.committing.End()
	if err == nil {
		err = j.latch.Err() // poisoned meanwhile: a sync that came after it proves nothing
	}
	if err == nil && j.tail != nil && j.tail.log != nil {
		err = j.secure(c)
	}
	if err == nil {
		err = j.anchor.Hot(c.end)
	}
	if err != nil {
		c.err = j.latch.Poison(fmt.Errorf("journal: commit inputSeq=%d: %w", c.end.inputSeq, err))
		return
	}
	if err := c.batch.Close(); err != nil {
		c.err = j.latch.Poison(fmt.Errorf("journal: release batch inputSeq=%d: %w", c.end.inputSeq, err))
		return
	}
	c.batch = nil
	j.advance(c.end)
	j.metrics.bytes.Add(uint64(c.bytes))
	if j.tail == nil || j.tail.log == nil || c.full {
		j.metrics.committed(time.Since(c.started))
	}
	if j.tail == nil {
		j.answer(c.end.inputSeq)
	}
}
