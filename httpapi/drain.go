package httpapi

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"
)

// drainLook is how often a shutdown looks whether a handler still runs.
const drainLook = 2 * time.Millisecond

// Shutdown stops accepting, refuses requests from now on, waits for those in flight
// and closes the idle connections, until ctx ends. Handlers that run then are waited for
// as long as they may wait for an answer themselves.
//
// Nil says that no handler runs and none will: what they use can be taken away. There may
// still be connections then, of peers that do not read or do not end their requests.
func (s *server) Shutdown(ctx context.Context) error {
	s.stopping.Store(true)
	s.silent.close()
	err := s.http.ShutdownWithContext(ctx)
	if errors.Is(err, net.ErrClosed) || ctx.Err() != nil {
		err = nil // somebody else has closed the listener before, or connections are left
	}
	return errors.Join(err, s.drain(ctx))
}

// drain waits until nothing of this server runs: until ctx ends, and then for as
// long as patience says.
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
