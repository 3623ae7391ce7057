package installation

import (
	"context"
	"testing"

	"posttrade/app/stats"
)

// TestLookingWhileTheFeedsStart starts the parts that a start opens after the listeners, while
// another goroutine reads every place that shows them. It is for the race detector.
func TestLookingWhileTheFeedsStart(t *testing.T) {
	in := install(t, t.TempDir()) // without replicas
	d := in.Beside.Load()
	stop, looked := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(looked)
		for {
			var feeds stats.Feeds
			var lags stats.Lags
			d.feedFigures(&feeds)
			d.lagFigures(&lags)
			d.metrics(func(string, string, bool, float64, ...string) {})
			d.parts()
			select {
			case <-stop:
				return
			default:
			}
		}
	}()
	before := len(d.loops.names())
	d.sources.replicate(in.config, in.Installation, d.broker)
	for range 100 {
		d.loops.start("more", func(ctx context.Context) error { <-ctx.Done(); return nil })
	}
	close(stop)
	<-looked
	names := d.loops.names()
	if len(names) != before+100 {
		t.Errorf("%d loops, want %d more than %d", len(names), 100, before)
	}
	names[0] = "changed"
	if d.loops.names()[0] == "changed" {
		t.Error("the list of the loops is the caller's to change")
	}
}
