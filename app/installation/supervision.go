package installation

import (
	"context"
	"log/slog"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"posttrade/app/engine"
	"posttrade/app/settings"
	"posttrade/app/systemd"
)

// supervision tells systemd how the process is, from its begin to its stop: it opens an
// installation, serves, opens another one in place (errRestart), stops.
//
// While it opens one, which takes as long as a recovery or a transfer from the leader, each look
// asks systemd for more time, and renews the file by which `posttrade health --live` sees the same
// (Starting). While it serves, the engine's progress decides (heartbeat).
type supervision struct {
	notify *systemd.Notifier // nil outside systemd
	log    *slog.Logger
	file   string // startingFile in data.dir

	mu      sync.Mutex // held during a look: behind serves no look reads the engine before
	serving *heartbeat // nil: an installation is being opened

	ended   chan struct{}
	looking sync.WaitGroup
}

const (
	// startingFile is there while an installation is opened. Its time is that of the last look.
	startingFile = "starting"
	// moreTime is what a look asks for, and how old the file of a process that is alive can be. It is
	// some times lookEvery, so that a look that is late does no harm.
	moreTime  = time.Minute
	lookEvery = 10 * time.Second
)

// newSupervision is a supervision without looks: begin has them made.
func newSupervision(c *settings.Config, log *slog.Logger) *supervision {
	notify, err := systemd.FromEnvironment()
	if err != nil {
		log.Warn("systemd's watchdog is off", "error", err)
	}
	return &supervision{notify: notify, log: log, file: c.InDataDir(startingFile),
		ended: make(chan struct{})}
}

// begin has a look made at once, and three times in the interval that the service manager allows,
// until stops, or the end of ctx while an installation is opened: the manager's own time limit of a
// stop holds then.
func (s *supervision) begin(ctx context.Context) {
	every := lookEvery
	if s.notify != nil && s.notify.Watchdog() > 0 {
		every = min(every, s.notify.Watchdog()/3)
	}
	s.looking.Go(func() {
		ticker := time.NewTicker(every)
		defer ticker.Stop()
		for {
			if s.look(); ctx.Err() != nil {
				return
			}
			select {
			case <-ticker.C:
			case <-ctx.Done():
				return
			case <-s.ended:
				return
			}
		}
	})
}

// look tells systemd of progress, or that the process needs more time.
func (s *supervision) look() {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.serving == nil:
		// without a data.dir there is nothing to recover: the file comes with the next look
		_ = os.WriteFile(s.file, nil, 0o600)
		s.tell("WATCHDOG=1", "EXTEND_TIMEOUT_USEC="+strconv.FormatInt(moreTime.Microseconds(), 10))
	case s.notify != nil && s.notify.Watchdog() > 0:
		s.serving.look()
	}
}

// serves tells systemd that the installation with that engine serves.
func (s *supervision) serves(k *engine.Engine) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.serving = &heartbeat{k: k, tell: s.tell, log: s.log}
	_ = os.Remove(s.file) // at worst health --live says "starting" for a minute more
	s.tell("READY=1")
}

// opensAgain is called before an installation that is to be opened again stops. Behind it no look
// reads the engine.
func (s *supervision) opensAgain() {
	s.mu.Lock()
	s.serving = nil
	s.mu.Unlock()
	s.look()
}

// stops tells systemd that the process stops, once it has served, and ends the looks.
func (s *supervision) stops() {
	close(s.ended)
	s.looking.Wait()
	_ = os.Remove(s.file)
	if s.serving != nil {
		s.tell("STOPPING=1")
	}
}

// tell gives systemd states. What it does not receive must not stop the server.
//
// It blocks for the time of one datagram.
func (s *supervision) tell(states ...string) {
	if s.notify == nil {
		return
	}
	if err := s.notify.Tell(states...); err != nil {
		s.log.Warn("systemd was not told", "state", strings.Join(states, " "), "error", err)
	}
}

// Starting reports that a process is opening an installation on data.dir. It has no listener yet,
// or none between two installations.
func Starting(c *settings.Config, now time.Time) bool {
	info, err := os.Stat(c.InDataDir(startingFile))
	return err == nil && now.Sub(info.ModTime()) < moreTime
}

// heartbeat tells systemd that the engine makes progress, at every look. Without progress it says
// nothing, and systemd ends and starts the process when that has lasted too long.
//
// The lock of supervision guards what the last look has found.
type heartbeat struct {
	k     *engine.Engine
	depth func() int // commands that wait for the matcher; nil: those of k's ring
	tell  func(states ...string)
	log   *slog.Logger

	// The last commands of matcher and recorder at the last look.
	decided, recorded uint64
	// The last look found no progress, and the log has said so.
	silent bool
}

// look tells systemd of progress, or logs once that there is none. Progress after a silence is
// told again: systemd counts from the last WATCHDOG=1.
func (h *heartbeat) look() {
	if !h.alive() {
		if !h.silent {
			h.log.Error("the engine makes no progress: systemd is told nothing more")
		}
		h.silent = true
		return
	}
	h.silent = false
	h.tell("WATCHDOG=1")
}

// alive reports that matcher and recorder have moved since the last look, or had nothing to do. A
// disk that does not come back holds them up too; a restart would not mend it, so it counts as
// alive, and /readyz names the disk.
//
// It changes what the next call compares with, so only look calls it. A full disk counts as alive,
// too: orders are refused then, and reads go on.
func (h *heartbeat) alive() bool {
	decided, recorded := h.k.Stage.Applied(), h.k.Journal.Applied()
	moved := decided != h.decided || recorded != h.recorded
	waiting := h.depth
	if waiting == nil {
		waiting = h.k.In.Depth
	}
	idle := waiting() == 0 && recorded >= decided
	h.decided, h.recorded = decided, recorded
	return moved || idle || h.k.Journal.Disk().Slow() || h.k.Journal.StorageFull()
}
