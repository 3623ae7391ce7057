package engine

import (
	"posttrade/matcher"
	"posttrade/matcher/desk"
	"posttrade/matcher/gate"
)

// gateObserver keeps the gate's image up to date from the engine's events.
//
// It runs on the goroutine of the recorder, before the answer to the command can leave. So a
// client that has the answer to a control finds the gate with it.
type gateObserver struct{ gate *gate.Gate }

func (g gateObserver) Observe(ev *matcher.Event, _ []byte) { g.gate.Observe(ev) }

// Observe, ClientID, Durable and Fail are the recorder's way to the callers: to the desk's tickets,
// and to the readers that wait until what they saw is durable.
//
// Observe also notes the last event of each command. Up to there a member may release answers:
// before it, an answer could leave with a part of its fills only.
func (c *Engine) Observe(ev *matcher.Event) {
	c.Desk.Observe(ev)
	if ev.Flags&matcher.EventLast != 0 {
		c.applied.seen = ev.InputSeq
	}
}

// Durable tells how far the journal is durable. On a member it releases no answers: the commands
// that the matcher is given there are already on the disks of a majority. A member's answers leave
// when their commands are applied. They do not wait for the member's own journal, which can be
// restored from the majority's log.
//
// The journal calls it in the order of the sequences.
func (c *Engine) Durable(inputSeq uint64) {
	if !c.Options.Member {
		c.release(inputSeq)
	}
}

// release sends the answers up to a sequence, one call at a time: the recorder on a member and in
// mode "os"; in mode "fsync" the writers of the tail's log, or the committer without a tail.
//
// The watermark rises before the tickets wake. A client that gets an answer and then asks for a
// read that is durable up to its sequence does not have to wait.
func (c *Engine) release(inputSeq uint64) {
	c.Watermark.raise(inputSeq)
	c.Desk.Durable(inputSeq)
	c.wakeSessions()
}

// appliedMark is how far a member has applied the agreed commands: seen is the last command whose
// last event the recorder has had, released the last one whose answers were sent. released never
// exceeds seen. The recorder's goroutine owns both.
type appliedMark struct{ seen, released uint64 }

// flush is the recorder's call after every batch of events.
//
// It also runs when there are no events, so a reader of the views that asks for a flush is served
// on an idle engine too. more asks the recorder to call again without waiting.
func (c *Engine) flush() (more bool) {
	if m := &c.applied; c.Options.Member && m.seen > m.released {
		m.released = m.seen
		c.release(m.seen)
	}
	return c.Views.Flush()
}

// Fail tells every waiting caller that the journal has failed with err. What they handed in may or
// may not be durable: a client finds out after the restart, by its client order id. The journal
// calls Fail before it calls Options.Fatal, which ends the process.
func (c *Engine) Fail(err error) {
	c.Desk.Fail()
	c.Watermark.fail(err)
	c.wakeSessions()
}

// wakeSessions wakes the sessions, so that they look for answers.
func (c *Engine) wakeSessions() {
	if c.Session != nil {
		c.Session.Wake()
	}
}

// ClientID returns the client id of a command: from the desk, or, for a command that another member
// has proposed, from the id that came with it.
//
// The recorder calls it, in the order of the commands and once for a command with an id: the ids
// from other members are a queue. The result is valid until the command is durable.
func (c *Engine) ClientID(ref uint64) []byte {
	if ref == desk.Foreign {
		return c.foreign.pop()
	}
	return c.Desk.ClientID(ref)
}
