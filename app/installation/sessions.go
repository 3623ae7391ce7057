package installation

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"posttrade/app/engine"
	"posttrade/app/settings"
	"posttrade/matcher/session"
)

// sessions opens shared-memory order entry over an engine, as the settings say; nil: off.
//
// The function is called once by the engine, when gate, desk and views are there. Errors are those
// of the secrets and of the socket; they refuse the start. Sessions check tokens with a verifier
// of their own, which readSecrets renews through the server.
func sessions(c *settings.Config) func(*engine.Engine) (*session.Server, error) {
	socket := c.String("session.socket")
	if socket == "" {
		return nil
	}
	return func(k *engine.Engine) (*session.Server, error) {
		verifier, err := newVerifier(c, k.Gate)
		if err != nil {
			return nil, err
		}
		// A socket lets any local process of its mode connect: the folder is for this user alone.
		if err := os.MkdirAll(filepath.Dir(socket), 0o700); err != nil {
			return nil, fmt.Errorf("session.socket: %w", err)
		}
		return session.Open(session.Options{
			Decider: AdmissionOf(c, k), Socket: socket, Desk: k.Desk, Verifier: verifier,
			Clock:   func() int64 { return time.Now().UnixMilli() },
			Durable: k.Watermark.Durable, Seen: func() uint64 { return k.Stage.Applied() },
			Idle: k.Options.Idle, Quota: c.Int("session.quota"),
			MaxSessions: c.Int("session.max-sessions"),
			Logger:      k.Options.Log,
		})
	}
}
