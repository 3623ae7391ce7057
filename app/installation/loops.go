package installation

import (
	"context"
	"log/slog"
	"slices"
	"sync"

	"posttrade/journal"
)

// loops are the goroutines that work beside the path of an order. Each owns one sidecar. None of
// them can stop the engine: a loop that ends with an error is logged and shown on /readyz, and
// everything else goes on.
//
// start may be called while loops run, and not after stop.
type loops struct {
	log *slog.Logger
	// Ended by stop; every loop runs under it.
	ctx    context.Context
	cancel context.CancelFunc
	wg     sync.WaitGroup
	mu     sync.Mutex // guards all
	all    []string   // names, in the order of their start
	// The errors of loops that have ended, by name. A name is written once, by its loop.
	failed sync.Map
}

func newLoops(log *slog.Logger) *loops {
	ctx, cancel := context.WithCancel(context.Background())
	return &loops{log: log, ctx: ctx, cancel: cancel}
}

// start runs a sidecar's loop until stop.
//
// run should return when its context ends. A nil error before that means that the loop has done
// all it had to do. A loop is not begun again in this process.
func (l *loops) start(name string, run func(context.Context) error) {
	l.mu.Lock()
	l.all = append(l.all, name)
	l.mu.Unlock()
	l.wg.Add(1)
	go func() {
		defer l.wg.Done()
		if err := run(l.ctx); err != nil && l.ctx.Err() == nil {
			l.failed.Store(name, err)
			l.log.Error("sidecar stopped", "sidecar", name, "error", err)
		}
	}()
}

// startAt is start for a loop with much work: its thread gets the processor time that the path of
// an order leaves over, as journal.Politely says. It is not for loops that the gate waits for.
//
// nice is journal.Background or journal.Bulk. The loop has a thread of its own until it ends.
func (l *loops) startAt(nice int, name string, run func(context.Context) error) {
	l.start(name, func(ctx context.Context) error {
		return journal.Politely(nice, func() error { return run(ctx) })
	})
}

// names lists the loops that were started so far. Any goroutine may call it.
func (l *loops) names() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.all)
}

// err is the reason why a loop has ended, nil while it runs.
//
// Any goroutine may call it.
func (l *loops) err(name string) error {
	if err, ok := l.failed.Load(name); ok {
		return err.(error)
	}
	return nil
}

// stop ends every loop and waits for it.
//
// It waits without a limit: a loop must watch its context.
func (l *loops) stop() {
	l.cancel()
	l.wg.Wait()
}
