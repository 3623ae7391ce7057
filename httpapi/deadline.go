package httpapi

import (
	"errors"
	"os"
	"time"
)

// deadline is a time by which a connection must have read or written something. The HTTP library
// sets it three times per request, always to a later time, except when it changes from waiting for
// a request to reading it. Each call to the connection's own method moves a timer. So the
// connection is told only when its last deadline is too late. When its last deadline has passed too
// early, the connection is told again: about once in the shortest of the time-outs.
//
// For some connections a passed deadline is final, such as that of a write over TLS. Such a
// connection cannot be told again, so its deadline is exact.
//
// Invariant: while a read or a write runs, told is zero if and only if due is, and told is not
// after due. When exact, told equals due.
type deadline struct {
	due   time.Time // zero: none
	told  time.Time // the deadline that the connection has; zero: none
	exact bool      // constant: told must be due
}

// stale reports that the connection must be told the deadline before it may wait.
func (d *deadline) stale() bool {
	return d.exact && d.told != d.due || d.told.After(d.due) || d.told.IsZero() != d.due.IsZero()
}

// early reports that err only means that the connection was not told of a later deadline.
func (d *deadline) early(err error) bool {
	return d.told != d.due && errors.Is(err, os.ErrDeadlineExceeded) && time.Now().Before(d.due)
}

// tell sets the connection's deadline with its method set.
//
// After an error the connection is unusable.
func (d *deadline) tell(set func(time.Time) error) error {
	if err := set(d.due); err != nil {
		return err
	}
	d.told = d.due
	return nil
}

// SetReadDeadline implements net.Conn for the goroutine that reads. It costs a store: receive tells
// the socket, and only when the socket's deadline would be too late.
func (c *framedConn) SetReadDeadline(t time.Time) error {
	c.reading.due = t
	return nil
}

// SetWriteDeadline implements net.Conn for the goroutine that writes.
func (c *framedConn) SetWriteDeadline(t time.Time) error {
	c.writing.due = t
	return nil
}

// SetDeadline implements net.Conn.
func (c *framedConn) SetDeadline(t time.Time) error {
	c.reading.due, c.writing.due = t, t
	return nil
}

// receive reads from the socket within the deadline.
//
// A time-out that the socket reports too early, because it was told an earlier deadline, is not
// passed on.
func (c *framedConn) receive(p []byte) (n int, err error) {
	for stale := c.reading.stale(); ; stale = true {
		if stale {
			if err := c.reading.tell(c.Conn.SetReadDeadline); err != nil {
				return 0, err
			}
		}
		if n, err = c.Conn.Read(p); n > 0 || err == nil || !c.reading.early(err) {
			return n, err
		}
	}
}

// Write writes to the socket within the deadline.
//
// A short write goes on where it stopped.
func (c *framedConn) Write(p []byte) (n int, err error) {
	err = c.withinDeadline(func() error {
		wrote, err := c.Conn.Write(p[n:])
		n += wrote
		return err
	})
	return n, err
}

// withinDeadline calls write within the deadline: again when the connection was not told of a later
// one.
//
// write may have written a part before it is called again, and goes on behind that part. Once the
// connection is hurried a write has hurriedTime at most, and is not tried again.
func (c *framedConn) withinDeadline(write func() error) error {
	for stale := c.writing.stale(); ; stale = true {
		if stale {
			if err := c.writing.tell(c.Conn.SetWriteDeadline); err != nil {
				return err
			}
			if c.hurried.Load() {
				c.hurry()
			}
		}
		if err := write(); err == nil || c.hurried.Load() || !c.writing.early(err) {
			return err
		}
	}
}

// hurriedTime is how long a write may still take once a connection is hurried.
//
// So a client that does not read cannot hold up the stop.
const hurriedTime = time.Second

// hurry bounds the writes of a connection from now on, also one that is under way: the service
// stops. Any goroutine.
func (c *framedConn) hurry() {
	c.hurried.Store(true)
	_ = c.Conn.SetWriteDeadline(time.Now().Add(hurriedTime)) // it may be closed already
}
