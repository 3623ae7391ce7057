package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"posttrade/app/settings"
)

// journalGrace is how long callers who wait get to hear that the journal has
// failed, before the process ends.
const journalGrace = 100 * time.Millisecond

// lastWords is the error stream of a server. Its disk may fail in several places at once:
// in the journal, in the consensus log of a member, in both. The first failure has the last
// word, one line, and the process ends with it, exit 1, whatever else ends meanwhile.
type lastWords struct {
	mu    sync.Mutex
	w     io.Writer // guarded by mu
	ended bool      // guarded by mu
	end   func(code int)
}

func newLastWords(stderr io.Writer) *lastWords { return &lastWords{w: stderr, end: os.Exit} }

// Write drops what comes after the last word: that much else fails then is no news.
func (l *lastWords) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended {
		return len(p), nil
	}
	return l.w.Write(p)
}

// said reports that the last word has been said.
func (l *lastWords) said() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.ended
}

// failed is fail-stop: the waiting callers have been told, one line says why, the
// process ends. Nothing more is promised. It does not return; who comes second waits
// for the end of the process.
func (l *lastWords) failed(err error) {
	if l.last(err) {
		time.Sleep(journalGrace)
		l.end(settings.ExitFailed)
	}
	select {}
}

// last says why, if nothing has been said yet.
func (l *lastWords) last(err error) (first bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended {
		return false
	}
	l.ended = true
	line := strings.Join(strings.Fields(err.Error()), " ")
	fmt.Fprintf(l.w, "posttrade: journal failed, stopping: %s\n", line)
	return true
}
