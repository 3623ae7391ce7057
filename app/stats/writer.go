package stats

import (
	"errors"
	"time"
)

// writer keeps the stats file up to date. One goroutine, the one in Run, owns it.
type writer struct {
	File    *file
	from    Sources
	runtime *runtimeReader
	// The clock; tests have one of their own.
	now func() time.Time
	// When the writer was made: what Clock.UptimeNanos counts from.
	begun time.Time
	// The figures of the last look. Sums in it go on from look to look.
	Image Image
}

// NewStatsWriter makes a new file at path and takes its lock. The name leads to the new file at
// once, with figures of zero until the first Look. The caller runs Run, which closes the file.
func NewStatsWriter(path string, from Sources, now func() time.Time) (*writer, error) {
	w := &writer{from: from, runtime: newRuntimeReader(), now: now, begun: now()}
	var err error
	w.File, err = createStats(path, w.begun)
	return w, err
}

// Look reads all figures and writes them to the file.
//
// An error is that of the mapping, and final.
func (w *writer) Look() error {
	i, at := &w.Image, w.now()
	w.from.Path(&i.Path)
	i.Commits.lookCommits(w.from.Commits())
	i.Answers.lookAnswers(w.from.Answers)
	w.runtime.look(&i.Runtime)
	if w.from.Feeds != nil {
		w.from.Feeds(&i.Feeds)
	}
	if w.from.Lags != nil {
		w.from.Lags(&i.Lags)
	}
	if w.from.Cluster != nil {
		w.from.Cluster(&i.Cluster)
	}
	if w.from.Sessions != nil {
		w.from.Sessions(&i.Sessions)
	}
	i.Clock.Tick++
	i.Clock.WallNanos, i.Clock.UptimeNanos = uint64(at.UnixNano()), uint64(at.Sub(w.begun))
	return w.File.store(i)
}

// Run looks at every tick until stop is closed. Then it looks once more and writes that the process
// has ended in an orderly way.
//
// It returns the first error of a Look, after which the file is closed and a reader sees a process
// that is gone. Only the figures are lost.
func (w *writer) Run(tick <-chan time.Time, stop <-chan struct{}) error {
	for {
		if err := w.Look(); err != nil {
			return errors.Join(err, w.File.Close())
		}
		select {
		case <-tick:
		case <-stop:
			w.Image.Clock.Stopped = 1
			return errors.Join(w.Look(), w.File.Close())
		}
	}
}
