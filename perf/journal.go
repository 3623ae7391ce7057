package perf

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"posttrade/journal"
	"posttrade/matcher"
)

// What the row asks for.
var (
	journalKeys  = atLeast("P5", 3, "journal against one Pebble key per record")
	journalRate  = atLeast("P5", 8, "journal, durable M commands/s")
	journalBytes = atMost("P5", 15, "bytes a command on disk")
	journalStall = atMost("P5", 5, "longest time in %v in which nothing became durable, ms").
			as("longest time in a minute in which nothing became durable, ms")
	journalLongest = atMost("P5", 5, "longest commit in it, behind up to 63 others, ms")
	journalCommit  = atMost("P5", 2, "commit p50 against a raw 64 KiB write and fdatasync")
)

// measureJournal is row P5: durable commands through the journal alone, beside one Pebble key per
// record, and the floor of a commit on this disk.
func measureJournal(r *Run) error {
	ctx := context.Background()
	d := r.duration(5 * time.Second)
	var ours, peer []float64
	var last journalRun
	for round := range 3 {
		dir := filepath.Join(r.o.Dir, fmt.Sprintf("key-per-record-%d", round))
		m, err := journal.CompareKeyPerRecord(ctx, dir, d)
		if err != nil {
			return err
		}
		peer = append(peer, m.PerSecond())
		if last, err = r.runJournal(fmt.Sprintf("journal-%d", round), d, 8192, 64); err != nil {
			return err
		}
		ours = append(ours, last.perSecond)
	}
	if err := r.blockPeers(ctx, d/2); err != nil {
		return err
	}
	raw, err := journal.CompareRawWrites(ctx, r.o.Dir, d, 64<<10)
	if err != nil {
		return err
	}
	long, err := r.runJournal("journal-minute", r.duration(time.Minute), 8192, 64)
	if err != nil {
		return err
	}
	after, err := journal.CompareRawWrites(ctx, r.o.Dir, d, 64<<10)
	if err != nil {
		return err
	}
	small, err := r.runJournal("journal-commit", d, 256, 1)
	if err != nil {
		return err
	}
	r.judgeAppends(median(ours), median(peer), &last)
	r.judgeMinute(&long, max(raw.Max, after.Max))
	r.figures("Journal/op=commit/batch=256", metric{small.p50.Seconds() * 1e6, "p50-us"},
		metric{small.p99.Seconds() * 1e6, "p99-us"},
		metric{float64(raw.P50.Microseconds()), "raw-64KiB-p50-us"})
	r.judge(journalCommit, float64(small.p50)/float64(raw.P50)).
		beside("raw %.4g us", microseconds(raw.P50))
	return nil
}

// judgeAppends judges large blocks: rate and key are commands a second.
func (r *Run) judgeAppends(rate, key float64, last *journalRun) {
	r.figures("Journal/op=append/batch=8192", metric{rate / 1e6, "M/s"},
		metric{key / 1e6, "key-per-record-M/s"},
		metric{last.bytesPerCommand, "bytes/command"}, metric{last.max.Seconds() * 1e3, "max-ms"})
	r.judge(journalKeys, rate/key).beside("key per record %.4g M/s", key/1e6)
	r.judge(journalRate, rate/1e6)
	r.judge(journalBytes, last.bytesPerCommand)
}

// judgeMinute judges the long run; bare is the longest raw write before and after it.
func (r *Run) judgeMinute(long *journalRun, bare time.Duration) {
	r.figures("Journal/op=minute/batch=8192",
		append([]metric{{long.perSecond / 1e6, "M/s"}, {milliseconds(long.counts.at(99.9)), "p99.9<=ms"},
			{milliseconds(long.max), "max-ms"}, {milliseconds(long.stall), "stall-ms"}, {milliseconds(bare),
				"raw-64KiB-max-ms"}, {long.bytesPerCommit, "bytes/commit"}}, long.counts.histogram()...)...)
	r.judge(journalStall, milliseconds(long.stall), long.took.Round(time.Second)).
		beside("longest raw 64 KiB write %.4g ms", milliseconds(bare))
	r.judge(journalLongest, milliseconds(long.max)).
		beside("longest raw 64 KiB write %.4g ms", milliseconds(bare))
}

// blockPeers are Pebble with blocks of records as values: bare, and packed like the journal's.
func (r *Run) blockPeers(ctx context.Context, d time.Duration) error {
	const records = 1024
	bare, err := journal.CompareBlockAsValue(ctx, filepath.Join(r.o.Dir, "block-as-value"), d, records)
	if err != nil {
		return err
	}
	packed, err := journal.CompareBlockPacked(ctx, filepath.Join(r.o.Dir, "block-packed"), d, records)
	if err != nil {
		return err
	}
	r.figures(fmt.Sprintf("Journal/op=block as value/batch=%d", records),
		metric{bare.PerSecond() / 1e6, "M/s"}, metric{packed.PerSecond() / 1e6, "packed-M/s"})
	return nil
}

type journalRun struct {
	perSecond, bytesPerCommand float64
	bytesPerCommit             float64
	p50, p99, max, took, stall time.Duration
	counts                     commitCounts
}

// stall is the longest time in which nothing became durable although commands waited.
type stall struct {
	last    time.Time
	longest time.Duration
}

// durable notes that the block that began at begun is now durable. Commits come in order.
func (s *stall) durable(begun, now time.Time) {
	if begun.Before(s.last) {
		begun = s.last
	}
	s.longest = max(s.longest, now.Sub(begun))
	s.last = now
}

func milliseconds(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e6 }

// runJournal appends blocks of n commands for d, with inFlight blocks not yet durable, and waits
// for the last one.
func (r *Run) runJournal(name string, d time.Duration,
	n, inFlight int) (out journalRun, err error) {
	dir := filepath.Join(r.o.Dir, name)
	j, err := journal.Open(dir, journal.Options{Durability: journal.DurabilityFsync, Tail: true,
		Fatal: func(error) {}})
	if err != nil {
		return out, err
	}
	// a run of a minute writes gigabytes
	defer func() { err = errors.Join(err, j.Close(), os.RemoveAll(dir)) }()
	if err := j.Create(flowGenesis(1).Marshal()); err != nil {
		return out, err
	}
	w := awaited{commands: drawnCommands(5, 1<<18), flights: make(chan flight, inFlight),
		room: make(chan struct{}, inFlight), moved: make(chan struct{}, 1),
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
		took:            elapsed, stall: w.stalled.longest, counts: countsOf(m),
		bytesPerCommit: float64(m.CommitBytes) / float64(max(m.Commits, 1)),
	}, nil
}

// flight is a block under way.
type flight struct {
	last  uint64 // its last command
	begun time.Time
}

// awaited are the blocks of a run: one goroutine appends them, and another one waits for them.
type awaited struct {
	commands []matcher.Command // that the blocks repeat
	flights  chan flight
	room     chan struct{} // a value for each block under way
	moved    chan struct{} // answers have gone on
	failed   chan error    // the journal has

	took    []int64 // nanoseconds of each; writer: wait, like stalled
	stalled stall
}

// append appends blocks of n commands as long as more says so, and returns the last sequence.
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
		begun := time.Now()
		if _, err := j.Append(&block); err != nil {
			return seq, err
		}
		w.flights <- flight{seq, begun}
	}
	return seq, nil
}

// answered is called when answers have gone on.
func (w *awaited) answered(uint64) {
	select {
	case w.moved <- struct{}{}:
	default:
	}
}

// wait waits for the answers of the blocks in their order, and returns the first error.
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

// durable waits until a command is answered.
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
