package session

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"syscall"

	"posttrade/ring"
)

// listen binds the socket with its mode from the first moment on. The kernel takes the mode from
// the descriptor when it makes the file, so no other user can connect in between.
//
// Errors name the path: ring.ErrUnsupported on a system without sealed memory, ErrInUse,
// ErrNotSocket, or the system's.
func listen(path string, mode os.FileMode) (*net.UnixListener, error) {
	if !supported {
		return nil, fmt.Errorf("session: listen socket=%s: sessions need Linux: %w", path,
			ring.ErrUnsupported)
	}
	if err := clearStale(path); err != nil {
		return nil, err
	}
	config := net.ListenConfig{Control: func(_, _ string, raw syscall.RawConn) error {
		var failed error
		err := raw.Control(func(fd uintptr) { failed = setMode(fd, mode) })
		return errors.Join(err, failed)
	}}
	l, err := config.Listen(context.Background(), "unixpacket", path)
	if err != nil {
		return nil, fmt.Errorf("session: listen socket=%s: %w", path, err)
	}
	if err := os.Chmod(path, mode.Perm()); err != nil { // the bits that the umask has cleared
		l.Close()
		return nil, fmt.Errorf("session: listen socket=%s mode=%o: %w", path, mode.Perm(), err)
	}
	return l.(*net.UnixListener), nil
}

// clearStale removes a socket file on which no process listens any more: one that refuses a
// connection. It never removes another kind of file, nor a socket that it cannot judge.
func clearStale(path string) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("session: listen socket=%s: %w", path, err)
	case info.Mode().Type() != fs.ModeSocket:
		return fmt.Errorf("session: listen socket=%s: %w", path, ErrNotSocket)
	}
	c, err := net.Dial("unixpacket", path)
	switch {
	case err == nil:
		c.Close()
		return fmt.Errorf("session: listen socket=%s: %w", path, ErrInUse)
	// a full backlog or another socket type: a process listens
	case !errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Errorf("session: listen socket=%s: %w: %w", path, ErrInUse, err)
	}
	if err := os.Remove(path); err != nil {
		return fmt.Errorf("session: remove stale socket=%s: %w", path, err)
	}
	return nil
}
