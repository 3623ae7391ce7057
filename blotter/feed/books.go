package feed

import "context"

// bookRequest asks the follower for books as of its position. The reader makes it; the follower
// fills it in and closes done. ok stays false when the follower ended before, or ctx.
type bookRequest struct {
	ctx   context.Context // of the caller, which does not wait behind its end
	books *Securities
	texts [][]byte
	at    Position
	ok    bool
	done  chan struct{}
}

// books asks the follower for books, a text each, and for its position. ErrFailed when there is no
// follower at the head, or when it ends before it has answered. The texts are shared: they must not
// be changed. Any goroutine.
func (h *Hub) books(ctx context.Context, s *Securities) (texts [][]byte, at Position, err error) {
	r := &bookRequest{ctx: ctx, books: s, done: make(chan struct{})}
	h.mu.Lock()
	if !h.ready {
		h.mu.Unlock()
		return nil, at, ErrFailed
	}
	h.asked = append(h.asked, r)
	h.mu.Unlock()
	select {
	case h.called <- struct{}{}:
	default:
	}
	select {
	case <-r.done:
	case <-ctx.Done():
		return nil, at, ctx.Err()
	}
	switch {
	case r.ok:
		return r.texts, r.at, nil
	case ctx.Err() != nil:
		return nil, at, ctx.Err()
	}
	return nil, at, ErrFailed
}

// answer gives the books that readers have asked for. Each book is formatted once, however many of
// them want it: they share its text. A request whose caller has gone costs nothing.
func (f *follower) answer() {
	f.h.mu.Lock()
	asked := f.h.asked
	f.h.asked = nil
	f.h.mu.Unlock()
	made := map[uint32][]byte{}
	for _, r := range asked {
		if r.ctx.Err() == nil {
			r.texts, r.at, r.ok = f.books(r.books, made), f.at, true
		}
		close(r.done)
	}
}

// books are the texts of the books of a set; made holds those that are formatted already, by
// security. Follower only, between two commands.
func (f *follower) books(s *Securities, made map[uint32][]byte) (texts [][]byte) {
	for id := range s.among(f.d.views.SecurityCount()) {
		text, ok := made[id]
		if !ok {
			text = appendFrame(nil, f.d.book(id), f.h.o.Render)
			made[id] = text
		}
		texts = append(texts, text)
	}
	return texts
}
