package installation

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"posttrade/app/apptest"
	"posttrade/app/settings"
	"posttrade/journal/quorum"
	"posttrade/ring/must"
	"posttrade/ring/waittest"
)

// A member that is started on a disk that the cluster has replaced ends with the code of a refused
// start and a line that says what to do. The cluster goes on, and the new disk comes back.
func TestAReplacedDiskIsRefused(t *testing.T) {
	c := newThree(t)
	c.start()
	c.trade(9)
	at := (c.leader() + 1) % 3
	m := c.members[at]
	m.stop()
	old := m.data
	m.data = filepath.Join(t.TempDir(), "data")
	m.start()
	apptest.Until(t, "the new disk votes", func() (bool, any) {
		in := m.open()
		return in != nil && len(in.Member.Node.Voteless()) == 0, m.log.String()
	})
	must.OK(t, writePorts(filepath.Join(m.data, "ports.json"), m.open().listeners.addresses()))
	program(t, "health", "--vote", "--data.dir="+m.data)
	m.stop()

	log := &waittest.Log{}
	s := apptest.Settled(t, append(anyPorts(old), m.settings...)...)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	err := serve(ctx, s, EngineOptions(s), slog.New(slog.NewTextHandler(log, nil)), io.Discard,
		nil)
	if code := settings.Exit(io.Discard, err); !errors.Is(err, quorum.ErrReplaced) ||
		code != settings.ExitFailed {
		t.Errorf("exit %d: %v", code, err)
	}
	if said := log.String(); !strings.Contains(said, "code=CLUSTER_REPLACED") {
		t.Errorf("the log: %s", said)
	}
	m.start()
	m.awaitOpen()
	c.trade(9)
}
