package installation

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"posttrade/httpapi"
	"posttrade/journal"
	"posttrade/ring/metric"
)

// scrubbing reads the journal again and again beside the other work, at the lowest priority.
//
// What it finds is an alarm in the log, a part of /readyz, a metric, and on a member the reason
// for healing.
type scrubbing struct {
	scrub *journal.Scrub // nil: off
	stop  context.CancelFunc
	ended sync.WaitGroup
}

// startScrubbing starts it; an interval of 0 is off.
//
// interval is the time from the end of a pass to the beginning of the next.
func startScrubbing(j *journal.Journal, interval time.Duration, log *slog.Logger) *scrubbing {
	ctx, cancel := context.WithCancel(context.Background())
	s := &scrubbing{stop: cancel}
	if interval == 0 {
		return s
	}
	s.scrub = journal.NewScrub(j, interval, func(d journal.Damage) {
		log.Error("journal alarm", "alarm", "a part of the journal cannot be read",
			"file", d.File, "key", d.Key, "fromSequence", d.From, "toSequence", d.To, "because", d.Why)
	})
	s.ended.Go(func() {
		err := journal.Politely(journal.Bulk, func() error { return s.scrub.Run(ctx) })
		if err != nil && ctx.Err() == nil {
			log.Error("the journal is not scrubbed any more", "error", err)
		}
	})
	return s
}

// end stops it. The journal must still be open.
func (s *scrubbing) end() {
	s.stop()
	s.ended.Wait()
}

// part is the scrub on /readyz. Orders need no old block, so it does not decide readiness.
//
// The first of the damaged parts is shown with its file, key and sequences; the log has all of
// them.
func (s *scrubbing) part() httpapi.Part {
	p := httpapi.Part{Name: "journal-scrub", Ready: true, Beside: true, Detail: "off"}
	if s.scrub == nil {
		return p
	}
	state := s.scrub.State()
	p.Detail = "no pass is complete"
	if !state.Completed.IsZero() {
		p.Detail = "complete at " + state.Completed.UTC().Format(time.RFC3339)
	}
	if n := len(state.Damaged); n > 0 {
		d := state.Damaged[0]
		p.Ready = false
		p.Detail = fmt.Sprintf("%d parts cannot be read, the first: file=%s key=%s sequences %d..%d: %s",
			n, d.File, d.Key, d.From, d.To, d.Why)
	}
	if err := s.scrub.Unkept(); err != nil {
		p.Ready = false
		p.Detail += fmt.Sprintf("; its file could not be written: %v", err)
	}
	return p
}

// metrics states what the scrub has done and found, if there is one.
func (s *scrubbing) metrics(emit metric.Emit) {
	if s.scrub != nil {
		s.scrub.Collect(emit)
	}
}
