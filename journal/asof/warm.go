package asof

import (
	"context"
	"errors"
	"slices"
	"time"

	"posttrade/journal"
	"posttrade/matcher"
)

// warmShadow is a warm shadow, or one that is being made. History.mu guards it. While moving is
// set, shadow and at belong to the goroutine that has set it.
//
// Only one of these holds: it is free (moving false, readers 0), it is being moved, or it stands at
// a moment that readers look at. Only a free warmShadow may be chosen.
type warmShadow struct {
	shadow *journal.Shadow // nil: none yet
	// at is the sequence after which the shadow stands; 0 is the genesis.
	at uint64
	// readers are the Moments that are not released yet.
	readers int
	// moving: one goroutine replays the shadow, and nothing else may touch it.
	moving bool
	// used is the value of History.uses when the shadow was last claimed.
	used uint64
	// since is when a reader last gave it back or a move ended: Idle counts from here.
	since time.Time
	// bytes is the resident memory when it was last measured; Bytes shows it during a move.
	bytes int64
}

// shortStep is a distance that is replayed on the caller's own thread. A thread of low priority
// begins and ends with each move, which costs more than so few commands do.
const shortStep = 4096

// claim finds the shadow for a moment. With p and without wait, the caller is a reader of p, which
// stands at the moment. With p and wait, the caller must move p there. Without p it must wait.
//
// wait is the channel as it was when mu was held, so no release in between is missed. In the second
// case it only says that the warmShadow is to be moved; the caller does not wait on it.
func (h *History) claim(inputSeq uint64) (p *warmShadow, wait chan struct{}, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return nil, nil, ErrClosed
	}
	h.uses++
	for _, p := range h.warm {
		if !p.moving && p.at == inputSeq {
			p.readers++
			p.used = h.uses
			return p, nil, nil
		}
	}
	if p = h.choose(inputSeq); p != nil {
		p.moving, p.used = true, h.uses
	}
	return p, h.changed, nil
}

// choose picks a shadow that may be moved, nil for none: the nearest one before the moment when no
// snapshot is nearer, else a new one, else the one used least recently. The caller holds mu.
func (h *History) choose(inputSeq uint64) (best *warmShadow) {
	var oldest *warmShadow
	for _, p := range h.warm {
		if p.moving || p.readers > 0 {
			continue
		}
		if p.at < inputSeq && h.near(p.at, inputSeq) && (best == nil || p.at > best.at) {
			best = p
		}
		if oldest == nil || p.used < oldest.used {
			oldest = p
		}
	}
	switch {
	case best != nil:
	case len(h.warm) < MaxWarm:
		best = &warmShadow{}
		h.warm = append(h.warm, best)
	default:
		best = oldest
	}
	return best
}

// near reports that a shadow at a sequence reaches a moment sooner than a new one: the moment, or
// the snapshot that a new one would start from, is close. A restore costs about as much as the
// replay of a hundred thousand commands.
func (h *History) near(at, inputSeq uint64) bool {
	const restore = 100_000
	return at+restore >= inputSeq || at+restore >= h.base(inputSeq)
}

// base is the newest snapshot or checkpoint at or before a sequence, 0 for none.
func (h *History) base(inputSeq uint64) (base uint64) {
	list, _ := h.j.Snapshots() // a damaged manifest is no base
	for _, s := range list {
		if s.InputSeq <= inputSeq {
			base = max(base, s.InputSeq)
		}
	}
	if h.checkpoints != nil {
		for _, at := range h.checkpoints.Sequences() {
			if at <= inputSeq {
				base = max(base, at)
			}
		}
	}
	return base
}

// move brings a claimed shadow to a moment and makes the caller its reader.
//
// The caller has p.moving. After an error it is no reader: the shadow then stands where the replay
// ended, or the warmShadow is gone when there is no shadow left to go on with. After a panic of the
// replay there is none: its state is not the journal's.
func (h *History) move(ctx context.Context, p *warmShadow, inputSeq uint64) (err error) {
	var fresh, ended bool
	defer func() {
		if !ended {
			p.drop()
		}
		h.put(p, fresh, ended && err == nil)
	}()
	step := func() (err error) {
		fresh, err = h.advance(ctx, p, inputSeq)
		return err
	}
	if p.shadow != nil && p.at < inputSeq && inputSeq-p.at <= shortStep {
		err = step()
	} else {
		err = journal.Politely(journal.Background, step)
	}
	ended = true
	return err
}

// drop closes a shadow whose replay has panicked. The caller has p.moving.
func (p *warmShadow) drop() {
	if p.shadow != nil {
		_ = p.shadow.Close()
		p.shadow = nil
	}
}

// put gives back a shadow that was moved: to a reader, or to the next caller. A warmShadow that has
// none is gone. fresh says that its memory must be measured.
func (h *History) put(p *warmShadow, fresh, read bool) {
	bytes := int64(0)
	if fresh && p.shadow != nil {
		bytes = resident(p.shadow)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	p.moving, p.since = false, time.Now()
	if fresh {
		p.bytes = bytes
	}
	if p.shadow == nil {
		h.warm = slices.DeleteFunc(h.warm, func(q *warmShadow) bool { return q == p })
	} else if read {
		p.readers++
	}
	h.wake()
}

// advance makes the shadow of p anew if a new one reaches inputSeq sooner, and replays up to it.
//
// fresh says that the shadow is another one, or none, so its memory must be measured again. When
// ctx ends, the shadow is kept where it stands. After any other error it is closed: a shadow whose
// replay failed cannot go on.
func (h *History) advance(ctx context.Context, p *warmShadow,
	inputSeq uint64) (fresh bool, err error) {
	if p.shadow != nil && (p.at > inputSeq || !h.near(p.at, inputSeq)) {
		err := p.shadow.Close()
		p.shadow, p.at, fresh = nil, 0, true
		if err != nil {
			return fresh, err
		}
	}
	if p.shadow == nil {
		fresh = true
		if p.shadow, err = journal.OpenShadow(h.j, h.rebuild, inputSeq, h.checkpoints); err != nil {
			return fresh, err
		}
		p.shadow.Views().(Image).SetWake(func() {}) // a reader never has to ask the observer
	}
	err = p.shadow.Follow(ctx, inputSeq, nil)
	p.at = p.shadow.Applied()
	if err == nil || ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return fresh, err // the shadow goes on from here
	}
	err = errors.Join(err, p.shadow.Close())
	p.shadow = nil
	return true, err
}

// resident is the memory of a shadow, in bytes, of engine and views. The caller must own the shadow
// or hold mu while it is not moving.
func resident(sh *journal.Shadow) int64 {
	return sh.Engine().(*matcher.Engine).Resident() + sh.Views().(Image).Resident()
}

// Bytes is the memory of the warm shadows: the svc_asof_bytes of the metrics. A shadow that is
// being moved counts as it was before.
func (h *History) Bytes() (n int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, p := range h.warm {
		if !p.moving && p.shadow != nil {
			p.bytes = resident(p.shadow)
		}
		n += p.bytes
	}
	return n
}

// Warm is the number of warm shadows.
func (h *History) Warm() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.warm)
}

// closeUnused closes the shadows that were not used for a while; all of them when the History is
// closed. left counts those in use, which stay, and wait tells when one of them was given back.
func (h *History) closeUnused(now time.Time) (left int, wait <-chan struct{}, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	var all []error
	h.warm = slices.DeleteFunc(h.warm, func(p *warmShadow) bool {
		if p.moving || p.readers > 0 || !h.closed && now.Sub(p.since) < h.o.Idle {
			return false
		}
		all = append(all, p.shadow.Close())
		return true
	})
	return len(h.warm), h.changed, errors.Join(all...)
}
