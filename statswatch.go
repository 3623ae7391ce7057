package main

import (
	"errors"
	"log/slog"
	"sync"
	"time"
)

// statsEvery is how often the serving process writes its figures.
const statsEvery = 100 * time.Millisecond

// statsWriter keeps the stats file true. One goroutine, run, owns it.
type statsWriter struct {
	file    *statsFile
	from    statsSources
	runtime *runtimeReader
	now     func() time.Time
	begun   time.Time
	image   statsImage
}

func newStatsWriter(path string, from statsSources, now func() time.Time) (*statsWriter, error) {
	w := &statsWriter{from: from, runtime: newRuntimeReader(), now: now, begun: now()}
	var err error
	w.file, err = createStats(path, w.begun)
	return w, err
}

// look reads everything and writes it down.
func (w *statsWriter) look() error {
	i, at := &w.image, w.now()
	w.from.path(&i.Path)
	i.Commits.look(w.from.commits())
	i.Answers.look(w.from.answers)
	w.runtime.look(&i.Runtime)
	if w.from.feeds != nil {
		w.from.feeds(&i.Feeds)
	}
	if w.from.lags != nil {
		w.from.lags(&i.Lags)
	}
	if w.from.cluster != nil {
		w.from.cluster(&i.Cluster)
	}
	if w.from.sessions != nil {
		w.from.sessions(&i.Sessions)
	}
	i.Clock.Tick++
	i.Clock.WallNanos, i.Clock.UptimeNanos = uint64(at.UnixNano()), uint64(at.Sub(w.begun))
	return w.file.store(i)
}

// run looks at every tick until stop is closed, once more then, and says in the
// file that the process has ended in order.
func (w *statsWriter) run(tick <-chan time.Time, stop <-chan struct{}) error {
	for {
		if err := w.look(); err != nil {
			return errors.Join(err, w.file.close())
		}
		select {
		case <-tick:
		case <-stop:
			w.image.Clock.Stopped = 1
			return errors.Join(w.look(), w.file.close())
		}
	}
}

// watching is what looks at a serving process from inside, without its path
// knowing: the stats file, the flight recorder, the profiles of waiting. Nothing
// of it can stop the process.
type watching struct {
	log     *slog.Logger
	ended   chan struct{}
	stop    func() // idempotent: ends what was started and waits for it
	running sync.WaitGroup
}

// startWatching starts it for an installation whose parts are all open; stop it
// before any of them is closed. What cannot be started is logged and left out.
func startWatching(c *config, from statsSources, log *slog.Logger) *watching {
	w := &watching{log: log, ended: make(chan struct{})}
	calm := profileContention(c.Bool("profile.contention"))
	if stats, err := newStatsWriter(c.inDataDir("stats"), from, time.Now); err != nil {
		log.Warn("no figures for posttrade top", "error", err)
	} else {
		w.start("stats", statsEvery, stats.run)
	}
	if budget := c.Millis("flight.budget-ms"); budget > 0 {
		if f, err := newFlight(budget, c.flightDir(), flightSourcesOf(from), log); err != nil {
			log.Warn("no flight recorder", "error", err)
		} else {
			w.start("flight recorder", f.every(), f.run)
		}
	}
	w.stop = sync.OnceFunc(func() {
		close(w.ended)
		w.running.Wait()
		calm()
	})
	return w
}

// start runs one of them at a pace of its own.
func (w *watching) start(name string, every time.Duration, run func(<-chan time.Time, <-chan struct{}) error) {
	w.running.Go(func() {
		ticker := time.NewTicker(every)
		defer ticker.Stop()
		if err := run(ticker.C, w.ended); err != nil {
			w.log.Warn("stopped looking", "what", name, "error", err)
		}
	})
}
