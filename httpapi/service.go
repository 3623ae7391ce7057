package httpapi

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"time"

	"posttrade/blotter"
	"posttrade/journal"
	"posttrade/sidecars/recon"
	"posttrade/sidecars/store"
	"posttrade/sidecars/tca"
)

// Time-outs of a handler that waits for more than memory.
const (
	// queryTimeout is below the write time-out, so that the answer can still be written.
	queryTimeout = 10 * time.Second
	// lastingTimeout bounds a request that goes through the whole history. The write time-out of the
	// connection begins with the answer, so it does not end these requests.
	lastingTimeout = 30 * time.Minute
)

// service is the common part of the services of this package: a listener and the end of its
// long-running requests. The services embed it.
//
// It is copied once, from newService into the service that embeds it; what changes afterwards is
// behind its pointers.
type service struct {
	// name is one of the keys of serviceShapes: in logs, metrics, /health and among the addresses of a
	// cluster.
	name   string
	server *server

	// lasting ends with Shutdown: requests that go through the whole history must not hold it up.
	// Quick requests may finish.
	lasting    context.Context
	endLasting context.CancelCauseFunc

	exports *atomic.Int32 // files that are being made
	waits   waits         // reads that wait for what they ask for
}

// errStopping is the cause when a service ends its long-running requests early.
var errStopping = errors.New("service is stopping")

// newService makes the server of a service. Its context ends with Shutdown.
func newService(name string, cfg serverConfig) service {
	s := service{name: name, server: newServer(cfg), exports: new(atomic.Int32)}
	s.waits = newWaits(s.server.maxInflight)
	s.lasting, s.endLasting = context.WithCancelCause(context.Background())
	return s
}

// Serve answers requests on ln until Shutdown; it then returns nil.
//
// An error says that the listener failed by itself: the service does not answer any more.
func (s *service) Serve(ln net.Listener) error {
	if err := s.server.Serve(ln); err != nil {
		return fmt.Errorf("httpapi: serve %s address=%s: %w", s.name, ln.Addr(), err)
	}
	return nil
}

// Shutdown stops accepting, ends the requests that go through the whole history, and waits for the
// requests in flight until ctx ends. After that it waits for running handlers, no longer than a
// handler may wait for its answer. New requests get 503 with "sequenced":false. Nil says that
// nothing of the service runs any more.
func (s *service) Shutdown(ctx context.Context) error {
	s.endLasting(errStopping)
	return s.server.Shutdown(ctx)
}

// Counted emits what the service counts; see Metrics.Services.
//
// The counts are of this process and never fall. A panic also shows as an answer with status 500.
func (s *service) Counted(to Counts) {
	to.Fault(s.name, "panic", s.server.panics.Load())
	to.Fault(s.name, "refused", s.server.refused.Load())
	s.answers(to)
}

// answers emits the requests by endpoint and code.
func (s *service) answers(to Counts) {
	s.server.requests.each(func(route, code string, n uint64) { to.Request(s.name, route, code, n) })
}

// long is the context of a request that goes through the whole history.
//
// The caller must call the cancel function, as for quick.
func (s *service) long() (context.Context, context.CancelFunc) {
	return context.WithTimeout(s.lasting, lastingTimeout)
}

// quick is the context of a request that reads a database.
//
// It does not end with Shutdown: the request is short, and Shutdown waits for it. Its time-out is
// the answer 504, see problemLate.
func quick() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), queryTimeout)
}

// failed is the problem of an error that a dependency returned. It logs every error without a
// problem of its own: the dependencies' errors hold none of the caller's bytes.
//
// A caller whose write may have been committed, or is on record, calls changed instead.
func (s *service) failed(err error) problem {
	var locked *store.LockedError
	switch {
	case errors.As(err, &locked):
		p := problemLocked
		p.detail = "waited for " + locked.What
		return p
	case errors.Is(err, store.ErrForeign):
		return problemForeign
	case errors.Is(err, store.ErrLocked):
		return problemLocked
	case errors.Is(err, store.ErrNotRestored):
		return problemNotRestored
	case errors.Is(err, store.ErrUnavailable):
		return problemDatabase
	case errors.Is(err, journal.ErrArchived):
		return problemArchived
	case errors.Is(err, blotter.ErrReindexing):
		return problemIndexing
	case errors.Is(err, recon.ErrBusy):
		return problemSweeping
	case errors.Is(err, recon.ErrRepairing):
		return problemRepairing
	case errors.Is(err, tca.ErrBehind), errors.Is(err, tca.ErrDamaged): // the index is being rebuilt
		return problemBehind
	case errors.Is(err, context.DeadlineExceeded):
		return problemLate
	case errors.Is(err, context.Canceled), errors.Is(err, errStopping):
		return problemStopping
	}
	s.server.log.Error("httpapi: request failed", "service", s.name, "error", err)
	if errors.Is(err, journal.ErrCorrupt) {
		return problemDamaged
	}
	return problemCrash
}

// changed is the problem of a write that the database has not confirmed. When its connection fails
// during the commit the outcome is unknown, and an operator's act is on record before it is carried
// out: so none of these problems says "sequenced":false.
//
// Each of these writes has the effect of one when it is sent twice.
func (s *service) changed(err error) problem {
	p := s.failed(err)
	p.notSequenced = false
	return p
}
