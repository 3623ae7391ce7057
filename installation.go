package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"
)

// installation is everything that `posttrade serve` runs, in one process.
type installation struct {
	core       *core
	history    *fullHistory
	downstream *downstream // nil without sidecars
	listeners  *listeners
}

// openInstallation starts everything in the order in which the parts depend on
// each other; stop ends them in reverse. Nothing is left running after an error.
func openInstallation(c *config, o coreOptions, log *slog.Logger) (_ *installation, err error) {
	in := &installation{}
	defer func() {
		if err != nil {
			err = errors.Join(err, in.stop())
		}
	}()
	if err := os.MkdirAll(c.String("data.dir"), 0o700); err != nil {
		return nil, fmt.Errorf("data.dir: %w", err)
	}
	sidecars := c.Bool("sidecars.enabled")
	// 1. The core: journal, recovery, rings, matcher, recorder.
	o.feeds = sidecars && c.Bool("risk.bootstrap.enabled")
	if in.core, err = openCore(o); err != nil {
		return nil, err
	}
	if err := c.sameLimits(in.core.genesis); err != nil {
		return nil, err
	}
	logRecovery(log, in.core)
	// 2. What follows the journal: database, broker, sidecars, control sources.
	if in.history, err = newFullHistory(c, in.core); err != nil {
		return nil, err
	}
	if sidecars {
		if in.downstream, err = openDownstream(c, in.core, in.history, log); err != nil {
			return nil, err
		}
	}
	// 3. The services and the admin listener.
	if in.listeners, err = newListeners(c); err != nil {
		return nil, err
	}
	if err := openEdges(c, in, log); err != nil {
		return nil, err
	}
	// 4. The replicas of the control sources, which fetch from those services.
	if sidecars {
		in.downstream.follow(c, in.core, in.listeners)
	}
	return in, nil
}

// How long the announcement of the listeners waits for the control sources, and
// how often it looks. They take some hundredths of a second when all is well;
// when it is not, the services must be reachable all the same.
const (
	announceWait = 2 * time.Second
	announceLook = 2 * time.Millisecond
)

// awaitReady returns when orders are let in, or when that takes too long: who
// waits for the announcement then need not wait again.
func (in *installation) awaitReady(ctx context.Context) {
	late := time.After(announceWait)
	look := time.NewTicker(announceLook)
	defer look.Stop()
	for !in.core.gate.Ready() {
		select {
		case <-ctx.Done():
			return
		case <-late:
			return
		case <-look.C:
		}
	}
}

// shutdownTimeout is how long requests in flight may take to end.
const shutdownTimeout = 10 * time.Second

// stop ends what was started: first the callers, last the core, so that
// everything that was handed in is decided, journaled and answered.
func (in *installation) stop() (err error) {
	if in.listeners != nil {
		ctx, cancel := context.WithTimeout(context.Background(), shutdownTimeout)
		defer cancel()
		err = in.listeners.shutdown(ctx)
	}
	if in.downstream != nil {
		err = errors.Join(err, in.downstream.stop())
	}
	if in.history != nil {
		err = errors.Join(err, in.history.Close())
	}
	if in.core != nil {
		err = errors.Join(err, in.core.stop())
	}
	return err
}
