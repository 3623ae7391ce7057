package flight

import (
	"time"

	"posttrade/app/stats"
	"posttrade/journal"
)

// Sources are the counters that a Recorder watches. Their owners keep them anyway.
//
// Both are required, and are called at each look.
type Sources struct {
	Path    func(*stats.Path)
	Commits func() journal.Metrics
}

// stageDelay is a stage, the least time that a command has waited for it, and the input sequence
// that the stage had reached then.
type stageDelay struct {
	stage    string
	took     time.Duration
	sequence uint64
}

// watch finds the slowest stage between two looks. The hot path does nothing for it. The
// committer's own histogram says how long commits took. A stage that has not passed a sequence
// since watch first saw that sequence ahead of it has let the command wait for at least that time.
// So times are lower bounds.
type watch struct {
	from  Sources
	path  stats.Path
	marks [len(stats.Stages)]mark
	last  journal.Metrics
}

// mark is a sequence that a stage has not yet passed.
type mark struct {
	goal uint64
	seen time.Time // when watch saw it ahead of the stage
}

// newFlightWatch counts from what is committed so far.
func newFlightWatch(from Sources) watch {
	return watch{from: from, last: from.Commits()}
}

// look returns the stage that was the slowest since the last look, or is now.
func (w *watch) look(at time.Time) (worst stageDelay) {
	w.from.Path(&w.path)
	for i := range w.marks {
		s := &w.path.Stages[i]
		if age := w.marks[i].look(at, s.Sequence, s.Sequence+s.Behind); age > worst.took {
			worst = stageDelay{stats.Stages[i], age, s.Sequence}
		}
	}
	m := w.from.Commits()
	if took := slowestCommit(&w.last, &m); took > worst.took {
		worst = stageDelay{"commit", took, m.Durable}
	}
	w.last = m
	return worst
}

// look returns how long the mark has been ahead of the stage. When the stage has passed the mark,
// look sets the next one.
func (m *mark) look(at time.Time, reached, ahead uint64) time.Duration {
	if reached < m.goal {
		return at.Sub(m.seen)
	}
	*m = mark{goal: ahead, seen: at}
	return 0
}

// slowestCommit is the least time that the longest commit between two readings took. It is exact
// when that commit was the longest so far, otherwise the lower bound of its bucket.
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
