package session

import (
	"bytes"
	"net"
	"slices"
	"sync/atomic"

	"posttrade/matcher/admission"
	"posttrade/matcher/desk"
	"posttrade/matcher/gate"
	"posttrade/matcher/session/wire"
	"posttrade/ring"
)

// session is one client. From join to finish it belongs to one goroutine: the
// poller for orders, the feeder for feeds. Its connection's goroutine only sets
// leaving, fault and token, and reads status after ended.
type session struct {
	server *Server
	id     uint64
	role   wire.Role
	conn   *net.UnixConn
	peer   int32                        // the process at the other end
	token  atomic.Pointer[sessionToken] // writer: the connection's goroutine

	regions  [2]*ring.Region // commands with the client's page; events
	commands *ring.SPSC[wire.Request]
	ring     []wire.Request // its slots: a reader masks the position and copies the slot
	// the command ring's waiter, in shared memory: 1 asks the client for a wake
	doorbell *ring.Waiter
	out      *wire.Outbox
	slots    [2]int

	// The socket has ended, or the server stands aside; writers: the connection's goroutine,
	// StandAside.
	leaving atomic.Bool
	fault   atomic.Uint32 // a wire.Status: why they ended it; the same writers
	ended   chan struct{} // closed by finish
	status  wire.Status   // why it ended; OK: the client left. Written before ended is closed

	done    bool  // finish has run
	checked int64 // the second in which the token was last judged

	// Of an order session, poller only: copied out of the ring, before anything is judged. requests,
	// asks and outcomes have a place for each command of one turn.
	requests   []wire.Request
	asks       []admission.Request
	outcomes   []wire.Code
	flights    []flight // tickets on their way, a ring in the order of submission
	head, tail int      // positions in flights: oldest, next free
	tickets    int      // in flights
	// The correlation ids of the commands on their way, a ring beside flights: the desk's tickets
	// carry ids of their own.
	numbers  []uint64
	first    int            // position in numbers of the oldest command that is not answered
	inFlight int            // commands on their way
	next     int            // command of the head flight to answer next
	filled   int            // fills of that command that are written; -1: its answer is not written
	held     deferredAnswer // the answer to that command, if it waits
	waiting  []deferredAnswer
	times    times
	alarms   int  // waits in a row that its doorbell ended without a command
	unarmed  bool // the sleeping poller does not wait on its doorbell: no command could be taken

	// Of a feed.
	missed uint64 // records lost since the last that was written
	owed   int    // of market data: best levels still to be written to it, and their end
	cursor int    // the security of which they are written next
	looked int    // securities at the last look at them
}

// flight is one ticket on its way: the commands that were taken in one look.
type flight struct {
	ticket *desk.Ticket
	n      int
	begun  int64 // when its commands were seen, of Server.nanos
}

// sessionToken is a token and its claims. It never changes; a renewal replaces it, so that poller
// and feeder read both together.
type sessionToken struct {
	token  []byte
	claims gate.Claims
}

// newSessionToken copies the token, which lies in the buffer of a frame.
func newSessionToken(token []byte, claims gate.Claims) *sessionToken {
	return &sessionToken{token: bytes.Clone(token), claims: claims}
}

// takeAtMost is how many commands of one session are taken in one turn, so that the next session
// has its turn soon.
const takeAtMost = 64

// Compile-time check: the commands of one turn fit into one ticket.
var _ = [1]struct{}{}[max(takeAtMost, desk.MaxBatch)-desk.MaxBatch]

// newSession makes a session with its two regions. It is counted until finish. Aside after
// StandAside, TooMany when its kind has no place, NoMemory when the regions cannot be made; the
// place is free again then. It runs on the connection's goroutine, because it maps memory.
func (s *Server) newSession(c *net.UnixConn, h *wire.HelloFrame, claims gate.Claims) (*session,
	wire.Status) {
	commands, events := slotsFor(h.CommandSlots, DefaultSlots), slotsFor(h.EventSlots, DefaultSlots)
	count := &s.orders
	if h.Role != wire.Orders {
		commands, events, count = unusedSlots, slotsFor(h.EventSlots, feedSlots), &s.readers
	}
	s.mu.Lock()
	refused := wire.OK
	switch {
	case s.aside:
		refused = wire.Aside
	case *count >= s.o.MaxSessions:
		refused = wire.TooMany
	}
	if refused != wire.OK {
		s.mu.Unlock()
		return nil, refused
	}
	*count++
	s.nextID++
	one := &session{server: s, id: s.nextID, role: h.Role, conn: c, ended: make(chan struct{}),
		slots: [2]int{commands, events}}
	one.peer = peerOf(c)
	s.live = append(s.live, one)
	s.mu.Unlock()
	one.token.Store(newSessionToken(h.Token, claims))
	s.counts.begun.Add(1)
	if err := one.build(s.o.Quota); err != nil {
		s.o.Logger.Error("session: rings", "error", err)
		one.finish(wire.NoMemory)
		one.unmap()
		return nil, wire.NoMemory
	}
	return one, wire.OK
}

// slotsFor is the ring size that a client gets: the size it wants, rounded up to a power of two
// within the limits.
func slotsFor(want uint32, usual int) int {
	if want == 0 {
		return usual
	}
	n := minSlots
	for n < int(min(want, MaxSlots)) {
		n *= 2
	}
	return n
}

// build maps and seals the regions and makes the server's ends of the rings. It touches all memory
// at once, so that the poller never waits for a page. After an error unmap releases what was made.
func (one *session) build(quota int) error {
	total, at := wire.CommandBytes(one.slots[0])
	var err error
	if one.regions[0], err = ring.Memfd("posttrade-commands", total); err != nil {
		return err
	}
	if one.regions[1], err = eventRegion(wire.EventBytes(one.slots[1])); err != nil {
		return err
	}
	for _, r := range one.regions {
		if err = r.Populate(); err != nil {
			return err
		}
	}
	if one.commands, err = ring.NewSPSC[wire.Request](one.regions[0], one.slots[0]); err != nil {
		return err
	}
	one.ring = wire.Slots(one.regions[0], one.slots[0])
	one.doorbell = one.commands.Waiter()
	if one.out, err = wire.NewOutbox(one.regions[1], one.slots[1], wire.PageAt(one.regions[0], at),
		one.id); err != nil {
		return err
	}
	if one.role == wire.Orders {
		one.requests = make([]wire.Request, takeAtMost)
		one.asks = make([]admission.Request, takeAtMost)
		for i := range one.asks {
			one.asks[i].Command = &one.requests[i].Command
		}
		one.outcomes = make([]wire.Code, takeAtMost)
		one.waiting = make([]deferredAnswer, 0, takeAtMost)
		one.flights = make([]flight, quota)
		one.numbers = make([]uint64, quota)
		one.filled = -1
	}
	return nil
}

// layout is the welcome of the session. The quota of a feed is 0: it takes no commands.
func (one *session) layout() wire.WelcomeFrame {
	total, at := wire.CommandBytes(one.slots[0])
	return wire.WelcomeFrame{
		Session: one.id, CommandBytes: uint64(total), ClientPage: uint64(at),
		EventBytes:   uint64(wire.EventBytes(one.slots[1])),
		CommandSlots: uint32(one.slots[0]), EventSlots: uint32(one.slots[1]),
		Quota: uint32(len(one.flights)),
	}
}

// join hands the session to its goroutine. When the server has ended meanwhile, it ends the session
// itself. The caller does not touch the session afterwards, except for what the struct names.
func (s *Server) join(one *session) {
	s.mu.Lock()
	closed := s.closed
	if !closed {
		s.joining = append(s.joining, one)
	}
	s.mu.Unlock()
	if closed {
		one.finish(wire.Shutdown)
		return
	}
	if one.role == wire.Orders {
		s.poll.knock.Store(true)
		leave(s.poll.joined)
	} else {
		s.feeds.attached.Add(1)
		s.feeds.knock.Store(true)
		leave(s.feeds.joined)
	}
	s.rouse()
}

// leave leaves a token for the goroutine that rests, if there is none yet.
func leave(token chan struct{}) {
	select {
	case token <- struct{}{}:
	default:
	}
}

// awaitEnd waits for a token or for the server's end.
func (s *Server) awaitEnd(token chan struct{}) {
	select {
	case <-token:
	case <-s.stopped:
	}
}

// joiners takes the sessions that wait for their goroutine: those of one role, of any feed, or (0)
// all that are left.
func (s *Server) joiners(role wire.Role) (taken []*session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	rest := s.joining[:0]
	for _, one := range s.joining {
		if role == 0 || (role == wire.Orders) == (one.role == wire.Orders) {
			taken = append(taken, one)
		} else {
			rest = append(rest, one)
		}
	}
	clear(s.joining[len(rest):])
	s.joining = rest
	return taken
}

// finish ends the session. Tickets on their way return to the desk by themselves, and their
// decisions stand; the session's place in the count is free. The session's goroutine calls it once,
// and does not touch the shared memory afterwards.
func (one *session) finish(status wire.Status) {
	if fault := wire.Status(one.fault.Load()); fault != wire.OK {
		status = fault
	}
	one.done = true
	for range one.tickets {
		one.flights[one.head].ticket.Release()
		one.head = one.after(one.head)
	}
	if one.tickets > 0 || one.inFlight > 0 { // otherwise another goroutine than the poller may end it
		one.server.poll.away(one, -one.tickets, -one.inFlight)
	}
	s := one.server
	s.mu.Lock()
	if one.role == wire.Orders {
		s.orders--
	} else {
		s.readers--
	}
	s.live = slices.DeleteFunc(s.live, func(other *session) bool { return other == one })
	ended := one.times.load()
	s.past.add(&ended)
	s.mu.Unlock()
	s.counts.over(status)
	one.status = status
	close(one.ended)
	interrupt(one.conn)
}

// unmap releases mappings and descriptors after ended is closed. It runs on the connection's
// goroutine, because it takes the kernel longer than the other sessions should wait.
func (one *session) unmap() {
	for _, r := range one.regions {
		if r == nil {
			continue
		}
		if err := r.Close(); err != nil {
			one.server.o.Logger.Error("session: unmap", "session", one.id, "error", err)
		}
	}
}

// current reports that the token is still valid. It is judged once per second of the clock.
func (one *session) current(nowMillis int64) bool {
	if second := nowMillis / 1000; one.server.o.Enforced && second != one.checked {
		if _, err := one.server.o.Verifier.Verify(one.token.Load().token); err != nil {
			return false
		}
		one.checked = second
	}
	return true
}

// may reports that the session may act for an account and see it, by its present token.
func (one *session) may(account uint32) bool {
	return one.server.o.May(&one.token.Load().claims, account)
}

// after is the position after i in flights.
func (one *session) after(i int) int {
	if i++; i == len(one.flights) {
		return 0
	}
	return i
}
