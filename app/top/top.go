package top

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"time"

	"posttrade/app/stats"
)

// errNotRunning reports figures that no process writes any more.
//
// It is tested with errors.Is; the text around it says when the process has stopped.
var errNotRunning = errors.New("the server is not running")

// Screen looks at a stats file again and again. It opens the file for every reading and holds
// nothing open in between, so it notices a server that was started again.
//
// One goroutine uses it. Path, Interval and Now are set by the caller.
type Screen struct {
	// The stats file: data.dir/stats.
	Path string
	// The time between two readings. Below stats.Every some readings find the same figures.
	Interval time.Duration
	Now      func() time.Time
	before   *statsReading // the reading before last; nil: none
	// The last reading; nil before the first one.
	after *statsReading
}

// look reads the figures. When there are none, the error says why, in one line.
//
// After an error both readings stay as they were.
func (t *Screen) look() error {
	l, err := t.read()
	if err != nil {
		return fmt.Errorf("top: look at %s: %w", t.Path, err)
	}
	t.before, t.after = t.after, l
	return nil
}

func (t *Screen) read() (_ *statsReading, err error) {
	file, err := stats.OpenStats(t.Path)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	l := &statsReading{}
	torn := file.Load(&l.image)
	if l.alive, err = file.Alive(); err != nil {
		return nil, err
	}
	l.at = t.Now()
	if !l.alive {
		return nil, whyGone(l)
	}
	return l, torn
}

// whyGone says since when a process does not write any more.
//
// The file stays behind when its process ends, and has the last figures that it wrote.
func whyGone(l *statsReading) error {
	how := "and did not stop in order"
	if l.image.Clock.Stopped != 0 {
		how = "and stopped in order"
	}
	return fmt.Errorf("%w: pid %d wrote its last figures %v ago %s",
		errNotRunning, l.image.Header.PID, l.age().Round(stats.Every), how)
}

// frame is the frame to show, in so many columns.
func (t *Screen) frame(width int) frame { return compose(t.before, t.after, width) }

// plainWidth is the width that bars assume when the output is a page of text.
const plainWidth = 100

// Once prints the frame of one interval.
//
// It takes an interval: the first reading alone would only have rates since the start. When ctx
// ends first it prints nothing and returns nil.
func (t *Screen) Once(ctx context.Context, stdout io.Writer) error {
	if err := t.look(); err != nil {
		return err
	}
	select {
	case <-ctx.Done():
		return nil
	case <-time.After(t.Interval):
	}
	if err := t.look(); err != nil {
		return err
	}
	_, err := io.WriteString(stdout, t.frame(plainWidth).text(false))
	return err
}

// display shows frames.
//
// screen is one for a terminal, pages one for every other output.
type display interface {
	size() (columns, rows int) // rows 0: no bound
	show(frame) error
}

// Live shows frames on stdout until the user ends it or ctx ends. It restores the terminal before
// it returns, also with an error.
//
// The user ends it with q or Ctrl-C. An error is that of the first reading that fails, so it ends
// when the server does.
func (t *Screen) Live(ctx context.Context, stdin *os.File, stdout io.Writer) (err error) {
	if err := t.look(); err != nil {
		return err
	}
	ticker := time.NewTicker(t.Interval)
	defer ticker.Stop()
	out, ok := stdout.(*os.File)
	if !ok || !animates(out, os.Getenv) {
		return t.follow(ctx, pages{stdout}, ticker.C, nil, nil)
	}
	screen, err := openScreen(stdin, out, os.Getenv("NO_COLOR") == "")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, screen.close()) }()
	resized := make(chan os.Signal, 1)
	notifyResized(resized)
	defer signal.Stop(resized)
	return t.follow(ctx, screen, ticker.C, resized, screen.keys)
}

// follow shows the current figures at once and at every tick. It shows the same figures again when
// the size of the screen has changed.
//
// keys may be nil and may be closed: then none come, and it goes on.
func (t *Screen) follow(ctx context.Context, d display, tick <-chan time.Time,
	resized <-chan os.Signal, keys <-chan byte) error {
	for {
		columns, rows := d.size()
		if err := d.show(t.frame(columns).fit(columns, rows)); err != nil {
			return fmt.Errorf("top: show: %w", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case key, open := <-keys:
			if !open {
				keys = nil
			} else if key == 'q' || key == 'Q' || key == ctrlC {
				return nil
			}
		case <-resized:
		case <-tick:
			if err := t.look(); err != nil {
				return err
			}
		}
	}
}

// ctrlC is Ctrl-C as a key, from a terminal that does not turn it into a signal.
const ctrlC = 3

// pages shows frames one after another, as text without a bound.
type pages struct{ out io.Writer }

func (p pages) size() (columns, rows int) { return plainWidth, 0 }

func (p pages) show(f frame) error {
	_, err := io.WriteString(p.out, f.text(false)+"\n")
	return err
}
