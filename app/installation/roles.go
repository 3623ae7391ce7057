package installation

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// roles passes on whether this member leads. The reader gets the last state and may miss those
// before it, but it sees that there were some: leadership that was lost and has come back counts as
// another one.
//
// The node is the writer and must not be held up, so it gets no channel that could be full: it
// sets a state and leaves a hint.
type roles struct {
	mu sync.Mutex
	// Guarded by mu, like turns.
	leads  bool
	turns  uint64        // how often leads has changed
	change chan struct{} // has room for one
}

// newRoles begins as a member that does not lead.
func newRoles() *roles { return &roles{change: make(chan struct{}, 1)} }

// set is the node's OnRole. It does not block.
func (r *roles) set(leads bool) {
	r.mu.Lock()
	if r.leads != leads {
		r.leads = leads
		r.turns++
	}
	r.mu.Unlock()
	select {
	case r.change <- struct{}{}:
	default: // a change is already announced
	}
}

// now returns the state and the number of its changes. Two equal numbers mean that nothing has
// changed between the calls.
func (r *roles) now() (leads bool, turns uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.leads, r.turns
}

// leadRetry is the pause after which a leader tries again to start the parts that only it runs.
const leadRetry = time.Second

// follow starts the parts of the leader when this member begins to lead, and ends them when it
// stops leading or ctx ends. The parts end with the leadership in which they began, even if the
// member leads again by then.
//
// begin and end run on this goroutine, in turns, so they need no lock against each other. A begin
// that fails is tried again while the member leads. The last end is done when follow returns.
func (r *roles) follow(ctx context.Context, begin func() error, end func(), log *slog.Logger) {
	began, since := false, uint64(0)
	defer func() {
		if began {
			end()
		}
	}()
	for {
		leads, turns := r.now()
		if began && turns != since {
			end()
			began = false
		}
		var retry <-chan time.Time
		if leads && !began {
			if err := begin(); err != nil {
				log.Error("what runs on the leader was not started", "error", err)
				retry = time.After(leadRetry)
			} else {
				began, since = true, turns
			}
		}
		select {
		case <-r.change:
		case <-retry:
		case <-ctx.Done():
			return
		}
	}
}
