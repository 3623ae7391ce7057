package installation

import (
	"context"
	"time"
)

// How long the announcement of the listeners waits for the control sources, and how often it checks
// them. They take some hundredths of a second when all is well. When it is not, the services must
// be reachable all the same.
//
// A longer wait would keep a supervisor from seeing a process that serves reads.
const (
	announceWait = 2 * time.Second
	announceLook = 2 * time.Millisecond
)

// awaitReady returns when orders are admitted, or when that takes too long. A program that waits
// for the announcement then does not have to wait again.
//
// It polls, because readiness has several writers; at the start no other work is disturbed.
func (in *Installation) awaitReady(ctx context.Context) {
	late := time.After(announceWait)
	look := time.NewTicker(announceLook)
	defer look.Stop()
	for !in.ready() {
		select {
		case <-ctx.Done():
			return
		case <-late:
			return
		case <-look.C:
		}
	}
}

// ready reports that orders are admitted, here or at the leader.
//
// A member that does not lead counts as ready when it knows where the leader's order-matcher is.
func (in *Installation) ready() bool {
	if in.Member == nil || in.Member.Node.Leads() {
		return in.Core.Gate.Ready()
	}
	_, address := in.Member.Node.Leader("order-matcher")
	return address != ""
}
