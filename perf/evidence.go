package perf

import (
	"context"
	"errors"
	"path/filepath"
	"time"

	"posttrade/journal/evidence"
)

// What the row asks for.
var evidenceRate = atLeast("P16", 2e6, "transparency log catching up, commands/s of one core")

// evidence is row P16: the transparency log catches up with the whole journal. The figure is in
// processor time, of which the log has one core at the most beside everything else.
func (r *Run) evidence(d *fullEngine) (err error) {
	l, err := evidence.Open(d.Journal, evidence.Options{Dir: filepath.Join(r.o.Dir, "evidence"),
		Engine: d.rebuild().Engine, Interval: 10 * time.Millisecond})
	if err != nil {
		return err
	}
	head, _ := d.Journal.Head()
	if err := d.Journal.WaitStable(context.Background(), head); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	start, before := time.Now(), processorTime()
	go func() { ended <- l.Run(ctx) }()
	for s := l.State(); s.Signed < head && s.Err == nil && s.Failed == nil; s = l.State() {
		time.Sleep(time.Millisecond)
	}
	took, used := time.Since(start), processorTime()-before
	cancel()
	if err := <-ended; err != nil {
		return err
	}
	if s := l.State(); s.Err != nil || s.Failed != nil {
		return errors.Join(s.Err, s.Failed)
	}
	rate := float64(head) / used.Seconds()
	r.bench("Evidence/op=catch-up", int(head), took, metric{rate, "commands/core-s"},
		metric{float64(head) / took.Seconds(), "commands/s"})
	r.judge(evidenceRate, rate)
	return nil
}
