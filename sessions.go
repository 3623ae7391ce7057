package main

import (
	"log/slog"
	"os"
	"time"

	"posttrade/matcher/session"
)

// sessions opens shared-memory order entry over a core, as the settings say; nil: off.
func (c *config) sessions() func(*core) (*session.Server, error) {
	socket := c.String("session.socket")
	if socket == "" {
		return nil
	}
	return func(k *core) (*session.Server, error) {
		verifier, err := c.verifier()
		if err != nil {
			return nil, err
		}
		return session.Open(session.Options{
			Socket: socket, Gate: k.gate, Desk: k.desk, Views: k.views, Verifier: verifier,
			Clock:   func() int64 { return time.Now().UnixMilli() },
			Durable: k.watermark.Durable, Seen: func() uint64 { return k.stage.Applied() },
			StorageFull: k.closedToSessions, Failed: k.journal.Err,
			Enforced: c.Bool("risk.entitlement.enforced"), SequenceRefusals: c.Bool("audit.sequence-refusals"),
			Idle: k.o.idle, Quota: c.Int("session.quota"), MaxSessions: c.Int("session.max-sessions"),
			Logger: slog.New(slog.NewTextHandler(os.Stderr, nil)),
		})
	}
}
