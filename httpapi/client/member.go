package client

import (
	"errors"
	"fmt"
	"net"
	"net/http"
)

// The codes of a member that knows no leader, or is not the leader.
const (
	codeNotLeader = "NOT_LEADER"
	codeNoLeader  = "NO_LEADER"
)

// errUnsent marks an error of connecting: no byte of a request was sent.
var errUnsent = errors.New("not connected")

// noting marks the errors of dial with errUnsent.
func noting(dial func(address string) (net.Conn, error)) func(address string) (net.Conn, error) {
	return func(address string) (net.Conn, error) {
		conn, err := dial(address)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", errUnsent, err)
		}
		return conn, nil
	}
}

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
