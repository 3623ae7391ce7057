package client

import (
	"errors"
	"net/http"
)

// The codes of a member that knows no leader, or is not the leader.
const (
	codeNotLeader = "NOT_LEADER"
	codeNoLeader  = "NO_LEADER"
)

// errUnsent marks an error of connecting: no byte of a request was sent. Callers outside test it
// with Unknown.
var errUnsent = errors.New("not connected")

// otherMemberMayAnswer reports that another member may have the answer, where this one gave err. It
// does not say that the request may be sent again: see safe.
//
// An error of the transport is one of this member: its host, its network or its process may be
// gone. A *Problem is passed over only when it speaks of the leader: a write that gets another 503,
// such as OVERLOADED, would meet the same leader through any member.
func otherMemberMayAnswer(err error) bool {
	var p *Problem
	if !errors.As(err, &p) {
		return !errors.Is(err, ErrAnswer) && !errors.Is(err, errUnsendable)
	}
	return p.Status == http.StatusServiceUnavailable && p.NotSequenced() &&
		(p.Code == codeNotLeader || p.Code == codeNoLeader)
}
