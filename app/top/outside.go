package top

import (
	"fmt"
	"time"

	"posttrade/app/stats"
	"posttrade/sidecars/control"
)

// feedLines shows the control sources: what the gate has applied of what the source has.
//
// A source that is not ready holds up every order, so its state has a colour.
func feedLines(s *span, _ int) []frameLine {
	if s.to.Feeds.Present != stats.Here {
		return []frameLine{heading("FEEDS", absentSidecars(s.to.Feeds.Present))}
	}
	lines := []frameLine{heading("FEEDS", "")}
	for i, name := range control.Sources() {
		f := &s.to.Feeds.Sources[i]
		state := Named(stats.FeedStates[:], f.State)
		lines = append(lines,
			frameLine{label(string(name)), {fmt.Sprintf("%-13s", state), feedTone(state)},
				say(" applied %s of %s; unpublished %s, oldest %s", thousands(f.Watermark),
					thousands(f.HighWatermark),
					thousands(f.Unpublished), short(time.Duration(f.PublishLagNanos)))})
	}
	return lines
}

// absentSidecars says why there are no figures of feeds or lags.
func absentSidecars(present uint64) string {
	if present == stats.Elsewhere {
		return "none here: the leader has them"
	}
	return "none: sidecars are off"
}

// feedTone marks a state of stats.FeedStates: green for one that admits orders, red for one that
// needs an operator or a new snapshot, yellow for one that is under way.
func feedTone(state string) tone {
	switch state {
	case "ready", "seeds only":
		return toneGood
	case "quarantined":
		return toneBad
	}
	return toneWarning
}

// lagLines shows how far the sidecars are behind the journal, and whether database and broker can
// be reached.
func lagLines(s *span, _ int) []frameLine {
	l := &s.to.Lags
	if l.Present != stats.Here {
		return []frameLine{heading("LAGS", absentSidecars(l.Present))}
	}
	breaks := piece{thousands(l.OpenBreaks), toneGood}
	if l.OpenBreaks > 0 {
		breaks.tone = toneBad
	}
	second := frameLine{label("database"), reachability(l.Database), say("  broker "),
		reachability(l.Broker)}
	if l.Failed > 0 {
		second = append(second, piece{fmt.Sprintf("  %d sidecars have FAILED", l.Failed), toneBad})
	}
	return []frameLine{headed("LAGS", say("projection %s  recon %s  tca %s  open breaks ",
		thousands(l.Projection), thousands(l.Recon), thousands(l.TCA)), breaks), second}
}

// reachability is a word of the file, 0 or 1, as text.
func reachability(word uint64) piece {
	if word != 0 {
		return piece{"reachable", toneGood}
	}
	return piece{"NOT REACHABLE", toneBad}
}

// clusterLines shows this member's place in the cluster: its role, the end of the agreed log here,
// what the engine was given of it, and how long agreement takes.
func clusterLines(s *span, _ int) []frameLine {
	c := &s.to.Cluster
	if c.Members == 0 {
		return []frameLine{heading("CLUSTER", "single node")}
	}
	return []frameLine{
		headed("CLUSTER", say("member %d, %s of %d in term %s, leader %d",
			c.Member, Named(stats.Roles[:], c.Role), c.Members, thousands(c.Term), c.Leader)),
		{label("agreement"), say("%s, applied %s; %s", thousands(c.Index), thousands(c.Applied),
			s.percentiles(func(i *stats.Image) *stats.Distribution { return &i.Cluster.Commit }))},
	}
}
