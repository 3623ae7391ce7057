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

// errUnsent marks an error of connecting: no byte of a request was sent.
var errUnsent = errors.New("not connected")

// elsewhere reports that another member may have the answer, where this one gave err. It does not
// say that the request may be sent again: see safe.
func elsewhere(err error) bool {
	var p *Problem
	if !errors.As(err, &p) {
		return !errors.Is(err, ErrAnswer)
	}
	return p.Status == http.StatusServiceUnavailable && p.NotSequenced() &&
		(p.Code == codeNotLeader || p.Code == codeNoLeader)
}
