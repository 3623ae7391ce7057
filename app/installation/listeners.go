package installation

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"sync"

	"posttrade/app/settings"
	"posttrade/httpapi"
)

// edge is a server that answers on one listener.
//
// Serve returns nil after Shutdown; its error ends the process. Shutdown waits for requests in
// flight until its context ends.
type edge interface {
	Serve(net.Listener) error
	Shutdown(context.Context) error
}

// listening is an edge and its address.
//
// The listener is kept for its real address, which the setting does not have when its port is 0.
type listening struct {
	name     string
	edge     edge
	listener net.Listener
}

// listeners are the open edges, in the order in which they were opened.
//
// One goroutine opens them and shuts them down. tls and adminTLS are nil for plain listeners.
type listeners struct {
	c   *settings.Config
	tls *tls.Config // of the services; nil: plain
	// The certificate of tls, as SIGHUP reads it again.
	renewed      *renewed    // its certificate; nil: plain
	adminTLS     *tls.Config // of the admin listener; nil: plain
	adminRenewed *renewed
	// Only its expiry is read here; the node loads it for itself.
	members *tls.Config // of the members' port, for its expiry; nil: plain, or no cluster
	open    []listening
	// Edges that have ended by themselves; serveOnce takes the first. It has room for every edge, so
	// that none blocks behind it.
	failed chan error
	// The memory for large request bodies, which the edges of all services share.
	bodies *httpapi.BodyMemory
	log    *slog.Logger // of requests, when they are logged
}

// newListeners reads the certificates and opens nothing. An error names the setting of the file.
func newListeners(c *settings.Config, log *slog.Logger) (l *listeners, err error) {
	l = &listeners{c: c, log: log, failed: make(chan error, 8),
		bodies: httpapi.NewBodyMemory(c.Bytes("http.max-body-memory"))}
	if l.tls, l.renewed, err = listenerTLS(c.TLS); err != nil {
		return l, err
	}
	if l.adminTLS, l.adminRenewed, err = listenerTLS(c.AdminTLS); err != nil {
		return l, err
	}
	l.members, err = membersTLS(c)
	return l, err
}

// dialTLS is the TLS configuration for the services of other members. Their certificates are signed
// by an authority of the system or by that of the members. Nil: plain.
//
// Without a certificate of its own a member dials plain HTTP, because then its services are plain,
// too.
func (l *listeners) dialTLS() (*tls.Config, error) {
	if l.tls == nil {
		return nil, nil
	}
	roots, err := x509.SystemCertPool()
	if err != nil {
		roots = x509.NewCertPool()
	}
	if name := l.c.String("cluster.tls-ca"); name != "" {
		text, err := os.ReadFile(name)
		if err != nil {
			return nil, fmt.Errorf("cluster.tls-ca: %w", err)
		}
		roots.AppendCertsFromPEM(text)
	}
	return &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots}, nil
}

// listen opens a listener on the address of a service's setting. No server answers on it yet.
//
// The error names the setting. An address in use is syscall.EADDRINUSE, which has a code of
// refusals.
func (l *listeners) listen(service string) (net.Listener, error) {
	setting := service + ".listen"
	listener, err := net.Listen("tcp", l.c.ListenAddr(service))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", setting, err)
	}
	return listener, nil
}

// serve starts the server e on a listener, over TLS when secure is given.
//
// From then on shutdown ends e. The order of the calls is the order in which the listeners are
// printed.
func (l *listeners) serve(name string, e edge, listener net.Listener, secure *tls.Config) {
	l.open = append(l.open, listening{name, e, listener})
	serving := listener
	if secure != nil {
		serving = tls.NewListener(listener, secure)
	}
	go func() {
		if err := e.Serve(serving); err != nil {
			l.failed <- err
		}
	}()
}

// start listens for a service and serves it.
//
// The edge shares the memory of bodies and logs its requests, if it can do either. The admin
// listener and the console go through serve alone.
func (l *listeners) start(service string, e edge) error {
	listener, err := l.listen(service)
	if err == nil {
		if counted, ok := e.(interface{ Share(*httpapi.BodyMemory) }); ok {
			counted.Share(l.bodies)
		}
		if logged, ok := e.(interface{ LogAccess(*slog.Logger) }); ok && l.c.Bool("log.access") {
			logged.LogAccess(l.log)
		}
		l.serve(service, e, listener, l.tls)
	}
	return err
}

// Address is where a service listens, empty for one that does not run.
func (in *Installation) Address(service string) string { return in.listeners.addresses()[service] }

// addresses are the addresses of the edges, by name.
//
// The map is the caller's own. The addresses have the ports that are really bound.
func (l *listeners) addresses() map[string]string {
	at := make(map[string]string, len(l.open))
	for _, e := range l.open {
		at[e.name] = e.listener.Addr().String()
	}
	return at
}

// shutdown ends all edges at once. So a request that takes long on one edge uses up no other edge's
// time, and no edge takes requests while another one waits. The error names the edges that had not
// ended when ctx did.
//
// A nil error means that no request is in flight on any edge: then the engine's memory may go.
func (l *listeners) shutdown(ctx context.Context) error {
	errs := make([]error, len(l.open))
	var ending sync.WaitGroup
	for i, e := range l.open {
		ending.Go(func() {
			if err := e.edge.Shutdown(ctx); err != nil {
				errs[i] = fmt.Errorf("%s: %w", e.name, err)
			}
		})
	}
	ending.Wait()
	return errors.Join(errs...)
}
