package perf

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"time"

	"posttrade/app/engine"
	"posttrade/journal"
)

// What the row asks for.
//
//   - journalKeys: three times the rate of a plain store with a key for each record, on the same
//     disk.
//   - journalStall, journalLongest: milliseconds in a minute of full load. They are asked of a disk
//     with nothing else on it; the longest raw write of this run stands beside them.
//   - journalCommit: a commit is one write and one sync, so its p50 may be at most two of them.
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
//
// The load is one goroutine that appends blocks of the generated orders of drawnCommands as fast as
// answers come. The blocks have commands only: no fills and no client ids, which a running engine
// adds. No matcher decides them and nothing reads the journal meanwhile. Peers and journal take
// turns in three rounds of five seconds, whose median counts.
//
// The row has the spare processors of an engine, for its peers too: with as many processors as
// cores, a goroutine that a finished write wakes waits until another one gives its processor up.
//
// Every figure depends on the disk below Options.Dir. It lies when that disk holds writes in
// memory, or when another process syncs files on it.
func measureJournal(r *Run) error {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	engine.NewProcessors(engine.SpareProcs).Raise()
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
	long, still, err := r.journalMinute()
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
	r.judgeMinute(&long, still, max(raw.Max, after.Max))
	r.figures("Journal/op=commit/batch=256", metric{small.p50.Seconds() * 1e6, "p50-us"},
		metric{small.p99.Seconds() * 1e6, "p99-us"},
		metric{float64(raw.P50.Microseconds()), "raw-64KiB-p50-us"})
	r.judge(journalCommit, float64(small.p50)/float64(raw.P50)).
		beside("raw %.4g us", microseconds(raw.P50))
	return nil
}

// judgeAppends judges large blocks: rate and key are commands a second, medians of three rounds;
// the bytes are those of the last round. bytesPerCommand counts the packed bytes handed to the
// store. The log, whose files are used again, and what the store rewrites in compactions are not in
// it.
func (r *Run) judgeAppends(rate, key float64, last *journalRun) {
	r.figures("Journal/op=append/batch=8192", metric{rate / 1e6, "M/s"},
		metric{key / 1e6, "key-per-record-M/s"},
		metric{last.bytesPerCommand, "bytes/command"}, metric{last.max.Seconds() * 1e3, "max-ms"})
	r.judge(journalKeys, rate/key).beside("key per record %.4g M/s", key/1e6)
	r.judge(journalRate, rate/1e6)
	r.judge(journalBytes, last.bytesPerCommand)
}

// journalMinute is the long run, with the machine's standstills in it.
func (r *Run) journalMinute() (long journalRun, still standstills, err error) {
	w, err := r.watchStandstills()
	if err != nil {
		return long, nil, err
	}
	long, err = r.runJournal("journal-minute", r.duration(time.Minute), 8192, 64)
	still, watched := w.end()
	return long, still, errors.Join(err, watched)
}

// judgeMinute judges the long run; bare is the longest raw write before and after it. A raw write
// as long as the journal's longest commit says that the disk did it, a standstill as long that the
// machine did.
func (r *Run) judgeMinute(long *journalRun, still standstills, bare time.Duration) {
	r.figures("Journal/op=minute/batch=8192",
		append([]metric{{long.perSecond / 1e6, "M/s"}, {milliseconds(long.counts.at(99.9)), "p99.9<=ms"},
			{milliseconds(long.max), "max-ms"}, {milliseconds(long.stalls.longest), "stall-ms"},
			{milliseconds(long.stalls.longestWithout(still)), "stall-without-standstills-ms"},
			{milliseconds(still.longest()), "standstill-max-ms"},
			{milliseconds(bare), "raw-64KiB-max-ms"},
			{long.bytesPerCommit, "bytes/commit"}}, long.counts.histogram()...)...)
	r.judge(journalStall, milliseconds(long.stalls.longest), long.took.Round(time.Second)).
		beside("the machine stood still for %.4g ms; without such times %.4g ms; raw write %.4g ms",
			milliseconds(still.longest()), milliseconds(long.stalls.longestWithout(still)),
			milliseconds(bare))
	r.judge(journalLongest, milliseconds(long.max)).
		beside("the machine stood still for %.4g ms; longest raw 64 KiB write %.4g ms",
			milliseconds(still.longest()), milliseconds(bare))
}

// blockPeers are Pebble with blocks of records as values: bare, and packed like the journal's. They
// are shown and not judged.
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

// milliseconds is a duration in the unit of the figures that end with ms.
func milliseconds(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e6 }
