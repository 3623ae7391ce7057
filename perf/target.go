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

// engineTarget is an engine in this process as the target of a load. A request is one command on a
// ticket of its own, and is answered when the command is durable.
type engineTarget struct {
	engine *fullEngine
	clock  load.Clock
	source *flowSource
	queue  []engineRequest
	first  int // index in queue of the first that is not answered
}

type engineRequest struct {
	ticket *desk.Ticket
	n      int
}

func newEngineTarget(e *fullEngine, clock load.Clock) *engineTarget {
	return &engineTarget{engine: e, clock: clock, source: &flowSource{random: flow.NewRandom(3)},
		queue: make([]engineRequest, 0, 1<<16)}
}

// Send submits one command. When ring or desk has no room, the caller tries again.
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
		return false, err
	}
	if err := ticket.Submit(); err != nil {
		if errors.Is(err, desk.ErrFull) {
			*t.source = before
			return false, nil
		}
		return false, err
	}
	t.queue = append(t.queue, engineRequest{ticket, n})
	return true, nil
}

// Poll takes in the durable commands. Answers come in the order of the commands.
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
// free connection, and each connection has a goroutine of its own.
type httpTarget struct {
	load  httpLoad
	clock load.Clock
	conns []net.Conn
	jobs  chan int // requests for any free connection; one place per connection
	free  int      // connections without a request
	wg    sync.WaitGroup

	mu   sync.Mutex
	done []httpAnswer // written by the connections, taken by Poll
	err  error        // the first error of a connection
	take []httpAnswer // of Poll
}

type httpAnswer struct {
	n  int
	at time.Duration
}

// newHTTPTarget opens the connections.
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

// connection serves requests until there are no more, or one fails.
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

// Send gives a request to a free connection.
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

// Close ends the connections.
func (t *httpTarget) Close() error {
	close(t.jobs)
	var err error
	for _, conn := range t.conns {
		err = errors.Join(err, conn.Close())
	}
	t.wg.Wait()
	return err
}
