package waittest

import (
	"strings"
	"sync"
)

// Log is a log that a test reads while any goroutine writes it.
type Log struct {
	mu   sync.Mutex
	text strings.Builder
}

// Write implements io.Writer.
func (l *Log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

// String is all that was written.
func (l *Log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// Count is how often a text was written.
func (l *Log) Count(text string) int { return strings.Count(l.String(), text) }
