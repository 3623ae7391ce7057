package perf

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"posttrade/ring"
)

// standstills are the times, in their order, in which the machine ran no thread on any of its
// cores, as far as a watcher can see: the hypervisor had taken all of them away. A machine with a
// share of its host's processor time stands still when it has used that up, for tens of
// milliseconds. No thread, whatever its priority, can be faster then.
type standstills []span

// longest is the length of the longest one, 0 for none.
func (s standstills) longest() (d time.Duration) {
	for _, still := range s {
		d = max(d, still.to.Sub(still.from))
	}
	return d
}

// within is how long the machine stood still between two moments.
func (s standstills) within(from, to time.Time) (d time.Duration) {
	for _, still := range s {
		begun, ended := still.from, still.to
		if begun.Before(from) {
			begun = from
		}
		if ended.After(to) {
			ended = to
		}
		d += max(ended.Sub(begun), 0)
	}
	return d
}

// metrics are the figures of a period: the share of its time in hundredths, and the longest one.
func (s standstills) metrics(from, to time.Time) []metric {
	return []metric{{100 * s.within(from, to).Seconds() / to.Sub(from).Seconds(), "stood-still-%"},
		{milliseconds(s.longest()), "longest-ms"}}
}

// The watcher looks at the clock on each core every stillNap. It calls a time without a look
// longer than stillFrom a standstill: a look of a thread with a real-time priority is never that
// late for another thread's sake.
const (
	stillNap  = 500 * time.Microsecond
	stillFrom = 2 * time.Millisecond
)

// looks are the looks at the clock on all cores. Any goroutine may look.
type looks struct {
	start time.Time    // constant
	last  atomic.Int64 // the newest look, in nanoseconds since start; it only rises
	mu    sync.Mutex   // guards found
	found standstills
}

// look notes a look at a moment since start. A look that comes here behind a newer one of another
// core ends no standstill: the newer one has.
func (l *looks) look(now time.Duration) {
	for {
		before := l.last.Load()
		if int64(now) <= before {
			return
		}
		if !l.last.CompareAndSwap(before, int64(now)) {
			continue
		}
		if since := time.Duration(before); before > 0 && now-since > stillFrom {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.found = append(l.found, span{l.start.Add(since), l.start.Add(now)})
		}
		return
	}
}

// WatchStandstills is the watcher, in a process of its own: in a process under load the Go
// scheduler would be in its figures. It watches until in ends, and then writes each standstill as
// two moments in nanoseconds of the Unix time. Where the system gives no real-time priority that is
// the error, at once.
func WatchStandstills(in io.Reader, out io.Writer) error {
	var (
		stop    atomic.Bool
		threads sync.WaitGroup
	)
	l := looks{start: time.Now()}
	cores := runtime.NumCPU()
	ready := make(chan error, cores)
	for cpu := range cores {
		threads.Go(func() {
			runtime.LockOSThread() // never unlocked: the thread ends with its priority
			err := errors.Join(ring.PinThread(cpu), realTime())
			ready <- err
			for err == nil && !stop.Load() {
				ring.Nap(int64(stillNap))
				l.look(time.Since(l.start))
			}
		})
	}
	var err error
	for range cores {
		err = errors.Join(err, <-ready)
	}
	if err == nil {
		fmt.Fprintln(out, "watching")
		_, err = io.Copy(io.Discard, in)
	}
	stop.Store(true)
	threads.Wait()
	for _, s := range l.found {
		fmt.Fprintln(out, s.from.UnixNano(), s.to.UnixNano())
	}
	return err
}

// watcher is a process that watches for standstills. The nil one watches nothing.
type watcher struct {
	cmd  *exec.Cmd
	stop io.Closer
	out  *bufio.Reader
}

// watchStandstills starts a watcher. Where it may not run at a real-time priority, the row says so
// and is measured without one.
func (r *Run) watchStandstills() (*watcher, error) {
	w := &watcher{cmd: exec.Command(r.o.Binary, "perf", "--standstills")}
	var refused bytes.Buffer
	w.cmd.Stderr = &refused
	in, err := w.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := w.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := start(w.cmd); err != nil {
		return nil, fmt.Errorf("start the watcher of standstills: %w", err)
	}
	w.stop, w.out = in, bufio.NewReader(out)
	if line, err := w.out.ReadString('\n'); err != nil || line != "watching\n" {
		_ = w.cmd.Wait() // its words say why
		r.note("standstills are not watched: " + string(bytes.TrimSpace(refused.Bytes())))
		return nil, nil
	}
	return w, nil
}

// end stops the watcher and returns what it has seen.
func (w *watcher) end() (found standstills, err error) {
	if w == nil {
		return nil, nil
	}
	if err := w.stop.Close(); err != nil {
		return nil, err
	}
	found, err = readStandstills(w.out)
	return found, errors.Join(err, w.cmd.Wait())
}

// readStandstills reads what WatchStandstills writes.
func readStandstills(in io.Reader) (found standstills, err error) {
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		var from, to int64
		if _, err := fmt.Sscan(lines.Text(), &from, &to); err != nil || to < from {
			return nil, fmt.Errorf("standstill %q: want two moments", lines.Text())
		}
		found = append(found, span{time.Unix(0, from), time.Unix(0, to)})
	}
	slices.SortFunc(found, func(a, b span) int { return a.from.Compare(b.from) })
	return found, lines.Err()
}
