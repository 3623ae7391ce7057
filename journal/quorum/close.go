package quorum

import (
	"errors"
	"time"

	"github.com/hashicorp/raft"
)

// handOnTimeout bounds how long a stopping leader waits for the next one.
const handOnTimeout = 2 * time.Second

// handOn gives the leadership to another member, if one takes it in time. Otherwise the other
// members notice the end of this one themselves. It saves them the wait for a silence.
func (n *Node) handOn() {
	done := make(chan error, 1)
	go func() { done <- n.raft.LeadershipTransfer().Error() }() // Shutdown ends it at the latest
	select {
	case <-done:
	case <-time.After(handOnTimeout):
	}
}

// shutDown ends the library, and waits for the library and for the workers. After a failure of the
// log it stops waiting: the library's calls into the log then do not return until the process ends
// (libraryView).
func (n *Node) shutDown() {
	done := make(chan struct{})
	go func() {
		defer close(done)
		ended := n.awaitWorkers()
		if n.raft != nil {
			_ = n.raft.Shutdown().Error() // the error is always nil
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

// awaitWorkers gives the workers time to finish what they wait for while the library still answers:
// the library (v1.8.0) never answers an entry that it has not looked at before it is shut down. A
// leader without followers steps down by itself, after about a heartbeat. The returned channel is
// closed when all workers have ended.
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

// Close ends this member's part. Leadership is handed on if another member can take it. What was
// handed in is answered or refused, and nothing is applied any more when Close returns. The host
// must run until then.
//
// The order: the leadership, then the goroutines and the library, then what is held back for the
// host, and last transport, network and log, which the library uses. It blocks for handOnTimeout
// twice at most, then for the library and the workers.
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
