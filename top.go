package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// The paces of posttrade top.
const (
	topInterval    = time.Second
	minTopInterval = statsEvery
	maxTopInterval = time.Hour
)

// runTop is `posttrade top`.
func runTop(args []string, stdout, stderr io.Writer) int {
	f := newFlags("top [--once] [--interval=1s] [flags]",
		"Shows what the server on data.dir is doing, from the figures that it writes there every 100 ms: no request is made.\n"+
			"Rates and percentiles are of the time between two looks; a percentile is the upper bound of its bucket, a mean wait\n"+
			"is how many commands were in a stage by how many left it. q or ctrl-c ends. Without a terminal the frames follow one\n"+
			"another as plain text. NO_COLOR turns colours off. Without a running server there is one line, and exit code 1.")
	once := f.Bool("once", false, "print one frame, of one interval, and end")
	interval := f.Duration("interval", topInterval, "`time` between two looks, 100ms..1h")
	c, err := f.read(args, 0, stdout)
	if err != nil {
		return exit(stderr, err)
	}
	if *interval < minTopInterval || *interval > maxTopInterval {
		return exit(stderr, usagef("flag --interval: %v is not within %v..%v", *interval, minTopInterval, maxTopInterval))
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	t := &top{path: c.inDataDir("stats"), interval: *interval, now: time.Now}
	if *once {
		return exit(stderr, t.once(ctx, stdout))
	}
	return exit(stderr, t.live(ctx, os.Stdin, stdout))
}

// errNotRunning reports figures that nobody writes any more.
var errNotRunning = errors.New("the server is not running")

// top looks at a stats file again and again. It opens the file for every look, so
// that it sees a server that was started again, and holds nothing in between.
type top struct {
	path     string
	interval time.Duration
	now      func() time.Time
	before   *topLook // the look before last; nil: none
	after    *topLook
}

// look takes the figures. One line says why there are none.
func (t *top) look() error {
	l, err := t.read()
	if err != nil {
		return fmt.Errorf("top: look at %s: %w", t.path, err)
	}
	t.before, t.after = t.after, l
	return nil
}

func (t *top) read() (_ *topLook, err error) {
	file, err := openStats(t.path)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, file.close()) }()
	l := &topLook{}
	torn := file.load(&l.image)
	if l.alive, err = file.alive(); err != nil {
		return nil, err
	}
	l.at = t.now()
	if !l.alive {
		return nil, whyGone(l)
	}
	return l, torn
}

// whyGone says since when a process does not write any more.
func whyGone(l *topLook) error {
	how := "and did not stop in order"
	if l.image.Clock.Stopped != 0 {
		how = "and stopped in order"
	}
	return fmt.Errorf("%w: pid %d wrote its last figures %v ago %s",
		errNotRunning, l.image.Header.PID, l.age().Round(statsEvery), how)
}

// frame is what there is to show, on so many columns.
func (t *top) frame(width int) frame { return topFrame(t.before, t.after, width) }

// plainWidth is what bars take for a page of text.
const plainWidth = 100

// once prints the frame of one interval.
func (t *top) once(ctx context.Context, stdout io.Writer) error {
	if err := t.look(); err != nil {
		return err
	}
	select {
	case <-ctx.Done():
		return nil
	case <-time.After(t.interval):
	}
	if err := t.look(); err != nil {
		return err
	}
	_, err := io.WriteString(stdout, t.frame(plainWidth).text(false))
	return err
}

// display is where frames are shown.
type display interface {
	size() (columns, rows int) // rows 0: no bound
	show(frame) error
}

// live shows frames on stdout until somebody ends it. The terminal is as before
// when it returns, whatever it returns.
func (t *top) live(ctx context.Context, stdin *os.File, stdout io.Writer) (err error) {
	if err := t.look(); err != nil {
		return err
	}
	ticker := time.NewTicker(t.interval)
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
	signal.Notify(resized, syscall.SIGWINCH)
	defer signal.Stop(resized)
	return t.follow(ctx, screen, ticker.C, resized, screen.keys)
}

// follow shows what there is now, at every tick what there is then, and the same
// again when the screen's size has changed.
func (t *top) follow(ctx context.Context, d display, tick <-chan time.Time, resized <-chan os.Signal, keys <-chan byte) error {
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

const ctrlC = 3

// pages shows frames one after another, as text without a bound.
type pages struct{ out io.Writer }

func (p pages) size() (columns, rows int) { return plainWidth, 0 }

func (p pages) show(f frame) error {
	_, err := io.WriteString(p.out, f.text(false)+"\n")
	return err
}
