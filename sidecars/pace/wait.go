package pace

import (
	"context"
	"time"
)

// Sleep waits for d. It reports whether ctx has not ended meanwhile.
func Sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// Behind returns a loop that runs once done is closed. When ctx ends first it never runs; that is
// no error.
func Behind(done <-chan struct{},
	run func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error {
		select {
		case <-done:
			return run(ctx)
		case <-ctx.Done():
			return nil
		}
	}
}
