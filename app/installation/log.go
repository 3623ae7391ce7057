package installation

import (
	"io"
	"log/slog"

	"posttrade/app/settings"
)

// leveled is the handler of a log whose level can be changed.
//
// A change of the level affects every logger that was derived from it.
type leveled struct {
	slog.Handler
	level *slog.LevelVar
}

// newLog is the log of a server, in the form that the settings say.
//
// from is the least level. w gets one write a line.
func newLog(c *settings.Config, w io.Writer, from slog.Level) *slog.Logger {
	h := leveled{level: &slog.LevelVar{}}
	h.level.Set(from)
	o := &slog.HandlerOptions{Level: h.level}
	if h.Handler = slog.NewTextHandler(w, o); logsJSON(c) {
		h.Handler = slog.NewJSONHandler(w, o)
	}
	return slog.New(h)
}

// levelOf is the level of a log that newLog has made, nil for another one: its level stays.
//
// A program that opens an installation with a log of its own keeps its level.
func levelOf(log *slog.Logger) *slog.LevelVar {
	h, _ := log.Handler().(leveled)
	return h.level
}

func logsJSON(c *settings.Config) bool { return c.String("log.format") == "json" }

// logStart writes the first line: what runs here, and every setting that is not the default. It is
// written whatever the level is.
//
// Secrets are masked: see settings.Config.Differing.
func logStart(c *settings.Config, w io.Writer) {
	b := settings.ReadBuild()
	newLog(c, w, slog.LevelInfo).Info("starting", "version", settings.Release, "commit", b.Commit,
		"go", b.Go, "platform", b.Platform, "profile", c.String("profile"),
		slog.GroupAttrs("settings", c.Differing()...))
}
