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
// end of a sector, and puts it on stable storage. So a write holds what came while both writers
// were busy, and a command waits for a part of one write and for its own.
//
// Two writes are under way at the same time: a disk does more then. They may end in any order.
// Answers are released up to the last write before which every write has ended.
//
// Invariants: the writes that are due, and the one that is being filled, follow each other in the
// file; synced never passes a write that has not ended.
type tailLog struct {
	mu     sync.Mutex // guards everything here but answering, and the tail's own fields
	work   sync.Cond  // a write is due, or the writers shall stop
	due    []logWrite // closed because their segment is full, and not begun yet
	from   int        // where the write that is being filled begins
	number uint64     // of its segment
	last   uint64     // the last command that was copied, or before the first
	since  time.Time  // when the first frame of that write was copied
	// writes that have begun, by their number, and may not have ended
	open          [tailWrites]logWrite
	begun, oldest uint64
	synced        atomic.Uint64 // what the tail was given up to here is on stable storage
	moved         chan struct{} // closed when synced moves; nil while no goroutine waits
	stopping      bool          // with nothing left to write, the writers end
	dropped       bool          // they end at once

	answering sync.Mutex // held across a mark and its answers; guards closed
	closed    bool       // the memory of the marks is gone
	writers   sync.WaitGroup
	turned    chan struct{} // a segment has been begun: the store's log should be synced
}

const (
	tailWriters = 2
	// tailWrites bounds the writes behind one that hangs.
	tailWrites = 8
)

// logWrite is one write: whole sectors of one segment.
type logWrite struct {
	from, to     int
	run, segment uint64 // segment is its turn
	last         uint64 // the last command in it
	since        time.Time
	done         bool
}

// startLog gives t memory of its own and starts the writers. size is that of the file.
func (j *Journal) startLog(t *tail, size int) {
	mem := ring.HeapPages(size) // after a failure a writer may use it longer than the journal lives
	for at := 0; at < size; at += tailSector {
		mem[at] = 0 // resident
	}
	l := &tailLog{from: t.at, last: t.next - 1, turned: make(chan struct{}, 1)}
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
			if safe, err := j.stabilize(); err != nil {
				_ = j.latch.Poison(fmt.Errorf("journal: free file=%s up to inputSeq=%d: %w", tailName,
					safe.inputSeq, err))
				return
			}
		case <-j.stop:
			return
		}
	}
}

// copyIn is tail.append for a tail that is a log.
func (j *Journal) copyIn(b *Block) tailSaid {
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
	l.work.Signal()
	return said
}

// close ends the write that is being filled at a place in its segment.
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

// next waits for a write that is due, or for frames, and begins the write. It returns false when
// the writers shall stop and nothing is left.
func (l *tailLog) next(t *tail) (n uint64, w logWrite, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for {
		filled := t.at > l.from+t.lead
		if l.dropped {
			return 0, w, false
		}
		if l.begun-l.oldest < tailWrites && (filled || len(l.due) > 0) {
			break
		}
		if l.stopping && !filled && len(l.due) == 0 {
			return 0, w, false
		}
		l.work.Wait()
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
	l.open[n%tailWrites] = w
	head := t.mem[w.from:][:tailWrite]
	binary.LittleEndian.PutUint64(head[24:], l.synced.Load())
	binary.LittleEndian.PutUint32(head[4:], crc32.Checksum(head[8:], castagnoli))
	return n, w, true
}

// writeTail is a writer.
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

// ended records that a write is on stable storage. It reports whether synced has moved, and how
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
	l.work.Signal() // the other writer may have waited for it
	return took, true
}

// behind returns a channel that is closed when synced moves on, or nil when it has reached
// inputSeq.
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

// answerLogged releases the answers of what is on stable storage. Writers only.
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

// stop ends the writers: when all is written, or at once.
func (l *tailLog) stop(drained bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stopping, l.dropped = true, l.dropped || !drained
	l.work.Broadcast()
}

// stop waits until the writers have ended. Without a log it does nothing.
func (t *tail) stop() {
	if t != nil && t.log != nil {
		t.log.stop(true)
		t.log.writers.Wait()
	}
}

// close closes the file, and with it the memory of its marks.
func (t *tail) close() error {
	if t.log != nil {
		t.log.answering.Lock()
		defer t.log.answering.Unlock()
		t.log.closed = true
	}
	return t.file.Close()
}

// secure waits until a commit is on stable storage: in the log or, when that had no room, in the
// store. The store's copy counts only from then on. Committer only.
func (j *Journal) secure(c *Commit) error {
	if !c.full {
		return j.logged(c.end.inputSeq)
	}
	j.syncing.Lock()
	defer j.syncing.Unlock()
	return j.flush()
}
