package blotter

import (
	"errors"
	"fmt"
	"slices"

	"posttrade/matcher"
)

// Page appends to dst up to limit fills with a tradeSeq strictly greater than
// sinceSeq, ascending and without a hole. next is the sinceSeq of the page after
// it. ok is false when there is no index that can be read: none has been built,
// or the one there was is damaged (Damage says how); Reindex makes a new one.
func (h *History) Page(sinceSeq uint64, limit int, dst []matcher.Fill) (items []matcher.Fill,
	next uint64, ok bool) {
	ix := h.acquire()
	if ix == nil {
		return dst, sinceSeq, false
	}
	items, next = dst, sinceSeq
	if sinceSeq >= ix.count || limit <= 0 {
		return items, next, h.release(ix, nil) == nil
	}
	to := sinceSeq + min(uint64(limit), ix.count-sinceSeq)
	items = slices.Grow(items, int(to-sinceSeq))
	err := ix.each(sinceSeq+1, to, func(fills []matcher.Fill) error {
		items = append(items, fills...)
		return nil
	})
	if h.release(ix, err) != nil {
		return dst, sinceSeq, false
	}
	return items, to, true
}

// Range gives the fills of [from, to], both inclusive, to fn in order, a block at
// a time, in memory that is fn's only until it returns. What lies beyond the
// index is left out: Info says where it ends. ErrNoHistory when there is none,
// ErrDamaged when it cannot be read; an error of fn ends it and is returned.
func (h *History) Range(from, to uint64, fn func(fills []matcher.Fill) error) error {
	ix := h.acquire()
	if ix == nil {
		return fmt.Errorf("blotter: range from=%d to=%d: %w", from, to, ErrNoHistory)
	}
	return h.release(ix, ix.each(max(from, 1), min(to, ix.count), fn))
}

// Damage says why there is no index any more although one was built, else nil.
func (h *History) Damage() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.damage
}

// acquire is the current index, kept open until release; nil when there is none.
func (h *History) acquire() *index {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.current != nil {
		h.current.users.Add(1)
	}
	return h.current
}

// release ends a use of ix and passes on its error. An index that turned out to
// be damaged is nobody's any more.
func (h *History) release(ix *index, err error) error {
	if errors.Is(err, ErrDamaged) {
		h.mu.Lock()
		ours := h.current == ix
		if ours {
			h.current, h.damage = nil, err
		}
		h.mu.Unlock()
		if ours {
			err = errors.Join(err, ix.drop())
		}
	}
	if closeErr := ix.leave(); closeErr != nil && err == nil {
		err = closeErr
	}
	return err
}
