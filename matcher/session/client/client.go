package client

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"posttrade/matcher/session/wire"
	"posttrade/ring"
)

// Errors of a client; test by errors.Is. After ErrFull the caller may try again, once answers have
// been read; after ErrEnded no call of the client succeeds.
var (
	ErrRefused  = errors.New("session refused")
	ErrEnded    = errors.New("session has ended")
	ErrFull     = errors.New("command ring is full")
	ErrClientID = errors.New("client id is longer than 64 bytes")
	ErrRole     = errors.New("a feed takes no commands")
)

// Options of Dial. The zero value is an order session with the server's ring sizes. A larger event
// ring lets a client that reads seldom have more answers on their way.
type Options struct {
	Role         wire.Role     // 0: wire.Orders
	CommandSlots int           // 0: the server chooses
	EventSlots   int           // 0: the server chooses
	Idle         ring.Strategy // how Next waits, when IdleSet; otherwise adaptive
	IdleSet      bool
}

// Client is one session. The sending goroutine owns send, the reading one inbox, page, idler,
// answers, looks, first and one; asking guards asked and the socket's questions. Replies holds the
// newest reply that no question has read; the goroutine that reads the socket writes it.
type Client struct {
	conn    *net.UnixConn
	welcome wire.WelcomeFrame
	role    wire.Role
	ended   atomic.Pointer[error] // why; writer: the reading goroutine of the socket, Close
	regions [2]*ring.Region
	send    *ring.SPSC[wire.Request]
	inbox   *wire.Inbox
	page    wire.Page
	idler   *ring.Idler
	answers int64 // read so far
	looks   int   // of Next, in a row, that found nothing
	first   int   // of these, the looks at once before the first yield: spins or 0
	spins   int   // constant: looks at once
	yields  int   // constant: looks after giving the core to others, before the idler's

	one [1]wire.Record // of Next

	replies chan reply
	asking  sync.Mutex // one question at a time
	asked   uint64     // questions that were sent
	done    chan struct{}
	closing sync.Once
	closed  error
}

// reply is the answer to a Renew or a Lookup. The server answers the questions in their order, so
// the number of a reply is that of its question.
type reply struct {
	number uint64 // from 1
	kind   wire.Frame
	status wire.Status
	body   [4]byte
}

// Dial connects, sends the hello and maps the rings. ErrRefused wraps a server's refusal; its text
// gives the reason. ring.ErrUnsupported on a system other than Linux.
//
// ctx bounds Dial, and nothing after it. The token may be empty where the server does not enforce
// entitlement. Dial starts a goroutine that reads the socket until Close.
func Dial(ctx context.Context, socket, token string, o Options) (_ *Client, err error) {
	if o.Role == 0 {
		o.Role = wire.Orders
	}
	if rightsRoom == 0 {
		return nil, fmt.Errorf("client: dial socket=%s: sessions need Linux: %w", socket,
			ring.ErrUnsupported)
	}
	var d net.Dialer
	conn, err := d.DialContext(ctx, "unixpacket", socket)
	if err != nil {
		return nil, fmt.Errorf("client: dial socket=%s: %w", socket, err)
	}
	c := &Client{conn: conn.(*net.UnixConn), role: o.Role, replies: make(chan reply, 1),
		done: make(chan struct{})}
	defer func() {
		if err != nil {
			c.discard()
		}
	}()
	stop := context.AfterFunc(ctx, func() { conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	hello := wire.HelloFrame{Role: o.Role, CommandSlots: uint32(o.CommandSlots),
		EventSlots: uint32(o.EventSlots), Token: []byte(token)}
	if _, err = conn.Write(hello.Append(nil)); err != nil {
		return nil, fmt.Errorf("client: hello socket=%s: %w", socket, err)
	}
	fds, err := c.hear()
	if err != nil {
		return nil, fmt.Errorf("client: hello socket=%s: %w", socket, errors.Join(err, ctx.Err()))
	}
	if !o.IdleSet {
		o.Idle = ring.Adaptive
	}
	if err = c.attach(fds, o.Idle); err != nil {
		return nil, fmt.Errorf("client: attach socket=%s: %w", socket, err)
	}
	if !stop() {
		return nil, fmt.Errorf("client: dial socket=%s: %w", socket, ctx.Err())
	}
	go c.listen()
	return c, nil
}

// hear reads the welcome and its two descriptors. After an error it has closed the descriptors that
// came.
func (c *Client) hear() (fds []int, err error) {
	frame := make([]byte, wire.MaxFrameBytes)
	rights := make([]byte, rightsRoom)
	n, rn, _, _, err := c.conn.ReadMsgUnix(frame, rights)
	if errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%w: the server hung up", ErrRefused)
	}
	if err != nil {
		return nil, err
	}
	if fds, err = descriptors(rights[:rn]); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			closeAll(fds)
		}
	}()
	kind, status, body, err := wire.Parse(frame[:n])
	switch {
	case err != nil:
		return fds, err
	case kind != wire.Welcome || status != wire.OK:
		return fds, fmt.Errorf("%w: %s: %s", ErrRefused, status, wire.Reason(status, body))
	}
	if c.welcome, err = wire.ParseWelcome(body); err == nil && len(fds) != 2 {
		err = fmt.Errorf("welcome with %d descriptors: %w", len(fds), wire.ErrFrame)
	}
	return fds, err
}

// attach maps the two regions: the commands to write, the events to read only. It takes over the
// descriptors; after an error discard releases what was mapped.
func (c *Client) attach(fds []int, idle ring.Strategy) (err error) {
	w := &c.welcome
	total, at := wire.CommandBytes(int(w.CommandSlots))
	if uint64(total) != w.CommandBytes || uint64(at) != w.ClientPage ||
		uint64(wire.EventBytes(int(w.EventSlots))) != w.EventBytes {
		closeAll(fds)
		return fmt.Errorf("layout %+v: %w", *w, wire.ErrFrame)
	}
	if c.regions[0], err = ring.Attach(fds[0], total); err != nil {
		closeAll(fds[1:])
		return err
	}
	if c.regions[1], err = ring.AttachReadOnly(fds[1], int(w.EventBytes)); err != nil {
		return err
	}
	if c.send, err = ring.OpenSPSC[wire.Request](c.regions[0]); err != nil {
		return err
	}
	c.page = wire.PageAt(c.regions[0], at)
	if c.inbox, err = wire.OpenInbox(c.regions[1], w, c.page); err != nil {
		return err
	}
	c.idler = ring.NewIdler(idle, c.page.Waiter)
	switch idle {
	case ring.Adaptive:
		c.spins, c.yields = spins(ring.Cores()), wire.AdaptiveYields
	case ring.Yield:
		c.yields = math.MaxInt
	}
	return nil
}

// spins is how many looks Next takes, a tenth of a microsecond apart, before it gives its core
// away. Giving the core away costs as much as a round trip even when no other thread wants it. With
// two cores the server decides a single order on one of them; under a flow it needs both.
func spins(cores int) int {
	switch {
	case cores <= 1:
		return 0
	case cores == 2:
		return 200
	}
	return 500
}

// yield gives the core to another thread, and to another goroutine.
func yield() {
	runtime.Gosched()
	ring.YieldThread()
}

// listen reads the socket until it ends, and so notices the end of the session. A goodbye gives the
// reason; without one the connection was closed.
func (c *Client) listen() {
	defer close(c.done)
	frame := make([]byte, wire.MaxFrameBytes)
	for number := uint64(1); ; number++ {
		n, err := c.conn.Read(frame)
		if err != nil || n == 0 {
			c.end(fmt.Errorf("client: session=%d: %w: the connection is closed", c.welcome.Session,
				ErrEnded))
			return
		}
		kind, status, body, err := wire.Parse(frame[:n])
		switch {
		case err != nil:
			c.end(fmt.Errorf("client: session=%d: %w: %w", c.welcome.Session, ErrEnded, err))
			return
		case kind == wire.Goodbye:
			c.end(fmt.Errorf("client: session=%d: %w: %s", c.welcome.Session, ErrEnded,
				wire.Reason(status, body)))
			return
		}
		r := reply{number: number, kind: kind, status: status}
		copy(r.body[:], body)
		select {
		case <-c.replies: // to a question that was abandoned
		default:
		}
		c.replies <- r
	}
}

// end notes why the session has ended and wakes the reader.
func (c *Client) end(why error) {
	if c.ended.CompareAndSwap(nil, &why) {
		c.page.Waiter.Wake()
	}
}

// Err is why the session has ended, nil while it has not. Records that came before may still be
// unread. Any goroutine.
func (c *Client) Err() error {
	if why := c.ended.Load(); why != nil {
		return *why
	}
	return nil
}

// Idle counts how Next has waited so far. Reader only.
func (c *Client) Idle() ring.IdleStats { return c.idler.Stats() }

// Session is the session's number at the server.
func (c *Client) Session() uint64 { return c.welcome.Session }

// Quota is how many commands may be on their way; further commands wait in the ring.
func (c *Client) Quota() int { return int(c.welcome.Quota) }

// Close ends the session and unmaps the rings: no other call of the client may be running. The
// outcome of unanswered commands is unknown. Idempotent.
func (c *Client) Close() error {
	c.closing.Do(func() {
		c.end(fmt.Errorf("client: session=%d: %w: closed here", c.welcome.Session, ErrEnded))
		c.conn.Close()
		<-c.done
		c.closed = c.discard()
	})
	return c.closed
}

// discard closes the parts that exist. The rings must not be used afterwards: their memory is
// unmapped.
func (c *Client) discard() error {
	errs := []error{nil, nil}
	for i, r := range c.regions {
		if r != nil {
			errs[i] = r.Close()
		}
	}
	c.conn.Close()
	return errors.Join(errs...)
}

// Security is the id of a ticker, 0 when the server does not know the ticker. It is a question over
// the socket, for a client that begins: an id never changes.
func (c *Client) Security(ctx context.Context, ticker string) (uint32, error) {
	r, err := c.ask(ctx, wire.Lookup, wire.Found, []byte(ticker))
	return binary.LittleEndian.Uint32(r.body[:]), err
}

// Renew gives the session another token of the same subject. After ErrRefused the session keeps its
// token.
func (c *Client) Renew(ctx context.Context, token string) error {
	r, err := c.ask(ctx, wire.Renew, wire.Renewed, []byte(token))
	if err == nil && r.status != wire.OK {
		err = fmt.Errorf("client: renew session=%d: %w: %s", c.welcome.Session, ErrRefused, r.status)
	}
	return err
}

// ask sends a frame and waits for its reply, one question at a time. The reply to a question that
// was abandoned by its ctx may come later: its number tells it from the reply to this one.
func (c *Client) ask(ctx context.Context, question, answer wire.Frame, body []byte) (reply, error) {
	c.asking.Lock()
	defer c.asking.Unlock()
	if err := ctx.Err(); err != nil {
		return reply{}, err
	}
	if _, err := c.conn.Write(wire.AppendText(nil, question, wire.OK, body)); err != nil {
		return reply{}, fmt.Errorf("client: ask session=%d: %w", c.welcome.Session,
			errors.Join(ErrEnded, err))
	}
	c.asked++
	for {
		select {
		case r := <-c.replies:
			if r.number == c.asked && r.kind == answer {
				return r, nil
			}
		case <-c.done:
			return reply{}, c.Err()
		case <-ctx.Done():
			return reply{}, ctx.Err()
		}
	}
}
