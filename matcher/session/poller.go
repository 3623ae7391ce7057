package session

import (
	"context"
	"runtime"
	"runtime/pprof"
	"slices"
	"sync/atomic"
	"time"

	"posttrade/matcher/session/wire"
	"posttrade/ring"
)

// poller is the goroutine that serves all order sessions in turn. Its fields, but for knock and
// joined, belong to it or, while it rests, to a goroutine that has borrowed the sessions
// (parker.borrow).
type poller struct {
	server   *Server
	sessions []*session
	knock    atomic.Bool   // sessions wait to join; writer: join, the poller
	joined   chan struct{} // a token when a session waits; without sessions the poller rests here
	now      int64         // the clock of this turn
	shares   shares        // of tickets and commands, among the sessions

	// Looks in a row that found nothing. They are first spins, then yields, then sleeps; forever:
	// never a sleep.
	step          int
	spins, yields int // of idle time, before the poller sleeps
	forever       bool
	drained       time.Time // when a stopping server stops waiting for answers
}

// drainTime is how long a stopping server waits for answers that are on their way, and for their
// readers to make room. What is not answered by then is decided and stands; its client does not
// hear of it here.
const drainTime = time.Second

// init turns the strategy into numbers of looks: Spin looks for ever, Yield gives its core away for
// ever, Adaptive does some of both and then sleeps, Park sleeps at once.
func (p *poller) init(s *Server) {
	p.server, p.joined = s, make(chan struct{}, 1)
	p.shares = sharesOf(s.o.Desk, s.o.MaxSessions)
	switch s.o.Idle {
	case ring.Spin, ring.Yield:
		p.forever = true
		p.yields = int(s.o.Idle) // Spin is 0, Yield is 1
	case ring.Adaptive:
		p.spins, p.yields = ring.Spins(ring.Cores()), wire.AdaptiveYields
	}
}

// run serves until the server is stopped and every session has ended. It ties the goroutine to its
// thread and, where Options.Pinned asks for it, the thread to a core; the error is that of the
// binding.
func (p *poller) run() (err error) {
	runtime.LockOSThread() // for good: the thread ends with the goroutine
	if err = ring.PinThread(p.server.o.CPU); err != nil {
		return err
	}
	pprof.Do(context.Background(), pprof.Labels("stage", "sessions"),
		func(context.Context) { p.loop() })
	return nil
}

// loop takes in new sessions, serves all of them once, and idles when none had work. A stopping
// server goes on serving until wind has ended the last session.
func (p *poller) loop() {
	for {
		if p.knock.Load() {
			p.knock.Store(false)
			p.sessions = append(p.sessions, p.server.joiners(wire.Orders)...)
		}
		worked := p.turn()
		if p.server.stopping.Load() && p.wind() {
			return
		}
		if worked {
			p.step = 0
			continue
		}
		p.idle()
	}
}

// turn serves every session once. Those that have ended leave the list. It reports whether any had
// work.
func (p *poller) turn() (worked bool) {
	ended := false
	for _, one := range p.sessions {
		did, status, over := p.serve(one)
		worked = worked || did
		if over {
			one.finish(status)
			ended = true
		}
	}
	if ended {
		p.sessions = withoutDone(p.sessions)
	}
	return worked || ended
}

// wind ends the sessions of a stopping server that have no command on its way, or all of them after
// drainTime. It reports that no session is left.
func (p *poller) wind() bool {
	now := time.Now()
	if p.drained.IsZero() {
		p.drained = now.Add(drainTime)
	}
	for _, one := range p.sessions {
		if one.inFlight+len(one.waiting) == 0 || !one.roomy() || now.After(p.drained) {
			one.finish(wire.Shutdown)
		}
	}
	p.sessions = withoutDone(p.sessions)
	return len(p.sessions) == 0
}

// withoutDone drops the sessions that have ended.
func withoutDone(list []*session) []*session {
	return slices.DeleteFunc(list, func(one *session) bool { return one.done })
}

// idle makes one step of idle time: look again, yield the core, sleep. Without a session the poller
// rests like any goroutine, whatever the strategy.
func (p *poller) idle() {
	if len(p.sessions) == 0 {
		p.server.awaitEnd(p.joined)
		return
	}
	switch {
	case p.step < p.spins:
		p.step++
		ring.Pause()
	case p.forever && p.yields == 0:
	case p.forever || p.step < p.spins+p.yields:
		p.step++
		p.server.park.yield()
	default:
		p.server.park.sleep(p.sessions, p.busy)
	}
}

// busy reports work: the last look before sleeping, after all doorbells are armed. It sees whatever
// turn would act on, or the poller would sleep over it.
func (p *poller) busy() bool {
	stopping := p.server.stopping.Load()
	if p.knock.Load() || stopping && p.drained.IsZero() {
		return true
	}
	for _, one := range p.sessions {
		if one.leaving.Load() || one.answerable() || !stopping && one.takeable() ||
			one.commands.Corrupt() {
			return true
		}
	}
	return false
}
