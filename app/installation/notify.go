package installation

import (
	"log/slog"
	"strings"
	"time"

	"posttrade/app/engine"
	"posttrade/app/systemd"
)

// heartbeat tells systemd that the engine makes progress, at every tick. Without progress it says
// nothing, and systemd ends and starts the process when that has lasted too long.
//
// One goroutine, the one in run, owns what the last look has found.
type heartbeat struct {
	k      *engine.Engine
	depth  func() int // commands that wait for the matcher; nil: those of k's ring
	notify *systemd.Notifier
	log    *slog.Logger

	// The last commands of matcher and recorder at the last look.
	decided, recorded uint64
	// The last look found no progress, and the log has said so.
	silent bool
}

// run looks at every tick until stop is closed.
func (h *heartbeat) run(tick <-chan time.Time, stop <-chan struct{}) error {
	for {
		select {
		case <-tick:
			h.look()
		case <-stop:
			return nil
		}
	}
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

// tell gives systemd one state. What it does not receive must not stop the server.
//
// It blocks for the time of one datagram.
func (h *heartbeat) tell(states ...string) {
	if err := h.notify.Tell(states...); err != nil {
		h.log.Warn("systemd was not told", "state", strings.Join(states, " "), "error", err)
	}
}

// tellReady tells systemd that the server serves, and begins the heartbeat that it asks for. The
// returned function says that the server stops.
//
// The heartbeat comes three times in the interval that the service manager allows, so that one
// that is late does no harm. Outside systemd nothing happens, and stopping is empty.
func (in *Installation) tellReady(log *slog.Logger) (stopping func()) {
	notify, err := systemd.FromEnvironment()
	if err != nil {
		log.Warn("systemd's watchdog is off", "error", err)
	}
	if notify == nil {
		return func() {}
	}
	h := &heartbeat{k: in.Core, notify: notify, log: log}
	h.tell("READY=1")
	if every := notify.Watchdog() / 3; every > 0 {
		in.watching.start("heartbeat", every, h.run)
	}
	return func() { h.tell("STOPPING=1") }
}
