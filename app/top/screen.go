package top

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"
)

// The terminal's control sequences: for its second page, so that its first page comes back
// afterwards, and to hide the cursor.
//
// The second page is what full-screen programs use. A program that is killed leaves the terminal
// there, without a cursor, until `reset`.
const (
	screenEnter = "\x1b[?1049h\x1b[?25l\x1b[H\x1b[2J"
	screenLeave = "\x1b[?25h\x1b[?1049l"
	screenHome  = "\x1b[H"
	lineRest    = "\x1b[K" // clears to the end of the line
	screenRest  = "\x1b[J" // and to the end of the screen
)

// The size that is assumed for a terminal that does not report one.
const (
	defaultColumns = 80
	defaultRows    = 24
)

// keyPoll is how often the reader of keys checks whether it has to end.
//
// A read of a terminal cannot be interrupted, so close would otherwise wait for a key.
const keyPoll = 50 * time.Millisecond

// screen is a terminal that shows one frame over the other.
//
// One goroutine shows; another one reads keys until close.
type screen struct {
	in, out *os.File
	// Tones are shown as colours.
	colour bool
	// Keys in the order in which they were pressed; closed when no more come.
	keys chan byte
	// What the terminal was set to; nil when it was not changed.
	old *terminalState
	// Closed by close: the reader of keys ends.
	done    chan struct{}
	reading sync.WaitGroup
}

// animates reports whether out is a terminal that can move back to its first line.
//
// A terminal of the kind dumb gets one frame below the other.
func animates(out *os.File, getenv func(string) string) bool {
	return OnTerminal(out) && getenv("TERM") != "dumb"
}

// openScreen takes control of the terminal: keys come one by one and are not shown. When there is
// no terminal to read from, no keys come.
//
// After an error the terminal is as it was. Otherwise the caller must call close, or the terminal
// stays without echo and cursor.
func openScreen(in, out *os.File, colour bool) (*screen, error) {
	s := &screen{in: in, out: out, colour: colour, keys: make(chan byte), done: make(chan struct{})}
	if OnTerminal(in) {
		if err := s.takeKeys(); err != nil {
			return nil, fmt.Errorf("top: open terminal: %w", err)
		}
	}
	if _, err := out.WriteString(screenEnter); err != nil {
		return nil, errors.Join(fmt.Errorf("top: open terminal: %w", err), s.close())
	}
	return s, nil
}

// takeKeys leaves signals to the terminal, but it disables suspension: no process would restore the
// terminal.
//
// Ctrl-C stays a signal, so the program can always be ended.
func (s *screen) takeKeys() error {
	fd := int(s.in.Fd())
	old, err := oneByOne(fd)
	if err != nil {
		return err
	}
	s.old = old
	s.reading.Go(func() { s.readKeys(fd) })
	return nil
}

// SingleKeys makes the keys of a terminal come one by one until restore is called. It does nothing
// to a file that is no terminal.
//
// The caller must call restore before the program ends. posttrade inspect uses it to step.
func SingleKeys(in *os.File) (restore func() error, err error) {
	if !OnTerminal(in) {
		return func() error { return nil }, nil
	}
	old, err := oneByOne(int(in.Fd()))
	if err != nil {
		return nil, fmt.Errorf("top: open terminal: %w", err)
	}
	return func() error { return restoreKeys(int(in.Fd()), old) }, nil
}

// readKeys passes keys on until close is called or the terminal is gone.
//
// It closes keys at its end, so the reader of the channel is not left waiting.
func (s *screen) readKeys(fd int) {
	defer close(s.keys)
	for {
		select {
		case <-s.done:
			return
		default:
		}
		key, ok := pollKey(fd, keyPoll)
		if !ok {
			return
		}
		if key == 0 {
			continue
		}
		select {
		case s.keys <- key:
		case <-s.done:
			return
		}
	}
}

// size asks the terminal for its size.
//
// It is one system call for each frame.
func (s *screen) size() (columns, rows int) {
	if columns, rows = sizeOf(s.out); columns == 0 || rows == 0 {
		return defaultColumns, defaultRows
	}
	return columns, rows
}

// show writes a frame over the last one in one write, so that the screen does not flicker.
//
// What the last frame had beyond this one is cleared to the end of each line and of the screen.
func (s *screen) show(f frame) error {
	text := strings.TrimSuffix(f.text(s.colour), "\n")
	text = strings.ReplaceAll(text, "\n", lineRest+"\r\n")
	_, err := s.out.WriteString(screenHome + text + lineRest + screenRest)
	return err
}

// close restores the terminal.
//
// It waits for the reader of keys. It may be called once.
func (s *screen) close() error {
	close(s.done)
	s.reading.Wait()
	_, err := s.out.WriteString(screenLeave)
	if s.old != nil {
		err = errors.Join(err, restoreKeys(int(s.in.Fd()), s.old))
	}
	if err != nil {
		return fmt.Errorf("top: restore terminal: %w", err)
	}
	return nil
}
