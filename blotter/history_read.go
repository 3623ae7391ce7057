package blotter

import (
	"errors"
	"fmt"
	"slices"

	"posttrade/matcher"
)

// LastSequence is the command up to which every fill is in the index; false: none has been built.
//
// It is where the durable data ended when the last Reindex began. A Page after it has it too, or
// more. Any goroutine.
func (h *History) LastSequence() (inputSeq uint64, ok bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.current == nil {
		return 0, false
	}
	return h.current.inputSeq, true
}

// Page appends to dst up to limit fills with a tradeSeq strictly greater than sinceSeq, ascending
// and without a hole. next is the sinceSeq of the page after it. ok is false when there is no
// readable index: none has been built, or the last one is damaged. Reindex makes a new one.
//
// It reads whole blocks from the disk, and blocks for them. Any goroutine.
func (h *History) Page(sinceSeq uint64, limit int, dst []matcher.Fill) (
	items []matcher.Fill, next uint64, ok bool,
) {
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

// Range passes the fills of [from, to], both inclusive, to fn in order, a block at a time. fn may
// use the slice only until it returns. Fills beyond the end of the index, which Reindex has
// returned, are left out. Errors: ErrNoHistory without an index, ErrDamaged when it cannot be read;
// an error of fn ends the range and is returned.
func (h *History) Range(from, to uint64, fn func(fills []matcher.Fill) error) error {
	ix := h.acquire()
	if ix == nil {
		return fmt.Errorf("blotter: range from=%d to=%d: %w", from, to, ErrNoHistory)
	}
	return h.release(ix, ix.each(max(from, 1), min(to, ix.count), fn))
}

// acquire returns the current index and keeps it open until release; nil when there is none.
func (h *History) acquire() *index {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.current != nil {
		h.current.users.Add(1)
	}
	return h.current
}

// release ends a use of ix and returns err. A damaged index is no longer the current one.
func (h *History) release(ix *index, err error) error {
	if errors.Is(err, ErrDamaged) {
		h.mu.Lock()
		ours := h.current == ix
		if ours {
			h.current = nil
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
