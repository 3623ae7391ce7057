package quorum

import (
	"errors"
	"time"

	"github.com/hashicorp/raft"
)

// handOnTimeout bounds what a leader that stops waits for the next one.
const handOnTimeout = 2 * time.Second

// handOn gives the leadership to another member, if one takes it in time; else the
// others notice by themselves.
func (n *Node) handOn() {
	done := make(chan error, 1)
	go func() { done <- n.raft.LeadershipTransfer().Error() }() // Shutdown ends it at the latest
	select {
	case <-done:
	case <-time.After(handOnTimeout):
	}
}

// shutDown ends the library, and waits for it and for the workers; but not after a failure
// of the log, which the library waits at until the process ends (libraryView).
func (n *Node) shutDown() {
	done := make(chan struct{})
	go func() {
		defer close(done)
		ended := n.awaitWorkers()
		if n.raft != nil {
			_ = n.raft.Shutdown().Error() // it has none
		}
		<-ended
	}()
	var failed <-chan struct{}
	if n.raft != nil {
		failed = n.log.stop.Failed()
	}
	select {
	case <-done:
	case <-failed:
	}
}

// awaitWorkers gives the workers the time to see what they wait for end while the library still
// answers: an entry that it has not looked at when it is shut down is never
// answered (v1.8.0). A leader whom nobody follows gives up by itself, after about a
// heartbeat. What it returns is closed when all of them have ended.
func (n *Node) awaitWorkers() (ended chan struct{}) {
	ended = make(chan struct{})
	go func() {
		n.workers.Wait()
		close(ended)
	}()
	select {
	case <-ended:
	case <-time.After(handOnTimeout):
	}
	return ended
}

// Close ends this member's part: leadership is handed on if there is somebody to
// take it, what was handed in is answered or refused, and nothing is applied any
// more when it returns. The host must run until then.
func (n *Node) Close() (err error) {
	n.stopping.Store(true)
	if n.raft != nil {
		if n.raft.State() == raft.Leader {
			n.handOn()
		}
		n.network.Answer(nil)
	}
	n.cancel()
	if n.proposals != nil {
		n.proposals.Waiter().Wake()
	}
	n.shutDown()
	if n.fsm != nil {
		n.fsm.stop()
	}
	n.leads.Store(false)
	if n.transport != nil {
		err = errors.Join(err, n.transport.Close())
	}
	if n.network != nil {
		err = errors.Join(err, n.network.Close())
	}
	if n.log != nil {
		err = errors.Join(err, n.log.Close())
	}
	return err
}
