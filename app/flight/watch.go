package flight

import (
	"time"

	"posttrade/app/stats"
	"posttrade/journal"
)

// Sources is what a flight watches: counters that are kept anyway.
type Sources struct {
	Path    func(*stats.Path)
	Commits func() journal.Metrics
}

// late is a stage, how long something has waited for it at least, and up to which
// input sequence it had come then.
type late struct {
	stage    string
	took     time.Duration
	sequence uint64
}

// watch finds the slowest stage between two looks. The hot path does nothing
// for it: the committer's own histogram says how long commits took, and a stage
// that has not come past a sequence since it was seen ahead of it has let that
// command wait as long. So times are lower bounds.
type watch struct {
	from  Sources
	path  stats.Path
	marks [len(stats.Stages)]mark
	last  journal.Metrics
}

// mark is a sequence that a stage has yet to pass.
type mark struct {
	goal uint64
	seen time.Time // when it was ahead of the stage
}

// newFlightWatch counts from what has been committed so far.
func newFlightWatch(from Sources) watch {
	return watch{from: from, last: from.Commits()}
}

// look returns the stage that is, or was since the last look, the slowest.
func (w *watch) look(at time.Time) (worst late) {
	w.from.Path(&w.path)
	for i := range w.marks {
		s := &w.path.Stages[i]
		if age := w.marks[i].look(at, s.Sequence, s.Sequence+s.Behind); age > worst.took {
			worst = late{stats.Stages[i], age, s.Sequence}
		}
	}
	m := w.from.Commits()
	if took := slowestCommit(&w.last, &m); took > worst.took {
		worst = late{"commit", took, m.Durable}
	}
	w.last = m
	return worst
}

// look returns how long the mark has been ahead of the stage, and sets the next
// one when it is not any more.
func (m *mark) look(at time.Time, reached, ahead uint64) time.Duration {
	if reached < m.goal {
		return at.Sub(m.seen)
	}
	*m = mark{goal: ahead, seen: at}
	return 0
}

// slowestCommit is how long the longest commit between two readings took at
// least: exact when it was the longest so far, else the lower bound of its bucket.
func slowestCommit(before, after *journal.Metrics) time.Duration {
	if after.MaxCommit > before.MaxCommit {
		return after.MaxCommit
	}
	for i := len(after.CommitCounts) - 1; i > 0; i-- {
		if after.CommitCounts[i] > before.CommitCounts[i] {
			return time.Duration(journal.CommitBuckets[i-1] * 1e9)
		}
	}
	return 0
}
