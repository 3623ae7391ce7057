package httpapi

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"
)

// drainLook is how often a shutdown looks whether a handler still runs.
//
// Handlers send no signal when they end: it would cost every request.
const drainLook = 2 * time.Millisecond

// Shutdown stops accepting, refuses new requests, waits for the requests in flight and closes the
// idle connections, until ctx ends. If handlers still run then, it waits for them as long as a
// handler may wait for an answer.
//
// Nil says that no handler runs and none will: the caller can release what handlers use.
// Connections may still be open then, of peers that do not read or do not end their requests.
func (s *server) Shutdown(ctx context.Context) error {
	s.stopping.Store(true)
	s.silent.close()
	err := s.http.ShutdownWithContext(ctx)
	if errors.Is(err, net.ErrClosed) || ctx.Err() != nil {
		err = nil // the listener was closed before, or connections are left
	}
	return errors.Join(err, s.drain(ctx))
}

// drain waits until nothing of this server runs: until ctx ends, and after that for patience.
//
// Streamed answers count too: their goroutines use what the caller releases afterwards. An error
// names how many still ran.
func (s *server) drain(ctx context.Context) error {
	look := time.NewTicker(drainLook)
	defer look.Stop()
	ended, late := ctx.Done(), (<-chan time.Time)(nil)
	for {
		running := s.inflight.Load() + s.streams.Load()
		if running == 0 {
			return nil
		}
		select {
		case <-ended:
			ended, late = nil, time.After(s.patience)
		case <-late:
			return fmt.Errorf("httpapi: shut down running=%d: %w", running, ctx.Err())
		case <-look.C:
		}
	}
}
