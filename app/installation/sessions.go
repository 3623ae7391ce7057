package installation

import (
	"log/slog"
	"os"
	"time"

	"posttrade/app/engine"
	"posttrade/app/settings"
	"posttrade/matcher/session"
)

// sessions opens shared-memory order entry over an engine, as the settings say; nil: off.
func sessions(c *settings.Config) func(*engine.Engine) (*session.Server, error) {
	socket := c.String("session.socket")
	if socket == "" {
		return nil
	}
	return func(k *engine.Engine) (*session.Server, error) {
		verifier, err := verifier(c)
		if err != nil {
			return nil, err
		}
		return session.Open(session.Options{
			Socket: socket, Gate: k.Gate, Desk: k.Desk, Views: k.Views, Verifier: verifier,
			Clock:   func() int64 { return time.Now().UnixMilli() },
			Durable: k.Watermark.Durable, Seen: func() uint64 { return k.Stage.Applied() },
			StorageFull: func() bool { return closedToSessions(k) }, Failed: k.Journal.Err,
			Enforced:         c.Bool("risk.entitlement.enforced"),
			SequenceRefusals: c.Bool("audit.sequence-refusals"),
			Idle:             k.Options.Idle, Quota: c.Int("session.quota"),
			MaxSessions: c.Int("session.max-sessions"),
			Logger:      slog.New(slog.NewTextHandler(os.Stderr, nil)),
		})
	}
}
