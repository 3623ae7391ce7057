package journal

import (
	"strconv"
	"time"

	"posttrade/ring/metric"
)

// Collect states what a start would have to replay. Any goroutine; two loads and a clock.
func (s *Snapshotter) Collect(emit metric.Emit) {
	emit.Gauge("svc_snapshot_age_seconds",
		"Time since the newest snapshot was written; without one, since the process began.",
		max(time.Since(s.LastAt()).Seconds(), 0))
	emit.Gauge("svc_snapshot_sequence", "Input sequence of the newest snapshot, 0 for none.",
		float64(s.Last()))
}

// shownDamage limits the number of series of a metric: a ruined disk has damage everywhere.
const shownDamage = 20

// Collect states the progress and the damage that was found, at most shownDamage ranges of it. Any
// goroutine.
func (s *Scrub) Collect(emit metric.Emit) {
	state := s.State()
	completed := 0.0
	if !state.Completed.IsZero() {
		completed = float64(state.Completed.Unix())
	}
	emit.Gauge("svc_journal_scrub_completed_seconds",
		"When the last pass over the whole journal was complete, in seconds since 1970.", completed)
	emit.Gauge("svc_journal_scrub_sequence",
		"The command that the pass under way goes on with, 0 when none is.", float64(state.Next))
	emit.Gauge("svc_journal_scrub_damaged", "Parts of the journal that cannot be read.",
		float64(len(state.Damaged)))
	for _, d := range state.Damaged[:min(len(state.Damaged), shownDamage)] {
		emit.Gauge("svc_journal_scrub_damaged_commands",
			"Commands in a part of the journal that cannot be read.", float64(d.To-d.From+1),
			"file", d.File, "key", d.Key, "from", strconv.FormatUint(d.From, 10), "to",
			strconv.FormatUint(d.To, 10))
	}
}
