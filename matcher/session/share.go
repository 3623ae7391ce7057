//perf:hot

package session

import "posttrade/matcher/desk"

// shares divide what the sessions have on their way: half of it is every session's own,
// the same for each, and half is for the first to come. A session that holds on to what
// it has, because its client does not read, keeps others from the common half at most.
//
// Invariant: common is the sum over the sessions of what each has beyond its own.
type shares struct {
	own    load // of one session
	common load // in use beyond the owns; writer: the one that has the sessions
	most   load // of common
}

// load is an amount of tickets, and of commands in them.
type load struct{ tickets, commands int }

// sharesOf divides the desk's tickets for sessions, and half of the input ring.
func sharesOf(d *desk.Desk, sessions int) shares {
	tickets, commands := d.Pool(desk.Sessions).Cap(), d.InputSlots()/2
	return shares{
		own:  load{max(1, tickets/2/sessions), max(1, commands/2/sessions)},
		most: load{tickets / 2, commands / 2},
	}
}

// admits reports that a session may have one more ticket with one more command.
func (p *poller) admits(one *session) bool {
	s := &p.shares
	return (one.tickets < s.own.tickets || s.common.tickets < s.most.tickets) && p.commandsFor(one) > 0
}

// commandsFor is how many more commands a session may have on their way.
func (p *poller) commandsFor(one *session) int {
	s := &p.shares
	return max(0, s.own.commands-one.inFlight) + max(0, s.most.commands-s.common.commands)
}

// crowded reports that a common half is used up.
func (p *poller) crowded() bool {
	s := &p.shares
	return s.common.tickets >= s.most.tickets || s.common.commands >= s.most.commands
}

// away counts tickets and commands of a session that leave for the engine, or are back.
func (p *poller) away(one *session, tickets, commands int) {
	s := &p.shares
	s.common.tickets -= max(0, one.tickets-s.own.tickets)
	s.common.commands -= max(0, one.inFlight-s.own.commands)
	one.tickets += tickets
	one.inFlight += commands
	s.common.tickets += max(0, one.tickets-s.own.tickets)
	s.common.commands += max(0, one.inFlight-s.own.commands)
}
