package installation

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"posttrade/app/apptest"
	"posttrade/app/engine"
	"posttrade/journal"
	"posttrade/journal/journaltest"
	"posttrade/matcher/desk"
	"posttrade/ring/must"
)

// slowEdge is an edge with requests that never end by themselves.
type slowEdge struct {
	asked chan time.Duration // since begun, with room for one
	begun time.Time
	err   error // result of Shutdown at once; nil: it waits for the end of ctx
}

func newSlowEdge() *slowEdge {
	return &slowEdge{asked: make(chan time.Duration, 1), begun: time.Now()}
}

func (*slowEdge) Serve(net.Listener) error { return nil }

func (e *slowEdge) Shutdown(ctx context.Context) error {
	e.asked <- time.Since(e.begun)
	if e.err != nil {
		return e.err
	}
	<-ctx.Done()
	return ctx.Err()
}

// TestEdgesEndAtOnce: no edge waits for the requests of another one, and edges that do not end are
// named.
func TestEdgesEndAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first, last := newSlowEdge(), newSlowEdge()
		l := listeners{open: []listening{{name: "order-matcher", edge: first},
			{name: "admin", edge: last}}}
		ctx, cancel := context.WithTimeout(t.Context(), shutdownTimeout)
		defer cancel()
		err := l.shutdown(ctx)
		for name, e := range map[string]*slowEdge{"order-matcher": first, "admin": last} {
			if late := <-e.asked; late != 0 {
				t.Errorf("%s was asked to end after %v, want at once", name, late)
			}
			if want := name + ": " + context.DeadlineExceeded.Error(); err == nil ||
				!strings.Contains(err.Error(), want) {
				t.Errorf("error %v, want one with %q", err, want)
			}
		}
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error %v, want %v", err, context.DeadlineExceeded)
		}
	})
}

// lateRequest submits a command as a request does that has outlived its listener, and reads the
// memory that a stop unmaps.
func lateRequest(in *Installation) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("a fault: %v", cause)
		}
	}()
	in.Core.In.ClaimN(1)
	in.Core.Views.Accounts()
	_, err = in.Core.Desk.Acquire(1)
	return err
}

var errStuck = errors.New("stuck")

// TestStopLeavesMemoryToWhoIsLate stops an installation while one of its edges still has a request:
// the memory that the request uses stays mapped, and the desk is closed.
func TestStopLeavesMemoryToWhoIsLate(t *testing.T) {
	c := apptest.Settled(t, append(anyPorts(t.TempDir()), "sidecars.enabled", "false")...)
	in, err := Open(t.Context(), c, EngineOptions(c), slog.New(slog.DiscardHandler))
	must.OK(t, err)
	stuck := newSlowEdge()
	stuck.err = errStuck
	in.listeners.open = append(in.listeners.open, listening{name: "stuck", edge: stuck})
	ticket, err := in.Core.Desk.Acquire(1) // its holder is about to submit
	must.OK(t, err)
	if err := in.Stop(); !errors.Is(err, errStuck) || !strings.Contains(err.Error(), "stuck: ") {
		t.Errorf("stop: %v, want %v", err, errStuck)
	}
	if err := lateRequest(in); !errors.Is(err, desk.ErrClosed) {
		t.Errorf("late: %v, want %v", err, desk.ErrClosed)
	} else if err := ticket.Submit(); !errors.Is(err, desk.ErrClosed) {
		t.Errorf("submit: %v, want %v", err, desk.ErrClosed)
	}
	in.Core.Discard()
}

// TestMemoryStaysBehindAFailedJournal: after a failure of the disk the journal's committer is not
// waited for, so what it may use stays mapped; without one it is given back.
func TestMemoryStaysBehindAFailedJournal(t *testing.T) {
	for _, fails := range []bool{false, true} {
		var bad atomic.Bool
		o := EngineOptions(apptest.Settled(t, anyPorts(t.TempDir())...))
		o.Fatal = func(error) {}
		o.OnDisk = func(j *journal.Options) {
			j.FS = journaltest.Disk(func(op journaltest.Op) error {
				if op.Write && bad.Load() {
					return syscall.EIO
				}
				return nil
			})
		}
		k := must.Get(engine.Open(o))(t)
		bad.Store(fails)
		if err := k.Stop(); errors.Is(err, journal.ErrPoisoned) != fails {
			t.Errorf("the disk fails: %v, the stop says %v", fails, err)
		}
		for i, r := range k.Regions {
			if mapped := len(r.Bytes()) > 0; mapped != fails {
				t.Errorf("the disk fails: %v, region %d is mapped: %v", fails, i, mapped)
			}
		}
	}
}

// TestCoreEndsBehindAClosedDesk: when the matcher no longer decides, the desk takes no command.
func TestCoreEndsBehindAClosedDesk(t *testing.T) {
	k := feedCore(t, t.TempDir())
	looked := false
	k.BeforeDiscard = func() {
		looked = true
		if _, err := k.Desk.Acquire(1); !errors.Is(err, desk.ErrClosed) {
			t.Errorf("acquire: %v, want %v", err, desk.ErrClosed)
		}
	}
	if err := k.Stop(); err != nil || !looked {
		t.Errorf("stop: %v, looked %v", err, looked)
	}
}

// TestRestartTellsWhatWentWrong: the error of a stop is not lost when the installation is opened
// again.
func TestRestartTellsWhatWentWrong(t *testing.T) {
	for _, tt := range []struct {
		err   error
		again bool
		says  []string
	}{
		{nil, false, nil},
		{errStuck, false, nil},
		{errRestart, true, []string{errRestart.Error()}},
		{errors.Join(errRestart, errStuck), true, []string{errRestart.Error(), errStuck.Error()}},
	} {
		var log strings.Builder
		again := restarts(tt.err, slog.New(slog.NewTextHandler(&log, nil)))
		if again != tt.again || (log.Len() > 0) != tt.again {
			t.Errorf("%v: again %v, logged %q", tt.err, again, log.String())
		}
		for _, want := range tt.says {
			if !strings.Contains(log.String(), want) {
				t.Errorf("%v: logged %q, want %q", tt.err, log.String(), want)
			}
		}
	}
}
