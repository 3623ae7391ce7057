package installation

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"sync"
	"time"

	"posttrade/app/engine"
	"posttrade/app/settings"
)

// journalGrace is the time in which waiting callers are told that the journal has failed, before
// the process ends.
//
// The answers are written by other goroutines, which cannot be waited for when the disk hangs.
const journalGrace = 100 * time.Millisecond

// FatalStderr is the error stream of a server. Its disk may fail in several places at once: in the
// journal, in a member's consensus log, in both; and a thread of the engine may fail. The first
// failure writes the last line, and the process ends with it, exit code 1, whatever else ends
// meanwhile.
//
// Any goroutine may call its methods.
type FatalStderr struct {
	mu    sync.Mutex
	w     io.Writer // guarded by mu
	ended bool      // guarded by mu
	// The last line is a record of a JSON log. ServeToTheEnd sets it before the log is made.
	json bool
	// os.Exit; tests have another one.
	end func(code int)
}

// NewFatalStderr returns the error stream over stderr. ServeToTheEnd gives it to the log, too.
func NewFatalStderr(stderr io.Writer) *FatalStderr { return &FatalStderr{w: stderr, end: os.Exit} }

// Write drops everything after the last line: further failures are consequences of the first.
//
// A dropped write is no error: it reports len(p), so that a logger does not fail. Each call holds
// the lock for one write to stderr.
func (l *FatalStderr) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended {
		return len(p), nil
	}
	return l.w.Write(p)
}

// hasEnded reports that the last line has been written.
func (l *FatalStderr) hasEnded() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.ended
}

// Failed is fail-stop. The waiting callers have been told; Failed writes one line that says why
// and ends the process with exit code 1. Nothing more is promised. It does not return: a second
// caller waits for the end of the process. It is Options.Fatal of the engine and of a member's
// node.
func (l *FatalStderr) Failed(err error) {
	if l.last(err) {
		time.Sleep(journalGrace)
		l.end(settings.ExitFailed)
	}
	select {}
}

// last writes the reason, unless the last line has been written already.
//
// The line is one line whatever err has: white space becomes single blanks.
func (l *FatalStderr) last(err error) (first bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended {
		return false
	}
	l.ended = true
	what := "journal"
	if errors.Is(err, engine.ErrEnded) {
		what = "engine"
	}
	line := strings.Join(strings.Fields(err.Error()), " ")
	if l.json {
		slog.New(slog.NewJSONHandler(l.w, nil)).Error(what+" failed, stopping", "error", line)
		return true
	}
	fmt.Fprintf(l.w, "posttrade: %s failed, stopping: %s\n", what, line)
	return true
}
