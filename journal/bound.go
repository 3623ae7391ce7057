package journal

import (
	"sync"
	"sync/atomic"
	"time"
)

// bound keeps the promise of mode "os" with a tail: whatever a power cut takes was answered at most
// FlushInterval ago. The log is synced twice in that time. After each sync, answers may be released
// for another FlushInterval, counted from the moment up to which that sync covers everything that
// was answered. When a sync hangs, a timer shuts the bound: the recorder takes no more events off
// its ring, and callers wait as they do behind a slow disk in mode "fsync". Events taken before
// that are answered.
//
// The path of an order reads shut and no clock.
//
// One renewal:
//
//	boundTick begins ... sync ends, renew ............ shuts, unless renewed
//	|<---------------------- within -------------------->|
type bound struct {
	// No further answer may be released. Writers: the timer and the goroutine that renews, both while
	// mu is held; the recorder reads it at every batch.
	shut atomic.Bool

	// FlushInterval. Constant after start.
	within time.Duration
	mu     sync.Mutex  // guards the two below
	until  time.Time   // when the timer shuts
	timer  *time.Timer // nil: answers do not come from a tail

	// Wakes the recorder, which may have gone to rest while the bound was shut. NewRecorder sets it;
	// nil: there is none yet.
	reopened atomic.Pointer[func()]
}

// boundSyncs is how often the log is synced within the bound: a sync may take as long as the time
// between two syncs.
const boundSyncs = 2

// start opens the bound: nothing has been answered yet, so the first interval counts from here.
func (b *bound) start(within time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.within = within
	b.until = time.Now().Add(within)
	b.timer = time.AfterFunc(within, b.expire)
}

// expire shuts the bound, unless it has been renewed meanwhile. The timer runs it.
func (b *bound) expire() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if left := time.Until(b.until); left > 0 {
		b.timer.Reset(left)
		return
	}
	b.shut.Store(true)
}

// renew records that everything answered before a moment is on stable storage. When that moment is
// already within ago, the bound is not opened: the sync has taken too long to prove anything about
// what was answered since. The recorder is woken outside mu.
func (b *bound) renew(from time.Time) {
	b.mu.Lock()
	b.until = from.Add(b.within)
	left := time.Until(b.until)
	if left > 0 {
		b.timer.Reset(left)
	}
	reopens := left > 0 && b.shut.Swap(false)
	b.mu.Unlock()
	if wake := b.reopened.Load(); reopens && wake != nil {
		(*wake)()
	}
}

// stop ends the timer. Without start it does nothing.
func (b *bound) stop() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.timer != nil {
		b.timer.Stop()
	}
}

// held reports that no further answer may be released for now: the recorder takes no events. After
// a failure the recorder takes what there is, to drop it.
func (j *Journal) held() bool { return j.bound.shut.Load() && j.latch.Err() == nil }

// boundTick brings what has been answered to stable storage and renews the bound. Every other call
// also makes the progress durable in the anchor. The moment is taken before the answered number is
// read: answers released during the sync are not covered by it. On a ticker's goroutine, one call
// at a time.
func (j *Journal) boundTick() {
	begun, answered := time.Now(), j.Answered()
	if !j.await(answered) {
		return
	}
	safe, err := j.stabilize()
	if err != nil {
		_ = j.latch.Poison(err)
		return
	}
	if now := time.Now(); j.Answered() <= safe.inputSeq {
		begun = now // nothing that was answered before is left
	}
	j.bound.renew(begun)
	if j.ticks++; j.ticks%boundSyncs == 0 {
		j.anchorTick()
	}
}

// await waits until the store has a sequence. It returns false when the store never will: the
// journal is poisoned or being closed.
func (j *Journal) await(inputSeq uint64) bool {
	for {
		moved := j.behind(inputSeq)
		if moved == nil {
			return true
		}
		select {
		case <-moved:
		case <-j.latch.dead:
			return false
		case <-j.stop:
			return false
		}
	}
}
