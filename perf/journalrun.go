package perf

import (
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"posttrade/journal"
	"posttrade/matcher"
)

// stalls are the longer times in which nothing became durable although commands waited. One is
// longer than the longest sync when several of them follow each other without an answer.
type stalls struct {
	last time.Time
	// each is every one longer than stallKept, and longest the longest of all.
	each    []span
	longest time.Duration
}

// span is the time between two moments.
type span struct{ from, to time.Time }

// stallKept is the length from which a stall is kept, to be held against the machine's standstills.
const stallKept = time.Millisecond

// durable notes that the block that began at begun is now durable. Commits come in order. The wait
// counts from the answer before, or from begun if nothing waited then, so time without a command is
// no stall.
func (s *stalls) durable(begun, now time.Time) {
	if begun.Before(s.last) {
		begun = s.last
	}
	s.longest = max(s.longest, now.Sub(begun))
	if now.Sub(begun) > stallKept {
		s.each = append(s.each, span{begun, now})
	}
	s.last = now
}

// longestWithout is the longest stall when the time in which the machine stood still does not
// count. Below stallKept it is not exact.
func (s *stalls) longestWithout(still standstills) (d time.Duration) {
	for _, p := range s.each {
		d = max(d, p.to.Sub(p.from)-still.within(p.from, p.to))
	}
	return d
}

// runJournal appends blocks of n commands for d, with at most inFlight blocks not yet durable, and
// waits for the last one. The journal is in mode fsync with a tail, in a folder of this name in the
// run's folder, which is removed when the row has ended. An answer of a command that the store does
// not have in the end is an error.
func (r *Run) runJournal(name string, d time.Duration,
	n, inFlight int) (out journalRun, err error) {
	dir := filepath.Join(r.o.Dir, name)
	j, err := journal.Open(dir, journal.Options{Durability: journal.DurabilityFsync, Tail: true,
		Fatal: func(error) {}})
	if err != nil {
		return out, err
	}
	defer func() { err = errors.Join(err, j.Close(), r.leave(dir)) }()
	if err := j.Create(flowGenesis(1).Marshal()); err != nil {
		return out, err
	}
	w := awaited{alone: inFlight == 1, commands: drawnCommands(5, 1<<18),
		flights: make(chan flight, inFlight),
		room:    make(chan struct{}, inFlight), moved: make(chan struct{}, 1),
		failed: make(chan error, 1)}
	j.OnDurable(w.answered, func(err error) { w.failed <- err })
	done := make(chan error, 1)
	go func() { done <- w.wait(j) }()
	start := time.Now()
	seq, err := w.append(j, n, func() bool { return time.Since(start) < d })
	if err != nil {
		return out, err
	}
	if err := <-done; err != nil {
		return out, err
	}
	elapsed := time.Since(start)
	if head, _ := j.Head(); head != seq { // the store is behind the answers
		return out, fmt.Errorf("%d commands durable, %d appended", head, seq)
	}
	m := j.Metrics()
	return journalRun{
		perSecond:       float64(seq) / elapsed.Seconds(),
		bytesPerCommand: float64(m.CommitBytes) / float64(seq),
		p50:             time.Duration(percentile(w.took, 50)),
		p99:             time.Duration(percentile(w.took, 99)),
		max:             m.MaxCommit,
		took:            elapsed, stalls: w.stalled, counts: countsOf(m),
		bytesPerCommit: float64(m.CommitBytes) / float64(max(m.Commits, 1)),
	}, nil
}

// journalRun is what one run through the journal measured.
type journalRun struct {
	// perSecond is durable commands a second; bytesPerCommand the packed bytes of a command in the
	// store.
	perSecond, bytesPerCommand float64
	// bytesPerCommit is the packed bytes of a commit: how many blocks share one.
	bytesPerCommit float64
	// p50 and p99 are of a block from before its append to its answer, behind those under way. max is
	// the journal's own longest commit, and took the time from the first append to the last answer.
	p50, p99, max, took time.Duration
	// stalls are the times without progress.
	stalls stalls
	// counts are all commits by how long they took.
	counts commitCounts
}

// flight is a block under way. begun is the time just before its append.
type flight struct {
	last  uint64 // its last command
	begun time.Time
}

// awaited are the blocks of a run: one goroutine appends them, and another one waits for them. A
// third one, of the journal, calls answered and failed.
type awaited struct {
	// alone: a block begins when the store has room for it, as the recorder's do. Otherwise its
	// append would wait for the pace of the store, for which no answer waits.
	alone bool
	// commands are those that the blocks repeat, with new sequences and times.
	commands []matcher.Command
	// flights are the blocks from the appender to the waiter, in order. The appender closes it.
	flights chan flight
	// room holds a value for each block under way; it blocks the appender when there are inFlight of
	// them.
	room chan struct{}
	// moved has one place: a value says that answers have gone on since the waiter looked last.
	moved chan struct{}
	// failed has the journal's error, in its one place, from the moment it is poisoned.
	failed chan error

	// took is the nanoseconds of each block. The waiter writes it and stalled; the caller reads them
	// when the waiter has returned.
	took    []int64
	stalled stalls
}

// append appends blocks of n commands as long as more says so, and returns the last sequence. It
// closes flights in any case, or the waiter would not end.
func (w *awaited) append(j *journal.Journal, n int, more func() bool) (seq uint64, err error) {
	defer close(w.flights)
	var block journal.Block
	for more() {
		block.Reset()
		for range n {
			c := w.commands[seq%uint64(len(w.commands))]
			seq++
			c.InputSeq = seq
			c.EventTimeMillis += int64(seq / 1000)
			block.Command(&c)
		}
		w.room <- struct{}{}
		for w.alone && !j.Room(n) {
			time.Sleep(20 * time.Microsecond)
		}
		begun := time.Now()
		if _, err := j.Append(&block); err != nil {
			return seq, err
		}
		w.flights <- flight{seq, begun}
	}
	return seq, nil
}

// answered is called when answers have gone on, from a goroutine of the journal: it must not block.
func (w *awaited) answered(uint64) {
	select {
	case w.moved <- struct{}{}:
	default:
	}
}

// wait waits for the answers of the blocks in their order, and returns the first error. After an
// error it still takes every flight, so that the appender is not left waiting for room.
func (w *awaited) wait(j *journal.Journal) (first error) {
	for f := range w.flights {
		if err := w.durable(j, f.last); err != nil && first == nil {
			first = err
		}
		now := time.Now()
		w.took = append(w.took, now.Sub(f.begun).Nanoseconds())
		w.stalled.durable(f.begun, now)
		<-w.room
	}
	return first
}

// durable waits until a command is answered, or the journal has failed.
func (w *awaited) durable(j *journal.Journal, last uint64) error {
	for j.Answered() < last {
		select {
		case <-w.moved:
		case err := <-w.failed:
			w.failed <- err // for the next block
			return err
		}
	}
	return nil
}
