package journal

import (
	"errors"
	"fmt"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"posttrade/ring"
)

// takeTail puts what only the tail has into the store and brings it to the disk. Then it begins a
// new run of the tail, or removes the tail when this opening does not use one. After a crash on the
// way, the old tail counts until all of that is done. found is nil when there was no tail. Begin
// calls it, with the committer running.
func (j *Journal) takeTail(found *tailImage) error {
	if found != nil {
		if err := j.drain(found); err != nil {
			return err
		}
	}
	j.mu.Lock()
	base := j.safe
	j.mu.Unlock()
	switch {
	case j.o.Tail && j.genesis != nil:
		return j.openTail(found, base)
	case found != nil:
		return j.forgetTail(base)
	}
	return nil
}

// forgetTail removes the tail, which has nothing that the store has not on stable storage, up to
// base. The anchor stops vouching for it first: otherwise a crash in between would look like a
// loss.
func (j *Journal) forgetTail(base point) error {
	if err := j.anchor.follow(0, base); err != nil {
		return err
	}
	return removeTail(j.o.FS, j.dir)
}

// noTail refuses, with ErrShortened, a tail beside a journal that has no history yet: the tail
// belongs to another journal, or the history has been lost.
func noTail(fs vfs.FS, dir string) error {
	t, err := readTail(fs, dir)
	if err == nil && t != nil {
		err = fmt.Errorf("journal: file=%s: has seen inputSeq=%d, the store is empty: %w", t.name, t.mark,
			ErrShortened)
	}
	return err
}

// drain appends the frames that the store does not have, in the same way as any block: checked for
// contiguity, chained, one atomic batch each. j.tail is still nil here, so Append waits for the
// store alone and copies nothing back into the file that is being read.
func (j *Journal) drain(t *tailImage) error {
	head := j.tip.inputSeq
	var last *Commit
	err := t.blocks(DefaultBlockCommands, func(b *Block) (err error) {
		last, err = j.Append(b)
		return err
	})
	if err == nil && last != nil {
		err = last.Wait()
	}
	if err != nil {
		return fmt.Errorf("journal: recover file=%s behind inputSeq=%d: %w", t.name, head, err)
	}
	if want := t.end(head); j.tip.inputSeq != want {
		return fmt.Errorf("journal: recover file=%s: history ends at inputSeq=%d, want %d: %w",
			t.name, j.tip.inputSeq, want, errSizes)
	}
	if last != nil {
		j.o.Logger.Infof("journal: inputSeq=%d..%d were in the tail only", head+1, j.tip.inputSeq)
	}
	// A later power cut must not take what the tail has forgotten.
	_, err = j.stabilize()
	return err
}

// publish copies what b has gained into the tail. Its answers are released at once or, by a tail
// that is a log, as soon as they are on stable storage. A block that has gained nothing costs
// nothing. Appender only.
//
// ok is false when there is no room: the caller then waits for the store. An error is ErrGap, with
// nothing copied, or the poison.
func (j *Journal) publish(b *Block) (ok bool, err error) {
	if err := j.latch.Err(); err != nil {
		return false, err
	}
	if len(b.records) == b.inTail.records {
		return true, nil
	}
	var result tailResult
	if j.tail.log != nil {
		result = j.copyIn(b)
	} else {
		result = j.tail.append(b, uint64(j.durable.Load()))
	}
	switch result {
	case tailFull:
		return false, nil
	case tailGap:
		return false, fmt.Errorf("journal: publish inputSeq=%d, want %d: %w", b.first, j.tail.next,
			ErrGap)
	}
	if j.tail.log == nil {
		j.answer(j.tail.next - 1)
	}
	return true, nil
}

// answer releases the answers up to a sequence, which never falls. The number rises before the
// callback: a client that has its answer must not find Answered behind it. Without a tail only the
// committer calls it, with one only the appender, or the goroutine that holds the log's answering.
func (j *Journal) answer(inputSeq uint64) {
	if ring.Checks {
		j.mustNotTakeBack(inputSeq)
	}
	j.answered.Store(int64(inputSeq))
	if j.onDurable != nil {
		j.onDurable(inputSeq)
	}
}

// tailPace is the time between two commits when no caller waits for them: answers come from the
// tail, and fewer, larger commits leave the processors to the path of an order. What a power cut
// may remove does not grow: its bound (bound.go) includes this time.
const tailPace = time.Millisecond

// holdBlocks keeps the recorder from cutting another block for tailPace, unless a commit is waiting
// already. A caller that waits for the store (hurry), and a failure, end the rest. Committer only.
func (j *Journal) holdBlocks() {
	if len(j.commits) == 0 {
		j.pace.Reset(tailPace)
		defer j.pace.Stop()
		select {
		case <-j.pace.C:
		case <-j.hurry:
		case <-j.latch.dead:
		}
	}
	j.holding.Store(false)
}

// answerFromStore waits for a commit that the tail had no room for, releases its answers and lets
// the tail go on behind it. It ends the committer's rest, so the wait is not longer than the disk.
// An error is the poison. Appender only.
func (j *Journal) answerFromStore(c *Commit) error {
	select {
	case j.hurry <- struct{}{}:
	default:
	}
	if err := c.Wait(); err != nil {
		return err
	}
	j.tail.skip(&c.end)
	if l := j.tail.log; l != nil {
		l.answering.Lock()
		defer l.answering.Unlock()
	}
	j.answer(c.end.inputSeq)
	return nil
}

// settled waits until the store has what had been answered when it was called: a client that has
// had an answer finds its command in the journal. What is answered during the wait does not prolong
// it. After a failure it does not wait.
func (j *Journal) settled() {
	for want := j.Answered(); ; {
		moved := j.behind(want)
		if moved == nil {
			return
		}
		select {
		case <-moved:
		case <-j.latch.dead:
			return
		}
	}
}

// contradicts reports a tail that AcceptHistory must set aside, because it does not continue the
// store's history or cannot be read: what is only in that tail is given up. A tail that continues
// the history stays, and the next opening puts it into the store; r gets the number of its
// commands. An error is that of the disk.
func contradicts(db *blockStore, dir string, o *VerifyOptions, r *Report,
	head point) (bool, error) {
	t, err := readTail(o.FS, dir)
	if err == nil && t != nil {
		err = t.compare(db, r.Seed, head, o.boot)
	}
	if errors.Is(err, ErrTailDamaged) || errors.Is(err, ErrDiverged) || errors.Is(err, ErrShortened) {
		return true, nil
	}
	if err == nil && t != nil {
		r.Tail = t.end(head.inputSeq) - head.inputSeq
	}
	return false, err
}

// setTailAside renames a tail that was refused, durably, so that the next opening begins without
// it. accept has copied it before.
func setTailAside(fs vfs.FS, dir string) error {
	name := fs.PathJoin(dir, tailName)
	if err := fs.Rename(name, name+tailRefused); err != nil {
		return fmt.Errorf("journal: rename file=%s: %w", name, err)
	}
	return syncDir(fs, dir)
}

// tailRefused is the suffix of the name of a tail that has been set aside.
const tailRefused = ".refused"
