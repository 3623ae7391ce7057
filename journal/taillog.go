package journal

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"posttrade/ring"
)

// tailLog makes a tail the log of mode "fsync". The appender copies frames into memory. A writer
// that has nothing to do takes all frames behind the last write as the next write, closes it at the
// end of a sector, and puts it on stable storage. So a write holds what came meanwhile, and a
// command waits for a part of one write and for its own.
//
// A second write is under way beside the first when it is large: the disk takes more bytes then.
// Two small ones would only make each other slower. They may end in any order. Answers are released
// up to the last write before which every write has ended.
//
// Invariants: the writes that are due, and the one that is being filled, follow each other in the
// file; synced never passes a write that has not ended.
//
// The way of a frame:
//
//	appender --copyIn--> mem --next--> writer 0 --WriteAt--> disk --ended--> synced, mark, answers
//	                         --next--> writer 1 --WriteAt--> disk --ended--> synced, mark, answers
type tailLog struct {
	mu sync.Mutex // guards everything here but answering, and the tail's own fields
	// Signalled when a write may begin, and when the writers shall stop. A writer that has ended a
	// write looks for the next itself. L is mu.
	work sync.Cond
	// Writes that were closed because their segment is full, and not begun yet. There is at most one
	// of each segment: a segment is begun again only when every write in it has ended.
	due []logWrite
	// The write that is being filled: where in the file it begins, the turn of its segment, the last
	// command that was copied (or the one before the first), and when the first frame of it was
	// copied; zero while it has none.
	from   int
	number uint64
	last   uint64
	since  time.Time
	// Writes that have begun and may not have ended, at their number modulo tailWrites. Writes are
	// numbered from 0 in the order of the file: those from oldest up to, but not including, begun are
	// open.
	open          [tailWrites]logWrite
	begun, oldest uint64
	// How many writers do not ask for a write: they have one, answer, or are about to begin.
	busy int
	// How many bytes a write must have for a writer to begin it while the other is busy. Constant.
	beside int
	// What the tail was given up to here is on stable storage. Writer: a log writer, under mu; it only
	// rises.
	synced atomic.Uint64
	// Closed when synced moves; nil while no goroutine waits.
	moved chan struct{}
	// With nothing left to write, the writers end.
	stopping bool
	// The writers end at once: after a failure nothing more is written.
	dropped bool

	// Held across a mark and its answers, so that marks and answers rise in the same order whichever
	// writer releases them. It guards closed. It is never taken while mu is held.
	answering sync.Mutex
	// The memory of the marks is gone: no mark may be stored into it.
	closed  bool
	writers sync.WaitGroup
	// A segment has been begun, so the store's log should be synced. One place: a second turn before
	// the sync needs no second one.
	turned chan struct{}
}

const (
	// tailWriters is how many writes may be under way at the same time.
	tailWriters = 2
	// tailBeside is the size from which a write begins beside one under way. A disk that takes 4
	// KiB in 111 us takes two at a time in 173 each; of 64 KiB it takes a sixth more a second by
	// two at a time, others two fifths more.
	tailBeside = 64 << 10
	// tailWrites bounds the writes that have begun, counted from the oldest one that has not ended.
	// Behind a write that hangs, the other writer goes on up to that number and then waits.
	tailWrites = 8
)

// logWrite is one write: whole sectors of one segment. Its bytes in mem do not change from the
// moment a writer takes it until it has ended.
type logWrite struct {
	// Offsets in the file and in mem, both multiples of tailSector.
	from, to int
	// As in the frames of the write: segment is the segment's turn.
	run, segment uint64
	// The inputSeq of the last command in it.
	last uint64
	// When its first frame was copied: a commit's time counts from there.
	since time.Time
	// It is on stable storage, and writes before it may not be.
	done bool
}

// startLog gives t memory of its own and starts the writers and the ticker that frees segments.
// size is the file's, in bytes. Every page of the memory is touched here, so that the appender
// takes no page fault later.
func (j *Journal) startLog(t *tail, size int) {
	mem := ring.HeapPages(size) // after a failure a writer may use it longer than the journal lives
	for at := 0; at < size; at += tailSector {
		mem[at] = 0 // resident
	}
	l := &tailLog{
		from: t.at, last: t.next - 1, busy: tailWriters, beside: j.o.tailBeside,
		turned: make(chan struct{}, 1),
	}
	l.work.L = &l.mu
	l.synced.Store(l.last)
	t.mem, t.log, t.lead = mem, l, tailWrite
	t.at += t.lead
	for i := range tailWriters {
		l.writers.Go(func() { j.writeTail(t, &j.logging[i]) })
	}
	j.tickers.Go(func() { j.flushTurned(l) })
}

// flushTurned syncs the store's log whenever the tail has begun a segment, so that the segment
// which comes after it is free in time.
func (j *Journal) flushTurned(l *tailLog) {
	for {
		select {
		case <-l.turned:
			if _, err := j.stabilize(); err != nil {
				return // the poison
			}
		case <-j.stop:
			return
		}
	}
}

// copyIn is tail.append for a tail that is a log. It returns before the frame is on stable storage:
// a writer takes it and releases the answers. Appender only.
//
// When the frame begins a segment, the write that was being filled in the segment before is closed,
// because a write lies in one segment.
//
// Cost: the copy and the checksum under mu, which a writer holds only to take or to end a write; no
// system call.
func (j *Journal) copyIn(b *Block) tailResult {
	t, l := j.tail, j.tail.log
	l.mu.Lock()
	defer l.mu.Unlock()
	at, number := t.at, t.number
	// what has not ended is never overwritten, even if the store has answered it
	said := t.append(b, min(uint64(j.stable.Load()), l.synced.Load()))
	if said != tailTaken {
		return said
	}
	if number != t.number {
		if at > l.from+t.lead {
			l.due = append(l.due, l.close(t, at))
		}
		l.from, l.number = t.limit-t.bytes, t.number
		select {
		case l.turned <- struct{}{}:
		default:
		}
	}
	if l.last = t.next - 1; l.since.IsZero() {
		l.since = time.Now()
	}
	if l.ready(t) {
		l.work.Signal()
	}
	return said
}

// filled reports whether the write that is being filled has a frame. The caller holds mu.
func (l *tailLog) filled(t *tail) bool { return t.at > l.from+t.lead }

// ready reports whether a write may begin. One that is due always may, because the file goes on
// behind it; one that is being filled when no writer is busy, or when it is large. A writer that
// answers counts as busy: it takes the next write itself, and no other is woken for it. The caller
// holds mu.
func (l *tailLog) ready(t *tail) bool {
	if l.begun-l.oldest == tailWrites {
		return false
	}
	return len(l.due) > 0 || l.filled(t) && (l.busy == 0 || t.at-l.from >= l.beside)
}

// close ends the write that is being filled at a place in its segment. The bytes between there and
// the end of the sector keep what they held; the head has the length without them. The head's
// promise and checksum are set when the write begins. The caller holds mu.
func (l *tailLog) close(t *tail, at int) logWrite {
	w := logWrite{
		from: l.from, to: (at + tailSector - 1) &^ (tailSector - 1), run: t.run, segment: l.number,
		last: l.last, since: l.since,
	}
	head := t.mem[w.from:][:tailWrite]
	clear(head)
	binary.LittleEndian.PutUint32(head[0:], tailWriteSign)
	binary.LittleEndian.PutUint64(head[8:], w.run)
	binary.LittleEndian.PutUint64(head[16:], w.segment)
	binary.LittleEndian.PutUint64(head[32:], uint64(at-w.from))
	l.since = time.Time{}
	return w
}

// next waits for a write that is due, or for frames, and begins the write, whose number is n. It
// returns false when the writers shall stop and nothing is left.
//
// Due writes come first: the writes of the file begin in the order of the file, which ended relies
// on. The promise in the head is read here, at the last moment, so it is as high as it can be.
func (l *tailLog) next(t *tail) (n uint64, w logWrite, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.busy--
	for !l.dropped && !l.ready(t) {
		if l.stopping && !l.filled(t) && len(l.due) == 0 {
			break
		}
		l.work.Wait()
	}
	if l.dropped || !l.ready(t) {
		l.work.Signal() // the other writer ends, too
		return 0, w, false
	}
	if len(l.due) > 0 {
		w = l.due[0]
		l.due = l.due[1:]
	} else {
		w = l.close(t, t.at)
		l.from = w.to
		t.at = w.to + t.lead
	}
	n = l.begun
	l.begun++
	l.busy++
	l.open[n%tailWrites] = w
	head := t.mem[w.from:][:tailWrite]
	binary.LittleEndian.PutUint64(head[24:], l.synced.Load())
	binary.LittleEndian.PutUint32(head[4:], crc32.Checksum(head[8:], castagnoli))
	if l.ready(t) {
		l.work.Signal()
	}
	return n, w, true
}

// writeTail is a writer: it takes a write, waits for the disk, and releases what that has made
// safe. The first failure poisons the journal and ends both writers; the write is not tried again.
// times measures its writes.
func (j *Journal) writeTail(t *tail, times *DiskTimes) {
	old := debug.SetPanicOnFault(true)
	defer debug.SetPanicOnFault(old)
	defer func() { // as in onFault: the mark is in mapped memory
		if met := recover(); met != nil {
			fault, ok := met.(interface{ Addr() uintptr })
			if !ok {
				panic(met)
			}
			_ = j.latch.Poison(fmt.Errorf("journal: fault at %#x: %w", fault.Addr(), errTailFault))
			t.log.stop(false)
		}
	}()
	for {
		n, w, ok := t.log.next(t)
		if !ok {
			return
		}
		times.Begin(w.since)
		got, err := t.file.WriteAt(t.mem[w.from:w.to:w.to], int64(w.from))
		times.End()
		if err == nil && got != w.to-w.from {
			err = io.ErrShortWrite
		}
		if err == nil {
			err = j.latch.Err() // poisoned meanwhile: nothing is answered after it
		}
		if err != nil {
			_ = j.latch.Poison(fmt.Errorf("journal: write file=%s offset=%d inputSeq=%d: %w",
				j.o.FS.PathJoin(j.dir, tailName), w.from, w.last, err))
			t.log.stop(false)
			return
		}
		if took, moved := t.log.ended(n); moved {
			j.metrics.committed(took)
			j.answerLogged()
		}
	}
}

// ended records that the write n is on stable storage. Only the end of the oldest open write moves
// synced, past all writes that have ended behind it. It reports whether synced has moved, and how
// long the oldest of those commands had waited.
func (l *tailLog) ended(n uint64) (took time.Duration, moved bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open[n%tailWrites].done = true
	if n != l.oldest {
		return 0, false
	}
	took = time.Since(l.open[n%tailWrites].since)
	last := uint64(0)
	for l.oldest < l.begun && l.open[l.oldest%tailWrites].done {
		last = l.open[l.oldest%tailWrites].last
		l.oldest++
	}
	l.synced.Store(last)
	if l.moved != nil {
		close(l.moved)
		l.moved = nil
	}
	return took, true
}

// behind returns a channel that is closed when synced moves on, or nil when it has reached
// inputSeq. The caller asks again after the channel is closed: one move need not reach inputSeq.
func (l *tailLog) behind(inputSeq uint64) <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.synced.Load() >= inputSeq {
		return nil
	}
	if l.moved == nil {
		l.moved = make(chan struct{})
	}
	return l.moved
}

// answerLogged releases the answers of what is on stable storage. Both writers may call it at the
// same time: the second finds the answers of the first released already, or more to release.
// Writers only.
func (j *Journal) answerLogged() {
	l := j.tail.log
	l.answering.Lock()
	defer l.answering.Unlock()
	if synced := l.synced.Load(); synced > j.Answered() && !l.closed {
		j.tail.mark(synced)
		j.answer(synced)
	}
}

// logged waits until the log has a sequence. It returns the poison when it never will.
func (j *Journal) logged(inputSeq uint64) error {
	for {
		moved := j.tail.log.behind(inputSeq)
		if moved == nil {
			return nil
		}
		select {
		case <-moved:
		case <-j.latch.dead:
			return j.latch.Err()
		}
	}
}

// stop ends the writers: with drained when all is written, without it at once. It does not wait for
// them.
func (l *tailLog) stop(drained bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stopping, l.dropped = true, l.dropped || !drained
	l.work.Broadcast()
}

// stop writes what is left and waits until the writers have ended. Without a tail or a log it does
// nothing. A writer that waits for a disk that hangs keeps it waiting, so Close waits for it only
// until the journal is poisoned.
func (t *tail) stop() {
	if t != nil && t.log != nil {
		t.log.stop(true)
		t.log.writers.Wait()
	}
}

// close closes the file, and with it the memory of its marks. A writer may still be under way after
// a failure; it finds closed set and stores no mark.
func (t *tail) close() error {
	if t.log != nil {
		t.log.answering.Lock()
		defer t.log.answering.Unlock()
		t.log.closed = true
	}
	return t.file.Close()
}

// secure waits until a commit is on stable storage: in the log or, when that had no room, in the
// store. The store's copy counts only from then on, because with a tail the store's own sync waits
// for nothing (osfs.go). Committer only.
func (j *Journal) secure(c *Commit) error {
	if !c.full {
		return j.logged(c.end.inputSeq)
	}
	j.syncing.Lock()
	defer j.syncing.Unlock()
	return j.flush()
}
