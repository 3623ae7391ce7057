package top

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"posttrade/app/apptest"
	"posttrade/ring/must"

	"golang.org/x/sys/unix"
)

// terminal is a pseudo terminal. It keeps what a program writes to it, and sends keys.
type terminal struct {
	keyboard, end *os.File
	mu            sync.Mutex
	text          bytes.Buffer // guarded by mu
}

func newTerminal(t *testing.T, columns, rows uint16) *terminal {
	t.Helper()
	keyboard := must.Get(os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0))(t)
	number := must.Get(unix.IoctlGetInt(int(keyboard.Fd()), unix.TIOCGPTN))(t)
	must.OK(t, unix.IoctlSetPointerInt(int(keyboard.Fd()), unix.TIOCSPTLCK, 0))
	end := must.Get(os.OpenFile(fmt.Sprint("/dev/pts/", number), os.O_RDWR|unix.O_NOCTTY, 0))(t)
	p := &terminal{keyboard: keyboard, end: end}
	p.resize(t, columns, rows)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		io.Copy(p, keyboard) // ends when the other end is closed
	}()
	t.Cleanup(func() {
		end.Close()
		<-ended
		keyboard.Close()
	})
	return p
}

// Write stores what the terminal shows.
func (p *terminal) Write(text []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.text.Write(text)
}

func (p *terminal) shown() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.text.String()
}

func (p *terminal) resize(t *testing.T, columns, rows uint16) {
	t.Helper()
	must.OK(t, unix.IoctlSetWinsize(int(p.end.Fd()), unix.TIOCSWINSZ,
		&unix.Winsize{Col: columns, Row: rows}))
}

func (p *terminal) modes(t *testing.T) unix.Termios {
	t.Helper()
	modes := must.Get(unix.IoctlGetTermios(int(p.end.Fd()), unix.TCGETS))(t)
	return *modes
}

// TestTopOnATerminal runs the view on a terminal: it is drawn on a page of its own, keys are not
// shown, and q restores the terminal.
func TestTopOnATerminal(t *testing.T) {
	t.Setenv("TERM", "xterm")
	for _, noColour := range []string{"", "1"} {
		t.Setenv("NO_COLOR", noColour)
		dir, _ := serving(t)
		p := newTerminal(t, 90, 30)
		before := p.modes(t)
		view := &Screen{Path: filepath.Join(dir, "stats"), Interval: 100 * time.Millisecond,
			Now: time.Now}
		ended := make(chan error)
		go func() { ended <- view.Live(t.Context(), p.end, p.end) }()
		apptest.Until(t, "two frames are drawn",
			func() (bool, any) { s := p.shown(); return strings.Count(s, "CLUSTER") >= 2, s })
		during := p.modes(t)
		if during.Lflag&(unix.ECHO|unix.ICANON) != 0 || during.Lflag&unix.ISIG == 0 ||
			during.Cc[unix.VSUSP] != 0 {
			t.Errorf("modes while it is shown: %+v", during)
		}
		must.Get(p.keyboard.Write([]byte("q")))(t)
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if after := p.modes(t); after != before {
			t.Errorf("modes afterwards %+v, want %+v", after, before)
		}
		apptest.Until(t, "the terminal is given back",
			func() (bool, any) { s := p.shown(); return strings.HasSuffix(s, screenLeave), s })
		text := p.shown()
		if !strings.HasPrefix(text, screenEnter) ||
			strings.Contains(text, "\x1b[1mposttrade") != (noColour == "") {
			t.Errorf("NO_COLOR=%q: %q", noColour, text)
		}
	}
}

// TestTopGivesTheTerminalBackWhenTheServerEnds: Live restores the terminal and says that the server
// has ended.
func TestTopGivesTheTerminalBackWhenTheServerEnds(t *testing.T) {
	t.Setenv("TERM", "xterm")
	dir, stop := serving(t)
	p := newTerminal(t, 90, 30)
	before := p.modes(t)
	view := &Screen{Path: filepath.Join(dir, "stats"), Interval: 100 * time.Millisecond, Now: time.Now}
	ended := make(chan error)
	go func() { ended <- view.Live(t.Context(), p.end, p.end) }()
	apptest.Until(t, "a frame is drawn",
		func() (bool, any) { s := p.shown(); return strings.Contains(s, "CLUSTER"), s })
	stop()
	if err := <-ended; err == nil || !strings.Contains(err.Error(), "stopped in order") {
		t.Errorf("ended with %v", err)
	}
	if after := p.modes(t); after != before {
		t.Errorf("modes afterwards %+v, want %+v", after, before)
	}
	apptest.Until(t, "the terminal is given back",
		func() (bool, any) { s := p.shown(); return strings.HasSuffix(s, screenLeave), s })
}

// TestTopWithoutTerminalIsText shows one frame after the other, without control codes.
func TestTopWithoutTerminalIsText(t *testing.T) {
	dir, _ := serving(t)
	ctx, cancel := context.WithCancel(t.Context())
	view := &Screen{Path: filepath.Join(dir, "stats"), Interval: 100 * time.Millisecond, Now: time.Now}
	read, write := io.Pipe()
	ended := make(chan error)
	go func() {
		ended <- view.Live(ctx, nil, write)
		write.Close()
	}()
	var text bytes.Buffer
	for chunk := make([]byte, 1<<16); strings.Count(text.String(), "single node\n\n") < 2; {
		n := must.Get(read.Read(chunk))(t)
		text.Write(chunk[:n])
	}
	cancel()
	go io.Copy(io.Discard, read)
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if strings.ContainsRune(text.String(), '\x1b') {
		t.Errorf("codes without a terminal: %q", &text)
	}
}

// TestScreenFollowsItsTerminal: size and text of a frame.
func TestScreenFollowsItsTerminal(t *testing.T) {
	p := newTerminal(t, 90, 30)
	s := must.Get(openScreen(p.end, p.end, true))(t)
	for _, tt := range []struct{ columns, rows, wantColumns, wantRows int }{{90, 30, 90, 30},
		{40, 10, 40, 10}, {0, 0, 80, 24}} {
		p.resize(t, uint16(tt.columns), uint16(tt.rows))
		if columns, rows := s.size(); columns != tt.wantColumns || rows != tt.wantRows {
			t.Errorf("%d x %d of %d x %d, want %d x %d", columns, rows, tt.columns, tt.rows, tt.wantColumns,
				tt.wantRows)
		}
	}
	must.OK(t, s.show(frame{{{"one", toneBad}}, {}, {{"three", tonePlain}}}))
	// keys that no goroutine reads do not delay the end
	must.Get(p.keyboard.Write([]byte("abc")))(t)
	if key := <-s.keys; key != 'a' {
		t.Errorf("key %q", key)
	}
	must.OK(t, s.close())
	want := "\x1b[H\x1b[31mone\x1b[0m\x1b[K\r\n\x1b[K\r\nthree\x1b[K\x1b[J"
	apptest.Until(t, "the frame is shown", func() (bool, any) {
		// the terminal itself adds a carriage return to a new line
		text := strings.ReplaceAll(p.shown(), "\r\r", "\r")
		return strings.Contains(text, want), text
	})
}

// TestScreenWithoutKeys: a screen without a keyboard, and a screen that cannot be closed.
func TestScreenWithoutKeys(t *testing.T) {
	p := newTerminal(t, 90, 30)
	file := must.Get(os.Create(filepath.Join(t.TempDir(), "keys")))(t)
	defer file.Close()
	if animates(file, os.Getenv) || OnTerminal(file) {
		t.Error("a file is taken for a terminal")
	}
	if animates(p.end, func(string) string { return "dumb" }) {
		t.Error("a dumb terminal is drawn over")
	}
	s := must.Get(openScreen(file, p.end, false))(t)
	if err := s.close(); err != nil {
		t.Error(err)
	}
	closed := must.Get(os.Create(filepath.Join(t.TempDir(), "closed")))(t)
	closed.Close()
	before := p.modes(t)
	if _, err := openScreen(p.end, closed, false); err == nil {
		t.Error("opened on a closed file")
	}
	if after := p.modes(t); after != before {
		t.Errorf("modes afterwards %+v, want %+v", after, before)
	}
}
