package httpapi

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"posttrade/matcher"
	"posttrade/ring"
)

// fakeRecorder reads the output ring like the recorder does, and is its own committer: what it has
// observed is durable, unless a test holds it.
type fakeRecorder struct {
	rig      *rig
	stopping atomic.Bool
	done     chan struct{}

	mu      sync.Mutex
	moved   *sync.Cond
	applied uint64
	durable uint64
	held    bool
	waiting int // readers in WaitDurable
	broken  error
}

func newFakeRecorder(r *rig) *fakeRecorder {
	f := &fakeRecorder{rig: r, done: make(chan struct{})}
	f.moved = sync.NewCond(&f.mu)
	return f
}

func (f *fakeRecorder) run() {
	defer close(f.done)
	r := f.rig
	idle := ring.NewIdler(ring.Park, r.out.Waiter())
	for {
		lo, hi := r.out.Ready(256)
		if lo == hi {
			more := r.views.Flush()
			if f.stopping.Load() && r.out.Empty() {
				return
			}
			if !more {
				idle.Idle(r.out)
			}
			continue
		}
		idle.Reset()
		var last uint64
		var id []byte
		for at := lo; at < hi; at++ {
			ev := r.out.At(at)
			if ev.Flags&matcher.EventFirst != 0 {
				id = r.desk.ClientID(ev.Ref)
			}
			r.gate.Observe(ev)
			r.blotter.Observe(ev, id)
			r.views.Observe(ev, id)
			r.desk.Observe(ev)
			last = ev.InputSeq
		}
		r.out.Release(hi)
		f.commit(last)
		r.views.Flush()
	}
}

// commit makes everything up to inputSeq durable, unless it is held.
func (f *fakeRecorder) commit(inputSeq uint64) {
	f.mu.Lock()
	f.applied = inputSeq
	if !f.held {
		f.durable = inputSeq
	}
	durable := f.durable
	f.mu.Unlock()
	f.moved.Broadcast()
	f.rig.desk.Durable(durable)
}

// hold stops durability at its present value; letGo catches up and continues. letGo runs while the
// recorder is idle or finished; the tests that hold ensure this.
func (f *fakeRecorder) hold() {
	f.mu.Lock()
	f.held = true
	f.mu.Unlock()
}

func (f *fakeRecorder) letGo() {
	f.mu.Lock()
	wasHeld := f.held
	f.held = false
	f.durable = max(f.durable, f.applied)
	durable := f.durable
	f.mu.Unlock()
	f.moved.Broadcast()
	if wasHeld {
		f.rig.desk.Durable(durable)
	}
}

// waitApplied blocks until the recorder has observed a sequence.
func (f *fakeRecorder) waitApplied(inputSeq uint64) {
	f.mu.Lock()
	for f.applied < inputSeq {
		f.moved.Wait()
	}
	f.mu.Unlock()
}

// waitWaiting blocks until n readers wait for durability; false if there are fewer when the time is
// up.
func (f *fakeRecorder) waitWaiting(n int) bool {
	late := false
	timer := time.AfterFunc(time.Minute, func() {
		f.mu.Lock()
		late = true
		f.mu.Unlock()
		f.moved.Broadcast()
	})
	defer timer.Stop()
	f.mu.Lock()
	defer f.mu.Unlock()
	for f.waiting < n && !late {
		f.moved.Wait()
	}
	return f.waiting >= n
}

func (f *fakeRecorder) stop() {
	f.stopping.Store(true)
	f.rig.out.Waiter().Wake()
	<-f.done
}

// Durable implements DurableWaiter.
func (f *fakeRecorder) Durable() uint64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.durable
}

// errHeld is WaitDurable's time-out.
var errHeld = errors.New("not durable in time")

// WaitDurable implements DurableWaiter.
func (f *fakeRecorder) WaitDurable(inputSeq uint64, timeout time.Duration) error {
	late := false
	timer := time.AfterFunc(timeout, func() {
		f.mu.Lock()
		late = true
		f.mu.Unlock()
		f.moved.Broadcast()
	})
	defer timer.Stop()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.waiting++
	defer func() { f.waiting-- }()
	f.moved.Broadcast()
	for f.durable < inputSeq {
		if late {
			return errHeld
		}
		if f.broken != nil {
			return f.broken
		}
		f.moved.Wait()
	}
	return nil
}
