package perf

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"posttrade/matcher/desk"
	"posttrade/matcher/flow"
	"posttrade/perf/load"
)

// engineTarget is an engine in this process as the target of a load: single orders in most rows
// that measure latency. A request is one command on a ticket of its own, and is answered when the
// command is durable.
//
// The time has gate, desk, both rings, matcher, recorder and journal in it, but no network and no
// JSON. What a parked caller would wait for its wake-up is not in it either, because Poll asks.
// When the stages are idle, Submit decides and records the command on the sending goroutine (see
// Ticket.Submit).
//
// Only one goroutine may use it.
type engineTarget struct {
	engine *fullEngine
	// clock stamps the answers; it must be the clock of the load that sends.
	clock load.Clock
	// source makes the commands; Send puts it back to before when the ring has no room.
	source *flowSource
	// queue has the requests that were sent, in that order. When every answer has come, it is emptied
	// and its memory is used again.
	queue []engineRequest
	first int
}

// engineRequest is a request under way: its ticket, and its number in the load.
type engineRequest struct {
	ticket *desk.Ticket
	n      int
}

func newEngineTarget(e *fullEngine, clock load.Clock) *engineTarget {
	return &engineTarget{engine: e, clock: clock, source: &flowSource{random: flow.NewRandom(3)},
		queue: make([]engineRequest, 0, 1<<16)}
}

// Send submits one command. When ring or desk has no room, the caller tries again, and the load
// charges the wait to the request. Any other error ends the load: the gate refused a good order, or
// the desk is closed or has failed.
func (t *engineTarget) Send(n int) (bool, error) {
	ticket, err := t.engine.Desk.Acquire(1)
	if errors.Is(err, desk.ErrBusy) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	before := *t.source
	if err := t.source.fill(ticket, t.engine); err != nil {
		ticket.Release()
		return false, err
	}
	if err := ticket.Submit(); err != nil {
		ticket.Release()
		if errors.Is(err, desk.ErrFull) {
			*t.source = before
			return false, nil
		}
		return false, err
	}
	t.queue = append(t.queue, engineRequest{ticket, n})
	return true, nil
}

// Poll takes in the durable commands. Answers come in the order of the commands, so one look at the
// oldest request without an answer is enough. A command that was not accepted is an error: the time
// of a refusal is not that of an order.
func (t *engineTarget) Poll(answered func(n int, at time.Duration)) error {
	for t.first < len(t.queue) && t.queue[t.first].ticket.Ready() {
		q := &t.queue[t.first]
		t.first++
		answered(q.n, t.clock.Now())
		if err := accepted(q.ticket); err != nil {
			return err
		}
	}
	if t.first == len(t.queue) {
		t.queue, t.first = t.queue[:0], 0
	}
	return nil
}

// httpTarget is keep-alive connections to a server as the target of a load. A request waits for a
// free connection, and each connection has a goroutine of its own, which blocks in the socket.
//
// The time of a request ends when its connection's goroutine has read the whole answer, so it
// includes the wake-up of that goroutine by the runtime, on the cores that the server uses too.
type httpTarget struct {
	load  httpLoad
	clock load.Clock
	conns []net.Conn
	// jobs has a place for every connection. Send never blocks on it, because it sends only for a free
	// one.
	jobs chan int
	// free is the number of connections without a request. Only Send and Poll touch it, on one
	// goroutine.
	free int
	wg   sync.WaitGroup

	// mu guards done and err, which the connections write.
	mu sync.Mutex
	// done has the answers since the last Poll.
	done []httpAnswer
	// err joins the errors of connections; a connection ends with its first one.
	err error
	// take is the slice that Poll read last, kept for its memory. Poll and the connections exchange it
	// for done, so that answers are noted without an allocation once both have grown.
	take []httpAnswer
}

// httpAnswer is a request's number in the load and the time of its answer on the load's clock.
type httpAnswer struct {
	n  int
	at time.Duration
}

// newHTTPTarget opens the connections before the load begins, so that no dial is timed. Close must
// be called, also after an error of the load.
func newHTTPTarget(l httpLoad, clock load.Clock) (*httpTarget, error) {
	t := &httpTarget{load: l, clock: clock, jobs: make(chan int, l.connections), free: l.connections}
	for c := range l.connections {
		conn, err := net.Dial("tcp", l.addr)
		if err != nil {
			return nil, errors.Join(err, t.Close())
		}
		t.conns = append(t.conns, conn)
		t.wg.Go(func() { t.connection(conn, c) })
	}
	return t, nil
}

// connection serves requests until there are no more, or one fails. After a failure its connection
// stays counted as busy, and the next Poll returns the error.
func (t *httpTarget) connection(conn net.Conn, number int) {
	in := bufio.NewReaderSize(conn, 64<<10)
	var out []byte
	for n := range t.jobs {
		var err error
		if out, err = t.load.exchange(conn, in, out[:0], number, n); err != nil {
			t.mu.Lock()
			t.err = errors.Join(t.err, fmt.Errorf("request=%d: %w", n, err))
			t.mu.Unlock()
			return
		}
		at := t.clock.Now()
		t.mu.Lock()
		t.done = append(t.done, httpAnswer{n, at})
		t.mu.Unlock()
	}
}

// Send gives a request to a free connection; false when there is none. It allocates nothing and
// writes to no socket: the connection's goroutine does.
func (t *httpTarget) Send(n int) (bool, error) {
	if t.free == 0 {
		return false, nil
	}
	t.free--
	t.jobs <- n // the channel has a place for every connection
	return true, nil
}

// Poll reports the answers that the connections have read.
func (t *httpTarget) Poll(answered func(n int, at time.Duration)) error {
	t.mu.Lock()
	t.done, t.take = t.take[:0], t.done
	err := t.err
	t.mu.Unlock()
	for _, a := range t.take {
		t.free++
		answered(a.n, a.at)
	}
	return err
}

// Close ends the connections and waits for their goroutines. A request under way fails.
func (t *httpTarget) Close() error {
	close(t.jobs)
	var err error
	for _, conn := range t.conns {
		err = errors.Join(err, conn.Close())
	}
	t.wg.Wait()
	return err
}
