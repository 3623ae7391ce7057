package top

import (
	"errors"
	"os"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// terminalState is what a terminal was set to.
//
// It is given back whole, with every setting that the user had.
type terminalState = unix.Termios

// OnTerminal reports whether the file is a terminal.
//
// A file that was redirected, a pipe and /dev/null are none.
func OnTerminal(f *os.File) bool {
	_, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS)
	return err == nil
}

// oneByOne makes keys come one by one, and returns the terminal's state before.
//
// The output is left as it is: line feeds and signals work as before. Only suspension is taken
// away.
func oneByOne(fd int) (old *terminalState, err error) {
	if old, err = unix.IoctlGetTermios(fd, unix.TCGETS); err != nil {
		return nil, err
	}
	raw := *old
	raw.Lflag &^= unix.ICANON | unix.ECHO
	raw.Cc[unix.VMIN], raw.Cc[unix.VTIME], raw.Cc[unix.VSUSP] = 1, 0, 0
	return old, unix.IoctlSetTermios(fd, unix.TCSETS, &raw)
}

// restoreKeys sets a terminal to what oneByOne has returned.
func restoreKeys(fd int, old *terminalState) error {
	return unix.IoctlSetTermios(fd, unix.TCSETS, old)
}

// pollKey waits for a key, 0 when none has come in time. It returns false when no key will come.
//
// A signal in the meantime counts as no key. ok is false when the terminal is gone or closed.
func pollKey(fd int, within time.Duration) (key byte, ok bool) {
	n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}},
		int(within.Milliseconds()))
	if errors.Is(err, unix.EINTR) || err == nil && n == 0 {
		return 0, true
	}
	var one [1]byte
	if n, err := unix.Read(fd, one[:]); err != nil || n == 0 {
		return 0, false
	}
	return one[0], true
}

// sizeOf asks a terminal for its size.
//
// Both are 0 for a file that is no terminal.
func sizeOf(f *os.File) (columns, rows int) {
	w, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
	if err != nil {
		return 0, 0
	}
	return int(w.Col), int(w.Row)
}

// notifyResized makes c receive a signal when the terminal has another size.
func notifyResized(c chan<- os.Signal) { signal.Notify(c, syscall.SIGWINCH) }
