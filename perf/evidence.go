package perf

import (
	"context"
	"errors"
	"path/filepath"
	"time"

	"posttrade/journal/evidence"
	"posttrade/perf/load"
)

// What the row asks for.
var (
	evidenceRate = atLeast("P16", 2e6, "transparency log catching up, commands/s of one core")
	besideLog    = atMost("P16", besideLimit,
		"p99 of orders at half of saturation, the transparency log on, against off")
)

// logLoad is the rate of the orders beside the log, as a share of the engine's saturation.
const logLoad = 0.5

// The turns of orders beside the log. A second one without it shows by how much two turns differ
// that have nothing beside them.
const (
	besideLogOn       = "log"
	besideNothingElse = "nothing-again"
)

// measureEvidence is row P16: the transparency log catches up with a journal, and orders at half of
// saturation with the log on and off, by turns.
func measureEvidence(r *Run) error {
	if err := r.withHistory("evidence", 1_000_000,
		func(d *fullEngine, _ int) error { return r.catchUp(d) }); err != nil {
		return err
	}
	return r.ordersBesideLog()
}

// keptLog is the transparency log of an engine, on or off.
type keptLog struct {
	*evidence.Log
	engine *fullEngine
	cancel context.CancelFunc
	ended  chan error
}

func (r *Run) logOf(e *fullEngine, interval time.Duration) (*keptLog, error) {
	l, err := evidence.Open(e.Journal, evidence.Options{Dir: filepath.Join(e.dir, "evidence"),
		Engine: e.rebuild().Engine, Interval: interval})
	return &keptLog{Log: l, engine: e}, err
}

// on starts the log and returns when it has signed the journal's head.
func (k *keptLog) on() error {
	ctx, cancel := context.WithCancel(context.Background())
	k.cancel, k.ended = cancel, make(chan error, 1)
	go func() { k.ended <- k.Run(ctx) }()
	head, _ := k.engine.Journal.Head()
	for s := k.State(); s.Signed < head; s = k.State() {
		if s.Err != nil || s.Failed != nil {
			return k.off()
		}
		time.Sleep(time.Millisecond)
	}
	return nil
}

// off ends the log, with a head over everything.
func (k *keptLog) off() error {
	k.cancel()
	s := k.State()
	return errors.Join(<-k.ended, s.Err, s.Failed)
}

// catchUp measures the log over a whole journal. The figure is in processor time, of which the log
// has one core at the most beside everything else.
func (r *Run) catchUp(e *fullEngine) error {
	k, err := r.logOf(e, 10*time.Millisecond)
	if err != nil {
		return err
	}
	head, _ := e.Journal.Head()
	if err := e.Journal.WaitStable(context.Background(), head); err != nil {
		return err
	}
	start, before := time.Now(), processorTime()
	if err := k.on(); err != nil {
		return err
	}
	took, used := time.Since(start), processorTime()-before
	if err := k.off(); err != nil {
		return err
	}
	rate := float64(head) / used.Seconds()
	r.bench("Evidence/op=catch-up", int(head), took, metric{rate, "commands/core-s"},
		metric{float64(head) / took.Seconds(), "commands/s"})
	r.judge(evidenceRate, rate)
	return nil
}

// ordersBesideLog measures orders at half of saturation with the log off, on and off again.
func (r *Run) ordersBesideLog() (err error) {
	e, err := r.open(engineOptions{folder: "evidence-beside", durability: "fsync",
		genesis: flowGenesis(1)})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, e.close()) }()
	k, err := r.logOf(e, time.Second) // as it is by default
	if err != nil {
		return err
	}
	clock := load.NewBusyClock()
	b := beside{name: besideLogOn, target: newEngineTarget(e, clock), clock: clock,
		alone: r.duration(besideTurn)}
	if err := b.saturation(r, logLoad); err != nil {
		return err
	}
	p50, p99 := map[string][]time.Duration{}, map[string][]time.Duration{}
	turn := func(name string) func(int) error {
		return func(round int) error {
			s, err := r.besidePhase(b, name, round,
				func(int) error { time.Sleep(b.alone); return nil })
			if err == nil {
				p50[name], p99[name] = append(p50[name], s.At(50)), append(p99[name], s.At(99))
			}
			return err
		}
	}
	on := turn(besideLogOn)
	err = inTurns(besideRounds, turn(besideNothing), func(round int) error {
		if err := k.on(); err != nil { // what came while it was off is not measured
			return err
		}
		return errors.Join(on(round), k.off())
	}, turn(besideNothingElse))
	if err != nil {
		return err
	}
	middle := pairs(p50[besideNothing], p50[besideLogOn])
	again := pairs(p99[besideNothing], p99[besideNothingElse])
	r.figures("Evidence/op=orders-beside", metric{b.perSecond, "orders/s"},
		metric{middle.ratio, "x-p50-on"}, metric{again.ratio, "x-p99-off-again"})
	p := pairs(p99[besideNothing], p99[besideLogOn])
	r.judge(besideLog, p.ratio).beside("median of %d rounds, %.3g to %.3g; off against off %.3g, "+
		"%.3g to %.3g; p50 %.3g", p.rounds, p.least, p.most, again.ratio, again.least, again.most,
		middle.ratio)
	return nil
}
