package broker

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// DefaultStoreLimitBytes bounds the embedded server's files when Options does not.
// Deltas and legacy bookings are some hundred bytes each.
//
// The limit is a bound and reserves nothing. At it, streams that refuse when full answer ErrFull.
const DefaultStoreLimitBytes = 4 << 30

const (
	// requestTimeout ends a request unless its context has an earlier deadline.
	requestTimeout = 5 * time.Second
	// startWait is how long Open waits for the embedded server before it returns without it.
	startWait = 2 * time.Second
	// stopWait bounds how long Close waits for a server that does not stop.
	stopWait = 10 * time.Second
	// Retries begin at retryFirst and double up to retryMost.
	retryFirst = 100 * time.Millisecond
	retryMost  = 5 * time.Second
)

// Options says which server to use, and how.
//
// Either URL or Dir is required; with both, Dir is not used.
type Options struct {
	// URL names external servers, nats://[user:password@]host:port or tls://…, separated by commas.
	// Empty: a server in this process.
	URL string
	// Dir is the folder of the embedded server's streams; it is made when missing.
	//
	// No two processes may use one folder at the same time.
	Dir string
	// Logger gets one line per change of state, and the warnings of the embedded server. Nil discards
	// them.
	Logger *slog.Logger
	// Name is the client name that the servers see; "posttrade" when empty.
	Name string
	// StoreLimitBytes bounds the embedded server's streams together; 0 is DefaultStoreLimitBytes.
	StoreLimitBytes int64
	// Now is the clock of Following.LastHeard; nil is time.Now.
	Now func() time.Time
}

// Broker is a connection to a NATS server, in this process or elsewhere.
//
// It makes one nats.Conn on first use and keeps it until Close; nats.go connects it again by
// itself. Every connected period of that Conn is a session. A call takes the current session, and
// ends with ErrUnavailable when that session is lost before the answer is there.
type Broker struct {
	o      Options
	log    *slog.Logger
	now    func() time.Time
	places string // host:port of the external servers, without credentials
	// urls is the same list with credentials, for nats.go only.
	urls string

	ctx    context.Context // ends at Close
	cancel context.CancelFunc
	// wg counts the goroutines that Close waits for: that of the embedded server and the first
	// connect.
	wg    sync.WaitGroup
	state atomic.Pointer[state]

	embedded *embedded // nil with an external server

	// mu guards the fields below. It is never held during a call of nats.go that may block.
	mu     sync.Mutex
	closed bool
	dialed chan struct{} // nil before the first use; closed when conn is set
	// conn and js are set once, by connect.
	conn   *nats.Conn
	js     jetstream.JetStream
	live   *session      // the current connection; nil while there is none
	turned chan struct{} // closed and replaced at every change of live
	// early are the subscriptions made before conn was there; connect begins them.
	early []*subscription
}

// state is the answer of State; it is replaced as a whole.
type state struct {
	ready  bool
	detail string
}

// session is one connection, from the moment it is made until it is lost. Code that must not miss a
// message keeps the session with which it began.
type session struct {
	conn *nats.Conn
	js   jetstream.JetStream
	ctx  context.Context // ends, with errLost, when the connection is gone
	end  context.CancelCauseFunc
}

// Open makes a Broker. With an external server it makes no connection, and its only error is a
// malformed URL. The embedded server is started. When it does not run within two seconds, or does
// not start at all, Open returns all the same, and State says why.
func Open(o Options) (*Broker, error) {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Name == "" {
		o.Name = "posttrade"
	}
	if o.StoreLimitBytes <= 0 {
		o.StoreLimitBytes = DefaultStoreLimitBytes
	}
	b := &Broker{o: o, log: o.Logger, now: o.Now, turned: make(chan struct{})}
	b.ctx, b.cancel = context.WithCancel(context.Background())
	if o.URL != "" {
		var err error
		if b.urls, b.places, err = parseURLs(o.URL); err != nil {
			return nil, err
		}
		b.state.Store(&state{detail: "no connection made yet to " + b.places})
		return b, nil
	}
	if o.Dir == "" {
		return nil, errors.New("broker: open: neither a URL nor a folder for the embedded server")
	}
	b.places = "the embedded server"
	b.state.Store(&state{detail: "embedded server is starting"})
	b.embedded = newEmbedded(b)
	started := make(chan struct{})
	b.wg.Go(func() { b.embedded.run(b.ctx, started) })
	timer := time.NewTimer(startWait)
	defer timer.Stop()
	select {
	case <-started:
	case <-timer.C:
	}
	return b, nil
}

// State reports whether messages are expected to get through, and if not, why. It does no I/O; any
// goroutine. With an external server it is not ready before the first use has made a connection.
func (b *Broker) State() (ready bool, detail string) {
	s := b.state.Load()
	return s.ready, s.detail
}

// setState replaces the state and logs the change of ready, not every retry.
//
// Two goroutines may call it at once. The log then shows both changes in either order, and State
// the later one.
func (b *Broker) setState(ready bool, detail string) {
	if b.ctx.Err() != nil {
		return // nats.go's handlers may still run while Close does
	}
	old := b.state.Swap(&state{ready, detail})
	switch {
	case ready && !old.ready:
		b.log.Info("broker ready", "detail", detail)
	case !ready && (old.ready || old.detail != detail):
		b.log.Warn("broker not ready", "detail", detail)
	}
}

// Close ends consumers, followings and subscriptions, closes the connection and stops the embedded
// server. It returns when all of that is done.
//
// It waits up to stopWait for the embedded server. A second Close returns at once. Calls under way
// end with ErrUnavailable.
func (b *Broker) Close() error {
	b.mu.Lock()
	if b.closed {
		b.mu.Unlock()
		return nil
	}
	b.closed = true
	dialed, conn := b.dialed, b.conn
	b.mu.Unlock()

	if conn != nil {
		conn.Close()
	}
	b.cancel()
	if dialed != nil {
		// The end of the context cuts a dial under way short, and the dial closes what it made.
		<-dialed
	}
	b.lose()
	b.wg.Wait()
	b.state.Store(&state{detail: "closed"})
	return nil
}

// backOff computes the time between two attempts: 100 ms doubling to 5 s.
//
// The zero backOff begins with the shortest pause. One goroutine at a time.
type backOff struct{ next time.Duration }

// step returns the time to wait now.
func (r *backOff) step() time.Duration {
	d := max(r.next, retryFirst)
	r.next = min(2*d, retryMost)
	return d
}

func (r *backOff) reset() { r.next = 0 }

// pause waits d, or until ctx ends or wake closes. It reports whether ctx is still alive.
func pause(ctx context.Context, d time.Duration, wake <-chan struct{}) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-wake:
	case <-timer.C:
	}
	return ctx.Err() == nil
}
