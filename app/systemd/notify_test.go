package systemd

import (
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"posttrade/ring/must"
)

// TestVariablesOfTheManager are read as sd_notify(3) and sd_watchdog_enabled(3) say.
func TestVariablesOfTheManager(t *testing.T) {
	for name, tt := range map[string]struct {
		socket, usec, pid string
		none              bool
		watchdog          time.Duration
		err               string
	}{
		"outside systemd":        {none: true},
		"no watchdog":            {socket: "/run/s"},
		"a watchdog":             {socket: "@abstract", usec: "3000000", watchdog: 3 * time.Second},
		"a watchdog of this one": {socket: "/run/s", usec: "1", pid: "42", watchdog: time.Microsecond},
		"a watchdog of another":  {socket: "/run/s", usec: "3000000", pid: "43"},
		"a relative path":        {socket: "run/s", none: true, err: "only unix sockets"},
		"a vsock":                {socket: "vsock:2:1", none: true, err: "only unix sockets"},
		"words":                  {socket: "/run/s", usec: "soon", err: "WATCHDOG_USEC"},
		"zero":                   {socket: "/run/s", usec: "0", err: "WATCHDOG_USEC"},
		"below zero":             {socket: "/run/s", usec: "-5", err: "WATCHDOG_USEC"},
		"a time that overflows": {socket: "/run/s", usec: "9223372036854775807",
			err: "WATCHDOG_USEC"},
	} {
		t.Run(name, func(t *testing.T) {
			n, err := from(func(name string) string {
				return map[string]string{"NOTIFY_SOCKET": tt.socket, "WATCHDOG_USEC": tt.usec,
					"WATCHDOG_PID": tt.pid}[name]
			}, 42)
			if (err != nil) != (tt.err != "") || err != nil && !strings.Contains(err.Error(), tt.err) {
				t.Errorf("error %v, want %q", err, tt.err)
			}
			if (n == nil) != tt.none || n != nil && n.Watchdog() != tt.watchdog {
				t.Errorf("notifier %+v, want watchdog %v", n, tt.watchdog)
			}
		})
	}
}

func TestTellIsOneDatagram(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	c := must.Get(net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"}))(t)
	defer c.Close()
	n := must.Get(from(func(name string) string {
		return map[string]string{"NOTIFY_SOCKET": path}[name]
	}, 1))(t)
	must.OK(t, n.Tell("READY=1", "STATUS=serving"))
	text := make([]byte, 100)
	if size, err := c.Read(text); err != nil || string(text[:size]) != "READY=1\nSTATUS=serving" {
		t.Errorf("%q, %v", text[:size], err)
	}
	c.Close()
	if err := n.Tell("STOPPING=1"); err == nil {
		t.Error("a socket without a reader took a state")
	}
}
