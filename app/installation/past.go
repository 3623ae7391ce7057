package installation

import (
	"context"
	"log/slog"
	"sync"

	"posttrade/app/settings"
	"posttrade/journal"
	"posttrade/journal/asof"
)

// past shows the engine's past. A loop of the lowest priority makes its checkpoints.
//
// The readers of HTTP and of the transparency log share it. A nil past, of an installation that
// has not been opened so far, can be ended.
type past struct {
	*asof.History
	stop  context.CancelFunc
	ended sync.WaitGroup
}

// startPast opens the past in data.dir/asof and begins its loop. A checkpoint that cannot be made
// or used is a warning: a state is then derived from an earlier one, which takes longer.
func startPast(c *settings.Config, j *journal.Journal, log *slog.Logger) (*past, error) {
	report := func(err error) {
		log.Warn("as-of: a checkpoint was not made or not used", "error", err)
	}
	h, err := asof.New(j, asof.Options{Dir: c.InDataDir("asof"), Report: report})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	p := &past{History: h, stop: cancel}
	p.ended.Go(func() { h.Run(ctx) })
	return p, nil
}

// end frees the engines of the past. No request may use them any more.
//
// The journal must still be open, and the listeners must have ended.
func (p *past) end() error {
	if p == nil {
		return nil
	}
	p.stop()
	p.ended.Wait()
	return p.Close()
}
