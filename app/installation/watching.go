package installation

import (
	"log/slog"
	"sync"
	"time"

	"posttrade/app/flight"
	"posttrade/app/settings"
	"posttrade/app/stats"
)

// watching observes a serving process from inside without a change to its path: the stats file, the
// flight recorder, the mutex and block profiles. No part of it can stop the process.
//
// Each part reads counters that their owners keep anyway, on a goroutine of its own.
type watching struct {
	log *slog.Logger
	// Closed by stop; each part gets it.
	ended chan struct{}
	// Ends what was started and waits for it; it may be called again.
	stop    func()
	running sync.WaitGroup
}

// startWatching starts it for an installation with all parts open. The caller stops it before it
// closes any part. A part of watching that cannot start is logged and left out.
//
// The parts read rings and counters of the engine, whose memory goes at the stop.
func startWatching(c *settings.Config, from stats.Sources, log *slog.Logger) *watching {
	w := &watching{log: log, ended: make(chan struct{})}
	calm := flight.ProfileContention(c.Bool("profile.contention"))
	if writer, err := stats.NewStatsWriter(c.InDataDir("stats"), from, time.Now); err != nil {
		log.Warn("no figures for posttrade top", "error", err)
	} else {
		w.start("stats", stats.Every, writer.Run)
	}
	if budget := c.Millis("flight.budget-ms"); budget > 0 {
		if f, err := flight.NewFlight(budget, flight.FlightDir(c),
			flight.Sources{Path: from.Path, Commits: from.Commits}, log); err != nil {
			log.Warn("no flight recorder", "error", err)
		} else {
			w.start("flight recorder", f.Every(), f.Run)
		}
	}
	w.stop = sync.OnceFunc(func() {
		close(w.ended)
		w.running.Wait()
		calm()
	})
	return w
}

// start runs one part at its own interval.
//
// run gets the ticks and the channel that closes at the stop. An error ends this part alone.
func (w *watching) start(name string, every time.Duration,
	run func(<-chan time.Time, <-chan struct{}) error) {
	w.running.Go(func() {
		ticker := time.NewTicker(every)
		defer ticker.Stop()
		if err := run(ticker.C, w.ended); err != nil {
			w.log.Warn("stopped looking", "what", name, "error", err)
		}
	})
}
