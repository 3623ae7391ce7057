package quorum

import (
	"context"
	"io"
	"log/slog"

	"github.com/hashicorp/go-hclog"
)

// quietLogger passes the library's warnings and errors to the program's log, and its other messages
// at the debug level only. The level is looked up once: a later change of the program's level does
// not reach the library.
func quietLogger(log *slog.Logger) hclog.Logger {
	level := hclog.Warn
	if log.Enabled(context.Background(), slog.LevelDebug) {
		level = hclog.Debug
	}
	l := hclog.NewInterceptLogger(&hclog.LoggerOptions{Output: io.Discard, Level: level})
	l.RegisterSink(slogSink{log})
	return l
}

// slogSink writes the library's lines as the program's, with the word cluster before them. Any
// goroutine.
type slogSink struct{ log *slog.Logger }

func (s slogSink) Accept(_ string, level hclog.Level, text string, args ...any) {
	to := slog.LevelDebug
	switch {
	case level >= hclog.Error:
		to = slog.LevelError
	case level == hclog.Warn:
		to = slog.LevelWarn
	}
	s.log.Log(context.Background(), to, "cluster: "+text, args...)
}
