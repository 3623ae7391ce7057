package session

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"posttrade/matcher"
	"posttrade/matcher/admission"
	"posttrade/matcher/desk"
	"posttrade/matcher/gate"
	"posttrade/matcher/session/wire"
	"posttrade/ring"
)

// Limits of a server. Slots are powers of two; a slot has 128 bytes in either ring.
const (
	MaxSessions  = 100     // order sessions: the kernel waits on 128 words at once
	MaxSlots     = 1 << 14 // of a ring
	minSlots     = 16
	DefaultSlots = 2048
	DefaultQuota = 1024
	DefaultMode  = 0o600
	defaultMost  = 64
	feedSlots    = 1 << 13 // of a feed's ring, unless its reader asks for another number
	defaultTap   = 1 << 16 // events between recorder and feeder
	// A feed has a command ring that it does not use, because every session has the same layout.
	unusedSlots   = minSlots
	handshakeRoom = 16 // connections that have not said hello yet, beside the sessions
)

// Errors of Open; test by errors.Is. ErrInUse: another server runs with this socket. ErrNotSocket:
// the path is wrong, and nothing is removed there.
var (
	ErrOptions   = errors.New("option is missing or out of range")
	ErrInUse     = errors.New("another process listens on the socket")
	ErrNotSocket = errors.New("the path is taken by something that is not a socket")
)

// Renew replaces the secrets of the tokens: see gate.Verifier. Any goroutine.
//
// A session whose token was signed with a secret that is gone ends when its token is judged next.
func (s *Server) Renew(secret []byte, former ...[]byte) error {
	return s.o.Verifier.Renew(secret, former...)
}

// Options of a server. Decider, Socket, Desk, Verifier, Clock, Durable and Seen are needed; the
// zero value of the others is a sensible default. The functions are called on the poller and the
// feeder for every turn, so they must be cheap and never block.
type Options struct {
	admission.Decider // what decides on commands

	Socket   string      // session.socket: path of the unix socket
	Mode     os.FileMode // of the socket file; 0: DefaultMode
	Desk     *desk.Desk
	Verifier *gate.Verifier

	Clock   func() int64  // epoch milliseconds: event times
	Durable func() uint64 // the last durable input sequence
	Seen    func() uint64 // at or above every sequence that Views shows at the moment of the call

	Idle        ring.Strategy // how the poller waits for commands; the zero value spins
	CPU         int           // the core of the poller's thread when Pinned
	Pinned      bool
	Quota       int // commands of one session on their way; 0: DefaultQuota
	MaxSessions int // of each kind, orders and feeds; 0: 64, at most MaxSessions
	TapSlots    int // events that the feeds may be behind; 0: 65536, a power of two
	Logger      *slog.Logger
}

// check fills in defaults and reports missing options, as ErrOptions with the name of the option.
func (o *Options) check() error {
	switch {
	case o.Socket == "":
		return fmt.Errorf("session: open socket=%q: %w", o.Socket, ErrOptions)
	case o.Gate == nil || o.Views == nil || o.Failed == nil || o.StorageFull == nil:
		return fmt.Errorf("session: open decider: %w", ErrOptions)
	case o.Desk == nil || o.Verifier == nil:
		return fmt.Errorf("session: open desk, verifier: %w", ErrOptions)
	case o.Clock == nil || o.Durable == nil || o.Seen == nil:
		return fmt.Errorf("session: open clock, durable, seen: %w", ErrOptions)
	case o.Quota < 0 || o.Quota > MaxSlots:
		return fmt.Errorf("session: open quota=%d: %w", o.Quota, ErrOptions)
	case o.MaxSessions < 0 || o.MaxSessions > MaxSessions:
		return fmt.Errorf("session: open sessions=%d: %w", o.MaxSessions, ErrOptions)
	}
	if o.Mode == 0 {
		o.Mode = DefaultMode
	}
	if o.Quota == 0 {
		o.Quota = DefaultQuota
	}
	if o.MaxSessions == 0 {
		o.MaxSessions = defaultMost
	}
	if o.TapSlots == 0 {
		o.TapSlots = defaultTap
	}
	if !o.Pinned {
		o.CPU = -1
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return nil
}

// Server lets processes of this machine hand in commands through shared memory.
type Server struct {
	o        Options
	listener *net.UnixListener
	tap      *tap
	counts   counts
	born     time.Time
	park     parker
	poll     poller
	feeds    feeder

	stopping atomic.Bool
	stopped  chan struct{} // closed by Close: no connection gets a session any more
	closing  sync.Once
	running  atomic.Bool
	over     chan struct{} // closed when Run has returned

	mu      sync.Mutex
	conns   map[*net.UnixConn]struct{} // every open connection; guarded by mu
	orders  int                        // order sessions that exist; guarded by mu
	readers int                        // feed sessions that exist; guarded by mu
	nextID  uint64                     // guarded by mu
	joining []*session                 // made, not yet with their goroutine; guarded by mu
	live    []*session                 // every session that exists; guarded by mu
	past    Times                      // of the sessions that have ended; guarded by mu
	aside   bool                       // StandAside was called; guarded by mu
	closed  bool                       // poller and feeder have ended; guarded by mu

	talking sync.WaitGroup // one goroutine a connection
}

// Open binds the socket and prepares the server; Run admits clients. Open replaces a socket file
// that a server left behind. When a process listens on the socket, it returns ErrInUse. A client
// that connects before Run waits for its welcome.
//
// Close releases what Open has made, also without Run.
func Open(o Options) (*Server, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	t, err := newTap(o.TapSlots)
	if err != nil {
		return nil, err
	}
	l, err := listen(o.Socket, o.Mode)
	if err != nil {
		return nil, errors.Join(err, t.region.Close())
	}
	s := &Server{
		o: o, listener: l, tap: t, born: time.Now(), stopped: make(chan struct{}),
		over:  make(chan struct{}),
		conns: map[*net.UnixConn]struct{}{},
	}
	s.poll.init(s)
	s.feeds.init(s)
	return s, nil
}

// Run serves until Close. It ties one goroutine to its thread, which polls the sessions' command
// rings, and starts two more, for the socket and for the feeds. The error is that of a thread that
// cannot be bound to its core; the server is then stopped. Run returns when all of its goroutines
// have ended.
func (s *Server) Run() error {
	s.running.Store(true)
	defer close(s.over)
	var others sync.WaitGroup
	others.Go(s.accept)
	others.Go(s.feeds.run)
	err := s.poll.run()
	if err != nil {
		s.stop()
	}
	others.Wait()
	s.refuseJoining()
	s.talking.Wait()
	return err
}

// Close ends every session and makes Run return. Commands that a session has handed in are answered
// first, if their answers come within a second. Close the server while matcher, recorder and
// committer still run. Idempotent, any goroutine.
func (s *Server) Close() error {
	s.stop()
	if s.running.Load() {
		<-s.over
	}
	return nil
}

// stop removes the socket and tells all goroutines of the server to end. It does not wait for them.
// Only the first call has an effect.
func (s *Server) stop() {
	s.closing.Do(func() {
		s.stopping.Store(true)
		close(s.stopped)
		s.listener.Close() // and removes the file
		s.mu.Lock()
		for c := range s.conns {
			interrupt(c)
		}
		s.mu.Unlock()
		s.rouse()
	})
}

// Wake tells the server that answers may have come: call it after every desk.Durable, Refuse and
// Fail. It costs three loads when no session waits. When the poller rests, Wake itself writes the
// answers if they are few, which is sooner than the poller's thread would run; many are left to the
// poller. Any goroutine.
func (s *Server) Wake() {
	if s.park.borrow() {
		left := s.poll.answer()
		s.park.giveBack()
		if left {
			s.park.wake()
		}
	} else {
		s.park.wake()
	}
	s.feeds.waiter.Notify()
}

// StandAside ends every session with wire.Aside, and from then on refuses every hello with it. The
// installation calls it when its history is in doubt, so that no session shows that history. What
// was handed in is decided and stands; its client does not hear of it here. Idempotent, any
// goroutine.
func (s *Server) StandAside() {
	s.mu.Lock()
	s.aside = true
	for _, one := range s.live {
		one.fault.Store(uint32(wire.Aside))
		one.leaving.Store(true)
	}
	s.mu.Unlock()
	s.rouse()
}

// rouse wakes poller and feeder, so that they check their state.
func (s *Server) rouse() {
	s.park.wake()
	s.feeds.waiter.Notify()
}

// Observe takes an event for the feeds. Recorder only, in order; the shape is journal.Observer's.
// It costs one load when no feed is attached, a copy of 128 bytes when one is, and never waits. The
// feeder shows the event when its command is durable.
func (s *Server) Observe(ev *matcher.Event, _ []byte) {
	if s.feeds.attached.Load() != 0 {
		s.tap.put(ev)
	}
}

// refuseJoining ends the sessions that were made while the server stopped. From then on join ends
// such sessions. Poller and feeder have returned, so no other goroutine takes them.
func (s *Server) refuseJoining() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	for _, one := range s.joiners(0) {
		one.finish(wire.Shutdown)
	}
}
