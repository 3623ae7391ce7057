package installation

import (
	"io"
	"log/slog"

	"posttrade/app/settings"
)

// newLog is the log of a server, in the form and from the level that the settings say. The level
// can be changed while the server runs.
func newLog(c *settings.Config, w io.Writer) (*slog.Logger, *slog.LevelVar) {
	level := &slog.LevelVar{}
	level.Set(c.LogLevel())
	o := &slog.HandlerOptions{Level: level}
	if logsJSON(c) {
		return slog.New(slog.NewJSONHandler(w, o)), level
	}
	return slog.New(slog.NewTextHandler(w, o)), level
}

func logsJSON(c *settings.Config) bool { return c.String("log.format") == "json" }

// logStart writes the first line: what runs here, and every setting that is not the default. It is
// written whatever the level is.
func logStart(c *settings.Config, w io.Writer) {
	log, level := newLog(c, w)
	level.Set(slog.LevelInfo)
	b := settings.ReadBuild()
	log.Info("starting", "version", settings.Release, "commit", b.Commit, "go", b.Go,
		"platform", b.Platform, "profile", c.String("profile"),
		slog.GroupAttrs("settings", c.Differing()...))
}
