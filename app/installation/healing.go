package installation

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"posttrade/app/settings"
	"posttrade/httpapi"
	"posttrade/ring/metric"
)

// healing gives a member whose journal is damaged the leader's, without an operator's hand. It
// lets another member lead, then asks the leader to take its vote away, which shows every member
// that one is being replaced, and then starts again as a new disk. What it had is kept in a folder
// damaged-<n>.
//
// Only one member at a time can be without a vote, and none while another is not sound: see
// quorum.Node.Spare.
//
// Every step is repeated until it works, and each can be cut short by a crash: the state is in the
// consensus and in the file healing, not in memory.
type healing struct {
	// Set by startHealing and constant.
	in *Installation
	// The folder of data.dir.
	data string
	// The setting cluster.heal. When it is false, damage is shown and not healed; a journal that the
	// leader sends is still taken.
	on  bool
	log *slog.Logger

	// What it waits for, for /readyz; nil when there is nothing to heal. Its writer is the goroutine
	// of run.
	why atomic.Pointer[string]
	// Closed when the installation must be opened again; once guards the close.
	again chan struct{}
	once  sync.Once
	ended sync.WaitGroup
	stop  context.CancelFunc
}

// healPause is the time between two attempts.
const healPause = time.Second

// startHealing begins to look for damage.
//
// Two goroutines run until end: one waits for a journal that the leader sends on its own account,
// the other looks for damage that the scrub has found. Without a scrub no damage is looked for.
func startHealing(c *settings.Config, in *Installation, log *slog.Logger) *healing {
	ctx, cancel := context.WithCancel(context.Background())
	h := &healing{in: in, data: c.String("data.dir"), on: c.Bool("cluster.heal"), log: log,
		again: make(chan struct{}), stop: cancel}
	h.ended.Go(func() {
		select {
		case <-in.Member.Node.Restart():
			h.open()
		case <-ctx.Done():
		}
	})
	if h.on && in.scrubbing.scrub != nil {
		h.ended.Go(func() { h.run(ctx) })
	}
	return h
}

// open has the installation opened again.
//
// Both goroutines may call it. serveOnce ends then with errRestart.
func (h *healing) open() { h.once.Do(func() { close(h.again) }) }

// end waits for both goroutines. It must be called before the node closes: a step may be asking
// the leader.
func (h *healing) end() {
	h.stop()
	h.ended.Wait()
}

// run takes a step at every healPause while something is damaged. The reason why it waits is
// logged when it changes, and not at every attempt.
func (h *healing) run(ctx context.Context) {
	look := time.NewTicker(healPause)
	defer look.Stop()
	said := ""
	for {
		select {
		case <-look.C:
		case <-ctx.Done():
			return
		}
		if len(h.in.scrubbing.scrub.State().Damaged) == 0 {
			h.why.Store(nil)
			continue
		}
		done, err := h.step()
		if done {
			h.open()
			return
		}
		why := "the leader takes the vote away"
		if err != nil {
			why = err.Error()
		}
		if h.why.Store(&why); why != said {
			said = why
			h.log.Warn("the journal is damaged, and another is wanted of the leader", "waitsFor", why)
		}
	}
}

// step goes one step on; done is true when the next start is to be that of a new disk.
//
// The order of the checks is that of their cost for the cluster. First what this disk can tell
// alone: too many replacements, no space for the copy that is going to be sent, damage that has
// gone away. Then the leadership, then the vote. An error says what it waits for, and the step is
// tried again.
func (h *healing) step() (done bool, err error) {
	node := h.in.Member.Node
	if kept := keptIn(h.data); kept >= mostKept {
		return false, fmt.Errorf("%d damaged journals are in %s already: the disk", kept, h.data)
	}
	room, err := h.in.Core.Journal.RoomForCopy()
	if err != nil {
		return false, err
	}
	if len(h.in.scrubbing.scrub.Recheck()) == 0 {
		return false, errors.New("the damage could be read again; the next pass of the scrub decides")
	}
	switch {
	case node.Leads():
		h.log.Warn("the journal is damaged: the leadership goes to another member")
		return false, node.HandOver()
	case !node.Spared():
		return false, node.Spare(room)
	}
	folder := nextKept(h.data)
	h.log.Error("the journal is damaged: this member starts again as a new disk", "kept",
		filepath.Join(h.data, folder))
	return true, markHealing(h.data, folder)
}

// part is the healing on /readyz; none when there is nothing to heal.
//
// It is never ready while it is shown, and does not decide readiness: orders need no old block.
func (h *healing) part() []httpapi.Part {
	why := h.why.Load()
	if why == nil {
		return nil
	}
	return []httpapi.Part{{Name: "journal-heal", Beside: true, Detail: "waits for: " + *why}}
}

// metrics shows whether a journal is wanted, and how many damaged ones are kept.
func (h *healing) metrics(emit metric.Emit) {
	emit.Flag("svc_journal_heal_wanted",
		"1 while this member's journal is damaged and it wants the leader's.", h.why.Load() != nil)
	emit.Gauge("svc_journal_heal_kept",
		"Damaged journals of this member that have been replaced and are kept in data.dir.",
		float64(keptIn(h.data)))
}
