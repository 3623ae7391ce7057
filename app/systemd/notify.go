package systemd

import (
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"time"
)

// Notifier is the way to the service manager that has started this process. Any goroutine.
type Notifier struct {
	// The socket of NOTIFY_SOCKET; a name that begins with @ is an abstract one.
	address net.UnixAddr
	// 0 without a watchdog for this process.
	watchdog time.Duration
}

// FromEnvironment returns the notifier of this process; nil when the service manager has not asked
// to be told anything. With an error about the watchdog there is a notifier all the same.
//
// The variables are left as they are, so a process that this one starts sees them, too.
// WATCHDOG_PID keeps such a process from taking the watchdog for its own.
func FromEnvironment() (*Notifier, error) {
	return from(os.Getenv, os.Getpid())
}

// from reads the variables that sd_notify(3) and sd_watchdog_enabled(3) define.
//
// A watchdog of more than a day is taken for a mistake.
func from(variable func(name string) string, pid int) (*Notifier, error) {
	path := variable("NOTIFY_SOCKET")
	if path == "" {
		return nil, nil
	}
	if path[0] != '/' && path[0] != '@' {
		return nil, fmt.Errorf("systemd: NOTIFY_SOCKET=%q: only unix sockets are known", path)
	}
	n := &Notifier{address: net.UnixAddr{Name: path, Net: "unixgram"}}
	if of := variable("WATCHDOG_PID"); of != "" && of != strconv.Itoa(pid) {
		return n, nil // it waits for another process
	}
	text := variable("WATCHDOG_USEC")
	if text == "" {
		return n, nil
	}
	usec, err := strconv.ParseInt(text, 10, 64)
	if err != nil || usec <= 0 || usec > int64(24*time.Hour/time.Microsecond) {
		return n, fmt.Errorf("systemd: WATCHDOG_USEC=%q is not a time in microseconds", text)
	}
	n.watchdog = time.Duration(usec) * time.Microsecond
	return n, nil
}

// Watchdog is the time after which the service manager ends a process that has not said WATCHDOG=1;
// 0: it does not wait for that.
func (n *Notifier) Watchdog() time.Duration { return n.watchdog }

// Tell sends states, such as READY=1, in one datagram.
//
// Each call opens a socket and closes it: a few system calls, at most every few seconds.
func (n *Notifier) Tell(states ...string) error {
	c, err := net.DialUnix("unixgram", nil, &n.address)
	if err != nil {
		return fmt.Errorf("systemd: %w", err)
	}
	defer c.Close()
	if _, err := c.Write([]byte(strings.Join(states, "\n"))); err != nil {
		return fmt.Errorf("systemd: %w", err)
	}
	return nil
}
