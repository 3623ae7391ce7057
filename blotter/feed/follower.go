package feed

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"posttrade/journal"
)

// follower is the state of one follow. It belongs to the goroutine of run.
type follower struct {
	h     *Hub
	sh    *journal.Shadow
	d     *deriver
	build *batch
	at    Position // behind the last whole command
}

// follow opens a shadow some commands before the head, derives up to the head, and then goes on
// with it. Readers wait until it has reached the head once.
func (h *Hub) follow() (err error) {
	defer caught(&err)
	head, _ := h.o.Journal.Head()
	sh, d, err := h.openAt(head - min(head, h.o.Behind))
	if errors.Is(err, journal.ErrArchived) { // the newest snapshot and what follows it stay
		sh, d, err = h.openAt(head)
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, sh.Close()) }()
	f := &follower{h: h, sh: sh, d: d, at: After(sh.Applied())}
	f.build = &batch{first: sh.Applied() + 1}
	d.emit, d.ended = f.take, f.ended
	h.mu.Lock()
	h.floor, h.applied = f.at, f.at
	h.mu.Unlock()
	if err := f.catchUp(head); err != nil {
		return err
	}
	h.mu.Lock()
	h.ready = true
	h.wake()
	h.mu.Unlock()
	return f.live()
}

// caught turns a panic into an error: no event is worth the process.
func caught(err *error) {
	if cause := recover(); cause != nil {
		*err = fmt.Errorf("feed: panic: %v\n%s", cause, debug.Stack())
	}
}

// take formats an event.
func (f *follower) take(e *Event) { f.build.add(e, f.h.o.Render) }

// ended notes the end of a command, and closes the batch when it is long enough. So a batch holds
// whole commands, and may be as long as one command makes it.
func (f *follower) ended(inputSeq uint64, n uint32) {
	f.at = Position{InputSeq: inputSeq, N: n}
	f.build.last, f.build.end = inputSeq, n
	if len(f.build.text) >= batchBytes {
		f.publish()
	}
}

// publish gives the batch to the readers and begins the next one. A batch without commands is none;
// one without events is published too, because it moves the position.
func (f *follower) publish() {
	b, h := f.build, f.h
	if b.last < b.first {
		return
	}
	h.counts.events.Add(uint64(len(b.items)))
	h.mu.Lock()
	h.hold(b)
	h.applied = f.at
	h.wake()
	h.mu.Unlock()
	f.build = &batch{first: b.last + 1}
}

// catchUp derives everything up to a sequence that is durable, and publishes what is left. Nothing
// beyond it is read.
func (f *follower) catchUp(to uint64) error {
	for f.sh.Applied() < to {
		before := f.sh.Applied()
		if err := f.sh.Follow(f.h.ctx, to, nil); err != nil {
			return err
		}
		if f.sh.Applied() == before { // on a member the journal follows what was agreed
			if err := f.h.o.Journal.WaitHead(f.h.ctx, before+1); err != nil {
				return err
			}
		}
	}
	f.publish()
	return nil
}

// live follows the head as it moves, and answers the requests for books. It returns nil when no
// reader has been there for as long as the shadow lingers.
func (f *follower) live() error {
	durable := make(chan struct{}, 1)
	wanted := make(chan uint64, 1)
	ctx, cancel := context.WithCancel(f.h.ctx)
	var watching sync.WaitGroup
	watching.Go(func() { f.h.watch(ctx, wanted, durable) })
	defer func() { // a watch of an ended follower would wait for a command that may never come
		cancel()
		close(wanted)
		watching.Wait()
	}()
	tick := time.NewTicker(look)
	defer tick.Stop()
	idle := time.Now()
	for waiting := false; ; {
		if err := f.catchUp(f.h.o.Durable.Durable()); err != nil {
			return err
		}
		f.answer()
		if !waiting {
			wanted <- f.sh.Applied() + 1
			waiting = true
		}
		select {
		case <-durable:
			waiting = false
		case <-f.h.called:
		case now := <-tick.C:
			if all, _ := f.h.Readers(); all > 0 {
				idle = now
			} else if now.Sub(idle) > f.h.o.Lingers && f.h.retire() {
				return nil
			}
		case <-f.h.ctx.Done():
			return f.h.ctx.Err()
		}
	}
}

// watch waits for the sequences of wanted, one after the other, and tells durable. It is a
// goroutine of its own, because a wait for durability cannot be left for another request. It ends
// at most a look after ctx, when wanted is closed too.
func (h *Hub) watch(ctx context.Context, wanted <-chan uint64, durable chan<- struct{}) {
	for inputSeq := range wanted {
		for ctx.Err() == nil {
			begun := time.Now()
			if h.o.Durable.WaitDurable(inputSeq, look) == nil {
				break
			}
			if time.Since(begun) < look/2 { // a failed journal: nothing will come
				select {
				case <-time.After(look):
				case <-ctx.Done():
				}
			}
		}
		select {
		case durable <- struct{}{}:
		default:
		}
	}
}
