package quorum

import (
	"sync"
	"time"

	"posttrade/matcher"
)

// On a member that does not lead, no caller waits for what is agreed. The member gives its engine
// many commands at once, or after a moment, because waking the engine's threads costs more time
// than a few commands. The disk and the network, which the leader does wait for, get that time.
const (
	queuedCommands = 1024
	queuedTime     = 5 * time.Millisecond
)

// applyQueue holds agreed commands back, in order.
//
// The goroutine that hands commands to the host holds mu, so that the host sees one call at a time.
type applyQueue struct {
	mu     sync.Mutex
	parts  []part
	count  int // commands of parts
	timer  *time.Timer
	closed bool
}

// part is what an entry has for the host: the commands from sequence first on that its journal does
// not have yet.
type part struct {
	first    uint64
	commands []matcher.Command
	ids      IDs
}

// hold adds a part, and hands all parts over when there are many. The first part starts the timer,
// so nothing is held longer than queuedTime. The library's goroutine only.
func (f *fsm) hold(p part) {
	l := &f.queue
	l.mu.Lock()
	defer l.mu.Unlock()
	l.parts, l.count = append(l.parts, p), l.count+len(p.commands)
	switch {
	case l.count >= queuedCommands:
		f.handOver()
	case len(l.parts) > 1: // the timer runs
	case l.timer == nil:
		l.timer = time.AfterFunc(queuedTime, f.flush)
	default:
		l.timer.Reset(queuedTime)
	}
}

// hand gives the host what was held back, and then a part: the entry is this process's own, and its
// callers wait. The library's goroutine only.
func (f *fsm) hand(p part) {
	l := &f.queue
	l.mu.Lock()
	defer l.mu.Unlock()
	l.parts = append(l.parts, p)
	f.handOver()
}

// flush gives the host what was held back. Any goroutine; it waits while another hands over, and
// for room in the host.
func (f *fsm) flush() {
	f.queue.mu.Lock()
	defer f.queue.mu.Unlock()
	f.handOver()
}

// handOver gives the host everything. The caller holds mu, also while the host waits for room, so
// the order cannot change.
func (f *fsm) handOver() {
	l := &f.queue
	if l.closed {
		return
	}
	for _, p := range l.parts {
		f.n.host.Apply(p.first, p.commands, p.ids)
		f.n.handed.Store(p.first + uint64(len(p.commands)) - 1)
	}
	clear(l.parts)
	l.parts, l.count = l.parts[:0], 0
}

// stop drops what was held back: the log has it, and the next start applies it. The host is not
// called again. It waits for a call under way.
func (f *fsm) stop() {
	l := &f.queue
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed, l.parts = true, nil
	if l.timer != nil {
		l.timer.Stop()
	}
}
