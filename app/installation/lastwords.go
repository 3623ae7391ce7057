package installation

import (
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"sync"
	"time"

	"posttrade/app/settings"
)

// journalGrace is the time in which waiting callers are told that the journal has failed, before
// the process ends.
const journalGrace = 100 * time.Millisecond

// LastWords is the error stream of a server. Its disk may fail in several places at once: in the
// journal, in a member's consensus log, in both. The first failure writes the last line, and the
// process ends with it, exit code 1, whatever else ends meanwhile.
type LastWords struct {
	mu    sync.Mutex
	w     io.Writer // guarded by mu
	ended bool      // guarded by mu
	json  bool      // the last line is a record of a JSON log; constant once there is a log
	end   func(code int)
}

func NewLastWords(stderr io.Writer) *LastWords { return &LastWords{w: stderr, end: os.Exit} }

// Write drops everything after the last line: further failures are consequences of the first.
func (l *LastWords) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended {
		return len(p), nil
	}
	return l.w.Write(p)
}

// said reports that the last line has been written.
func (l *LastWords) said() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.ended
}

// Failed is fail-stop. The waiting callers have been told; failed writes one line that says why and
// ends the process. Nothing more is promised. It does not return: a second caller waits for the end
// of the process.
func (l *LastWords) Failed(err error) {
	if l.last(err) {
		time.Sleep(journalGrace)
		l.end(settings.ExitFailed)
	}
	select {}
}

// last writes the reason, unless the last line has been written already.
func (l *LastWords) last(err error) (first bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended {
		return false
	}
	l.ended = true
	line := strings.Join(strings.Fields(err.Error()), " ")
	if l.json {
		slog.New(slog.NewJSONHandler(l.w, nil)).Error("journal failed, stopping", "error", line)
		return true
	}
	fmt.Fprintf(l.w, "posttrade: journal failed, stopping: %s\n", line)
	return true
}
