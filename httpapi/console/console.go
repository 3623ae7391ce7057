package console

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"posttrade/matcher/gate"
)

// Options are the settings of a Console.
//
// New keeps them: they are constant afterwards.
type Options struct {
	Verifier *gate.Verifier // checks the tokens; constant
	// Mint makes the token of the one-click sign-in. Nil: a token must be pasted.
	Mint func(now time.Time) (token string)
	// Names returns the host names under which the console is reached now, in lower case, beside
	// localhost and IP addresses. Any goroutine calls it, for each request. Nil: there are none.
	Names func() []string
	// Secure says that browsers reach the console over TLS only.
	Secure bool
	// About is what the pages show of this installation, such as its version.
	About map[string]string
	// Metrics is what /metrics shows; the page Overview has its last ten minutes. Nil: none.
	Metrics http.Handler
	// Cluster asks the members how they are; nil: a single node.
	Cluster ClusterStatus
	// Folders are the folders whose files an administrator may read, by name.
	Folders map[string]string
	// Prover is the verifier of the page Evidence: a WebAssembly module, compressed with gzip, and the
	// script of its thread. Nil: the page says that it is not there.
	Prover, ProverScript []byte

	Logger *slog.Logger // nil: none
}

// Service is a server of the installation that the pages call: a service or the admin listener.
//
// Its own Shutdown ends this Serve too, as it ends that of its port.
type Service interface{ Serve(net.Listener) error }

// The limits of the console's listener.
const (
	maxHeaderBytes = 16 << 10 // a token in its cookie, and the rest
	maxBodyBytes   = 1 << 20  // the longest that a service accepts
	// maxInflight counts streams too: each page with a live feed holds a place.
	maxInflight = 512
	readTimeout = 10 * time.Second
	// writeTimeout is how long a browser may take for a piece of its answer (deadlineWriter).
	writeTimeout = 30 * time.Second
	idleTimeout  = 60 * time.Second
)

// Console is the listener of the web console. Any number of goroutines may use it after Attach was
// called for each service.
//
//	browser --> http --> ServeHTTP --> serveFile, serveSession or forward --> backend --> service
type Console struct {
	Options
	http http.Server
	end  context.CancelFunc // ends streams: they must not hold up Shutdown
	// services and files are constant once Serve was called.
	services map[string]*backend
	files    files
	// inflight has one element for each request in work; a full one means 503.
	inflight chan struct{}

	base    context.Context // ends with Shutdown
	history history
	ended   sync.WaitGroup // the goroutine that samples the history
}

// New builds the console. Attach gives it its services; Serve starts it.
//
// An error names an embedded file without a content type. It listens on nothing and starts no
// goroutine.
func New(o Options) (*Console, error) {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Names == nil {
		o.Names = func() []string { return nil }
	}
	files, err := readFiles()
	if err != nil {
		return nil, err
	}
	if o.Prover != nil {
		files.add("assets/verify/verify.wasm", o.Prover, "gzip")
		files.add("assets/verify/worker.js", o.ProverScript, "")
	}
	base, end := context.WithCancel(context.Background())
	c := &Console{Options: o, end: end, services: map[string]*backend{}, files: files,
		inflight: make(chan struct{}, maxInflight), base: base}
	c.http = http.Server{
		BaseContext:       func(net.Listener) context.Context { return base },
		ConnContext:       keepPeer,
		Handler:           c,
		ReadHeaderTimeout: readTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		ErrorLog:          slog.NewLogLogger(o.Logger.Handler(), slog.LevelDebug),
	}
	return c, nil
}

// Attach lets the pages call a service under its name. The service also answers on a listener in
// memory from now on; its own Shutdown closes that listener. Attach must not be called after Serve.
//
// It starts one goroutine, which ends with the service or with Shutdown of the console.
func (c *Console) Attach(name string, s Service) {
	b := newBackend(name, c.Logger)
	c.services[name] = b
	go func() {
		if err := s.Serve(b.listener); err != nil {
			c.Logger.Debug("console: service ended", "service", name, "error", err)
		}
		_ = b.listener.Close() // dial must not wait for a server that has gone
	}()
}

// Serve answers on ln until Shutdown; it then returns nil.
//
// It also samples the history, where there are metrics, until Shutdown. Call it once.
func (c *Console) Serve(ln net.Listener) error {
	if c.Metrics != nil {
		c.ended.Go(func() { c.history.follow(c.base, c.Metrics) })
	}
	if err := c.http.Serve(ln); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("console: serve address=%s: %w", ln.Addr(), err)
	}
	return nil
}

// Shutdown stops accepting, ends streams, and waits for the requests under way until ctx ends.
//
// An error says that connections were cut. The services go on: they have owners of their own.
func (c *Console) Shutdown(ctx context.Context) error {
	c.end()
	err := c.http.Shutdown(ctx)
	if err != nil {
		err = fmt.Errorf("console: shut down: %w", errors.Join(err, c.http.Close()))
	}
	for _, b := range c.services {
		_ = b.listener.Close()
	}
	c.ended.Wait()
	return err
}

// keepPeer keeps the browser's address for the services.
func keepPeer(ctx context.Context, conn net.Conn) context.Context {
	return context.WithValue(ctx, peerKey{}, conn.RemoteAddr())
}

// ServeHTTP answers one request.
//
// Every answer has the headers of harden, refusals too. The host is checked before anything of the
// request is used.
func (c *Console) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	harden(w.Header())
	w = deadlineWriter{w}
	select {
	case c.inflight <- struct{}{}:
		defer func() { <-c.inflight }()
	default:
		w.Header().Set("Retry-After", "1")
		refuse(w, http.StatusServiceUnavailable, "BUSY", "too many requests at the console")
		return
	}
	if !c.knownHost(r.Host) {
		refuse(w, http.StatusMisdirectedRequest, "UNKNOWN_HOST",
			"the console does not answer to this host name; see console.hosts")
		return
	}
	switch first, rest := cutPath(r.URL.Path); first {
	case "api":
		if r.Header.Get(headerStatus) != "" {
			w = statusHeaderWriter{w}
		}
		c.serveAPI(w, r, rest)
	default:
		c.serveFile(w, r)
	}
}
