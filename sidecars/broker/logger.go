package broker

import (
	"fmt"
	"log/slog"
	"sync"
)

// serverLog passes the embedded server's log lines to slog. The server's notices are debug lines
// here. A fatal error is kept for State and ends nothing: the server returns from its start instead
// of exiting the process.
//
// The server logs from its own goroutines.
type serverLog struct {
	log *slog.Logger
	mu  sync.Mutex
	// fatal is the first fatal error; nil for none. mu guards it.
	fatal error
}

func (l *serverLog) Noticef(format string, v ...any) {
	l.log.Debug("nats: " + fmt.Sprintf(format, v...))
}

// The server writes debug and trace lines only when it is asked to, which start does not.
func (l *serverLog) Debugf(string, ...any) {}
func (l *serverLog) Tracef(string, ...any) {}

func (l *serverLog) Warnf(format string, v ...any) {
	l.log.Warn("nats: " + fmt.Sprintf(format, v...))
}

func (l *serverLog) Errorf(format string, v ...any) {
	l.log.Error("nats: " + fmt.Sprintf(format, v...))
}

// The server's own logger would exit the process here.
func (l *serverLog) Fatalf(format string, v ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.fatal == nil {
		l.fatal = fmt.Errorf(format, v...)
	}
}

// failure returns what Fatalf has kept. start reads it after the server's Start has returned.
func (l *serverLog) failure() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.fatal
}
