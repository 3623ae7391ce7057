package quorum

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"
)

// Limits of the library's connections.
const (
	// Streams to another member that are kept open between two requests.
	pooledConns = 3
	// For connecting, and for a request or an answer of the library's.
	rpcTimeout = 5 * time.Second

	// unpipelined has the library send entries to a follower one request at a time. Its pipeline can
	// hang for good when a request is refused or its connection ends (v1.8.0: a send that races the
	// decoder's end waits for ever). An entry of this package holds so many commands that a pipeline
	// would gain nothing.
	unpipelined = 1
)

// tcp is the members' network: one port for each member.
type tcp struct {
	wire *wire
	// Set by Answer; nil, or a pointer to nil, while the member starts or stops.
	answer atomic.Pointer[func(string, []byte) ([]byte, error)]
}

// openTCP listens for the other members. Without TLS every address of the list must be loopback
// (ErrPlain).
func openTCP(o Options) (network, error) {
	self, err := o.self()
	if err != nil {
		return nil, err
	}
	for _, m := range o.Members {
		if err := wireAllows(o.TLS, m.Raft); err != nil {
			return nil, fmt.Errorf("quorum: member %s at %s: %w", m.ID, m.Raft, err)
		}
	}
	t := new(tcp)
	if t.wire, err = openWire(self.Raft, wireOptions{TLS: o.TLS, Answer: t.reply}); err != nil {
		return nil, err
	}
	return t, nil
}

// errNotYet is the answer of a member that is starting or stopping.
var errNotYet = errors.New("not now")

// reply answers a question by what Answer has set, or with errNotYet. Any goroutine.
func (t *tcp) reply(from string, request []byte) ([]byte, error) {
	if f := t.answer.Load(); f != nil && *f != nil {
		return (*f)(from, request)
	}
	return nil, errNotYet
}

// Answer sets what answers; nil refuses every question. It may be called at any time.
func (t *tcp) Answer(f func(from string, request []byte) ([]byte, error)) { t.answer.Store(&f) }

// Transport lets raft streams in that are meant for self.
func (t *tcp) Transport(self raft.ServerID, log *slog.Logger) (transport, error) {
	t.wire.Serve(self)
	return transportOver(t.wire, log), nil
}

// transportOver is the library's traffic over the members' port.
func transportOver(w *wire, log *slog.Logger) *raft.NetworkTransport {
	return raft.NewNetworkTransportWithConfig(&raft.NetworkTransportConfig{
		Stream: w, MaxPool: pooledConns, MaxRPCsInFlight: unpipelined, Timeout: rpcTimeout,
		Logger:                  quietLogger(log),
		MsgpackUseNewTimeFormat: true,
	})
}

func (t *tcp) Ask(ctx context.Context, hostPort string, request []byte) ([]byte, error) {
	return t.wire.Ask(ctx, hostPort, request)
}

func (t *tcp) Close() error { return t.wire.Close() }
