package perf

import (
	"cmp"
	"errors"
	"fmt"
	"time"
)

// What the row asks for: million commands a second in a start without a snapshot; seconds of a
// start with one, which must not depend on how long the journal before it is.
var (
	recoveryRate = atLeast("P9", 5,
		"M commands/s from the journal through engine and views to a verified state")
	recoveryRestart = atMost("P9", 5, "restart with %d commands and a snapshot, s").
			as("restart with 100,000,000 commands and a snapshot, s")
)

// restartCommands is the default number of commands in the journal of the restart; restartAsked is
// the number that the table asks for. It takes minutes to make so many. Smoke runs have a
// hundredth.
const restartCommands, restartAsked = 20_000_000, 100_000_000

// measureRecovery is row P9: a journal replayed through the engine from its first command, and a
// start from a snapshot of it.
//
// The journal is made by the flow of row P6 in mode os: one symbol, a small book, every second
// order trades. Both times are of a whole start of the engine in this process, with the check of
// the journal's hash chain and the views, until it can take orders; services and listeners are not
// in them. The files were just written and are in the kernel's cache, so no figure has the disk's
// reads in it: a start after a power cut is slower by them. A replay also depends on main memory,
// whose read time stands beside it.
func measureRecovery(r *Run) error {
	o := engineOptions{folder: "recovery", durability: "os", genesis: flowGenesis(1), unsnapped: true}
	e, n, err := r.pumped(o, cmp.Or(r.o.Restart, restartCommands))
	if err != nil {
		return err
	}
	if err := e.stop(); err != nil {
		return err
	}
	far := r.farRead()
	if err := r.settle(); err != nil {
		return err
	}
	e, replay, err := r.openAgain(o, n, n)
	if err != nil {
		return err
	}
	if err := e.snapshot(); err != nil {
		return errors.Join(err, e.close())
	}
	if err := e.stop(); err != nil {
		return err
	}
	e, restart, err := r.openAgain(o, n, 0)
	if err != nil {
		return err
	}
	rate := float64(n) / replay.Seconds() / 1e6
	r.bench("Recovery/op=replay", n, replay, metric{rate, "M/s"}, metric{far, "memory-read-ns"})
	r.figures(fmt.Sprintf("Recovery/op=restart-from-snapshot/commands=%d", n),
		metric{restart.Seconds(), "s"})
	r.judge(recoveryRate, rate).beside("a read of memory takes %.0f ns", far)
	t := r.judge(recoveryRestart, restart.Seconds(), n)
	if n < restartAsked/pumpedBatch*pumpedBatch {
		t.beside("the table asks for %d commands: --restart-commands", restartAsked)
	}
	return e.close()
}

// openAgain starts on a journal of n commands, and returns how long the start took. Another number
// of commands after the start, or of those that it has decided anew, is an error: a fast start that
// lost some, or began at a snapshot, is worth nothing.
func (r *Run) openAgain(o engineOptions, n, replayed int) (e *fullEngine, took time.Duration,
	err error) {
	start := time.Now()
	if e, err = r.open(o); err != nil {
		return nil, 0, err
	}
	took = time.Since(start)
	if got := e.durable(); got != uint64(n) || e.Recovered.Replayed != uint64(replayed) {
		err = fmt.Errorf("%d commands after the start, %d before; %d were decided anew, want %d", got, n,
			e.Recovered.Replayed, replayed)
		return nil, 0, errors.Join(err, e.close())
	}
	return e, took, nil
}
