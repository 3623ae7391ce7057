//perf:hot

package session

import "posttrade/matcher/desk"

// shares divide the tickets and commands that the sessions may have on their way. One half belongs
// to the sessions, the same share for each; the other half, the common one, goes to the first
// session that asks. A session that keeps its tickets, because its client does not read, can block
// at most the common half.
//
// Invariant: common is the sum, over the sessions, of what each has beyond its own share.
type shares struct {
	own    load // of one session
	common load // in use beyond the own shares; writer: the goroutine that has the sessions
	most   load // of common
}

// load is an amount of tickets, and of commands in them.
type load struct{ tickets, commands int }

// sharesOf divides the desk's tickets for sessions, and half of the input ring, by the largest
// number of sessions. Every session has at least one ticket and one command of its own.
func sharesOf(d *desk.Desk, sessions int) shares {
	tickets, commands := d.Pool(desk.Sessions).Cap(), d.InputSlots()/2
	return shares{
		own:  load{max(1, tickets/2/sessions), max(1, commands/2/sessions)},
		most: load{tickets / 2, commands / 2},
	}
}

// admits reports that a session may have one more ticket with one more command: from its own share,
// or from the common half while there is some.
func (p *poller) admits(one *session) bool {
	s := &p.shares
	return (one.tickets < s.own.tickets || s.common.tickets < s.most.tickets) && p.commandsFor(one) > 0
}

// commandsFor is how many more commands a session may have on their way.
func (p *poller) commandsFor(one *session) int {
	s := &p.shares
	return max(0, s.own.commands-one.inFlight) + max(0, s.most.commands-s.common.commands)
}

// crowded reports that the common half of tickets or of commands is used up.
func (p *poller) crowded() bool {
	s := &p.shares
	return s.common.tickets >= s.most.tickets || s.common.commands >= s.most.commands
}

// away counts tickets and commands of a session that leave for the engine or, when negative, have
// come back.
func (p *poller) away(one *session, tickets, commands int) {
	s := &p.shares
	s.common.tickets -= max(0, one.tickets-s.own.tickets)
	s.common.commands -= max(0, one.inFlight-s.own.commands)
	one.tickets += tickets
	one.inFlight += commands
	s.common.tickets += max(0, one.tickets-s.own.tickets)
	s.common.commands += max(0, one.inFlight-s.own.commands)
}
