package broker

import (
	"context"
	"errors"
	"fmt"
	"net"
	"runtime/debug"
	"sync"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// watchInterval is how often the embedded server is asked whether its JetStream still runs.
// JetStream stops by itself when a disk is full.
//
// The state may be wrong for that long; publishers learn it from their own call.
const watchInterval = 500 * time.Millisecond

// memoryLimitBytes bounds streams in memory. This program makes none, but JetStream needs a number.
const memoryLimitBytes = 64 << 20

// errNotRunning is what nats.go gets instead of a connection; it then tries again by itself.
var errNotRunning = errors.New("embedded server does not run")

// embedded keeps a server running in this process. Its goroutine is run. The connection asks it for
// new connections, so a restart of the server is a reconnect.
//
// Only the streams' files outlive a restart. The connection notices a restart as it would notice
// that of a server elsewhere, so the rest of the package knows no difference.
type embedded struct {
	b   *Broker
	mu  sync.Mutex
	now *server.Server // nil while none runs; run writes it
}

func newEmbedded(b *Broker) *embedded { return &embedded{b: b} }

// InProcessConn gives nats.go a connection to the current server.
//
// It implements nats.InProcessConnProvider. nats.go calls it on its own goroutines, for the first
// connection and for every later one.
func (e *embedded) InProcessConn() (net.Conn, error) {
	e.mu.Lock()
	srv := e.now
	e.mu.Unlock()
	if srv == nil {
		return nil, errNotRunning
	}
	return srv.InProcessConn()
}

func (e *embedded) set(srv *server.Server) {
	e.mu.Lock()
	e.now = srv
	e.mu.Unlock()
}

// run starts the server, watches it, and starts it again, until ctx ends. It closes started after
// the first attempt.
//
// It is the only writer of the state while the server is embedded. The back-off begins anew only
// after a server has run for twice its longest pause, so one that fails soon after its start does
// not spin.
func (e *embedded) run(ctx context.Context, started chan struct{}) {
	var retry backOff
	for ctx.Err() == nil {
		srv, err := e.start(ctx)
		if err == nil {
			e.set(srv)
			e.b.setState(true, "embedded server runs in "+e.b.o.Dir)
		} else if ctx.Err() == nil {
			e.b.setState(false, fmt.Sprintf("embedded server does not start: %v", err))
		}
		if started != nil {
			close(started)
			started = nil
		}
		if err == nil {
			began := time.Now()
			err = watch(ctx, srv)
			e.set(nil)
			stop(srv)
			if ctx.Err() != nil {
				return
			}
			e.b.setState(false, fmt.Sprintf("embedded server stopped: %v", err))
			if time.Since(began) > 2*retryMost {
				retry.reset()
			}
		}
		pause(ctx, retry.step(), nil)
	}
}

// start makes one server and waits until its streams are recovered. An event for which the server
// would exit the process comes back as an error, and so does a panic over a damaged store.
//
// SyncAlways costs a sync of the disk for each write; without it an acknowledged message could be
// lost with the power. DontListen keeps the server off the network, and NoSigs leaves the signals
// to this program. When ctx ends first, the goroutine that starts may remain until the server gives
// up; stop asks it to.
func (e *embedded) start(ctx context.Context) (*server.Server, error) {
	log := &serverLog{log: e.b.log}
	srv, err := server.NewServer(&server.Options{
		ServerName:             "posttrade-embedded",
		DontListen:             true,
		NoSigs:                 true,
		NoLog:                  true,
		JetStream:              true,
		StoreDir:               e.b.o.Dir,
		SyncAlways:             true,
		JetStreamMaxStore:      e.b.o.StoreLimitBytes,
		JetStreamMaxMemory:     memoryLimitBytes,
		DisableJetStreamBanner: true,
	})
	if err != nil {
		return nil, err
	}
	srv.SetLoggerV2(log, false, false, false)
	outcome := make(chan error, 1)
	go func() {
		defer func() {
			if r := recover(); r != nil {
				e.b.log.Error("embedded server panicked", "panic", r, "stack", string(debug.Stack()))
				outcome <- fmt.Errorf("panic: %v", r)
			}
		}()
		srv.Start()
		outcome <- nil
	}()
	select {
	case err = <-outcome:
	case <-ctx.Done():
		err = ctx.Err()
	}
	if err == nil {
		err = log.failure()
	}
	if err == nil && !srv.JetStreamEnabled() {
		err = errors.New("JetStream is not enabled")
	}
	if err != nil {
		stop(srv)
		return nil, err
	}
	return srv, nil
}

// watch returns when ctx ends or the server no longer works.
//
// It polls, because the server has no callback for the end of JetStream.
func watch(ctx context.Context, srv *server.Server) error {
	tick := time.NewTicker(watchInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
		if !srv.Running() {
			return errNotRunning
		}
		if !srv.JetStreamEnabled() {
			return errors.New("JetStream has shut down")
		}
	}
}

// stop shuts a server down and waits for its goroutines, but only for a bounded time: a start that
// hangs in recovery holds the server's locks.
//
// After stopWait the goroutine is left behind, and the folder may still be in use by the old
// server.
func stop(srv *server.Server) {
	done := make(chan struct{})
	go func() {
		srv.Shutdown()
		srv.WaitForShutdown()
		close(done)
	}()
	timer := time.NewTimer(stopWait)
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
	}
}
