package feed

import (
	"context"
	"errors"
	"sync"
	"time"

	"posttrade/journal"
)

// past reads older history for one reader: a shadow of its own, on a thread of low priority. It is
// paced by the reader, which takes one piece after the other: while one piece waits and the next
// one is ready, the shadow stands still.
type past struct {
	pieces chan pastPiece
	cancel context.CancelFunc
	ended  sync.WaitGroup
}

// pastPiece is some text, and the position behind it. The text may be empty: the position moves all
// the same. With err it is the last piece.
type pastPiece struct {
	text []byte
	at   Position
	err  error
}

const (
	// pastBytes and pastCommands end a piece: a reader whose selection is rare sees progress too. A
	// piece ends at the end of a command, so one command can make it longer.
	pastBytes    = 64 << 10
	pastCommands = 1 << 16
)

// openPast begins to read behind the reader's position, after the books as of it if wanted. ErrBusy
// when as many readers as may be read older history, ErrClosed.
func (r *Reader) openPast(books bool) error {
	h := r.h
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.ctx.Err() != nil {
		return ErrClosed
	}
	if !h.history.take(r.guest) {
		h.counts.refused.Add(1)
		return ErrBusy
	}
	ctx, cancel := context.WithCancel(h.ctx)
	p := &past{pieces: make(chan pastPiece, 1), cancel: cancel}
	r.past, r.joined = p, false
	w := &pastWriter{h: h, p: p, ctx: ctx, s: r.s, after: r.at}
	p.ended.Go(func() {
		err := journal.Politely(journal.Background, func() error { return w.run(books) })
		w.send(pastPiece{at: w.at, err: err})
	})
	return nil
}

// closePast ends the reading of older history and waits for its goroutine. It does nothing when
// there is none.
func (r *Reader) closePast() {
	if r.past == nil {
		return
	}
	r.past.cancel()
	r.past.ended.Wait()
	r.past = nil
	r.h.mu.Lock()
	r.h.history.give(r.guest)
	r.h.mu.Unlock()
}

// nextPast returns the next piece of older history. done is false when there is none yet, or when
// the reader goes on in memory.
func (r *Reader) nextPast(ctx context.Context, wait <-chan time.Time) (text []byte, done bool,
	err error) {
	select {
	case piece := <-r.past.pieces:
		if piece.err != nil {
			return nil, true, piece.err
		}
		r.at = piece.at
		if r.h.holds(r.at) {
			r.closePast()
		}
		r.h.counts.bytes.Add(uint64(len(piece.text)))
		return piece.text, len(piece.text) > 0, nil
	case <-wait:
		return nil, true, nil
	case <-r.h.ctx.Done():
		return nil, true, ErrClosed
	case <-ctx.Done():
		return nil, true, ctx.Err()
	}
}

// pastWriter makes the pieces; it runs on the past's goroutine.
type pastWriter struct {
	h     *Hub
	p     *past
	ctx   context.Context
	s     Selection
	after Position // events up to here are not passed on
	text  []byte
	at    Position // behind the last whole command

	commands int // since the last piece
}

// run derives everything behind the position until ctx ends. The reader ends it when it has caught
// up with what is in memory. It begins at a snapshot before the position and only follows, without
// deriving, up to there.
func (w *pastWriter) run(books bool) (err error) {
	defer caught(&err)
	from := w.after.InputSeq
	if w.after.N != whole && from > 0 {
		from-- // a part of this command is still to come
	}
	sh, d, err := w.h.open(from)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, sh.Close()) }()
	if err := sh.Follow(w.ctx, from, nil); err != nil {
		return err
	}
	w.at = w.after
	if books {
		d.snapshot(&w.s.Books, w.add)
	}
	d.emit, d.ended = w.add, w.ended
	d.wants = func(e *Event) bool {
		return w.after.before(e.Position) && w.s.has(e.Kind, e.SecurityID, e.AccountID)
	}
	for w.ctx.Err() == nil {
		durable := w.h.o.Durable.Durable()
		if err := sh.Follow(w.ctx, durable, nil); err != nil {
			return err
		}
		w.send(pastPiece{text: w.text, at: w.at})
		// An error is a failed journal, or that nothing has come: the reader ends this. On a member the
		// journal follows what was agreed.
		if next := sh.Applied() + 1; w.h.o.Durable.WaitDurable(next, look) == nil {
			_ = w.h.o.Journal.WaitHead(w.ctx, next)
		}
	}
	return w.ctx.Err()
}

func (w *pastWriter) add(e *Event) { w.text = appendFrame(w.text, e, w.h.o.Render) }

// ended notes the end of a command. The position never falls behind the one that the reader had.
func (w *pastWriter) ended(inputSeq uint64, n uint32) {
	if w.at = (Position{InputSeq: inputSeq, N: n}); w.at.before(w.after) {
		w.at = w.after
	}
	if w.commands++; w.commands >= pastCommands || len(w.text) >= pastBytes {
		w.send(pastPiece{text: w.text, at: w.at})
	}
}

// send gives a piece to the reader, and begins the next one.
func (w *pastWriter) send(piece pastPiece) {
	select {
	case w.p.pieces <- piece:
	case <-w.ctx.Done():
	}
	w.text, w.commands = nil, 0
}
