package feed

import (
	"context"
	"errors"
	"slices"
	"sort"
	"time"

	"posttrade/matcher"
)

// Why a reader is ended.
var (
	// ErrSlow: more than MaxPending bytes waited for a live reader.
	ErrSlow = errors.New("the reader is too slow")
	// ErrBeyond: the position is not durable here yet.
	ErrBeyond = errors.New("the position is beyond the durable head")
)

// Start says where a reader begins: behind At. The zero value is the durable head, with snapshots
// of the selected books.
type Start struct {
	At       Position
	Given    bool // false: at the durable head, with snapshots
	Snapshot bool // the books as of At come first; At is behind a whole command
	Guest    bool // half of the places are not for this reader
}

// Reader gets the events of a selection from a position on. It belongs to one goroutine. It reads
// memory while the events behind its position are held there, and older history (past) otherwise.
type Reader struct {
	h      *Hub
	s      Selection
	at     Position // everything up to here was returned
	guest  bool
	joined bool     // it has caught up with the live stream once
	past   *past    // of older history; nil: memory
	first  [][]byte // whole events before everything else, which readers share
	piece  [][]byte // memory of what Next returns, empty until it has a piece
}

// pieceBytes is about how long a piece is that has the text of several batches.
const pieceBytes = 256 << 10

// Begin starts the follower, if it does not run, and waits until it stands at the head: ErrBeyond
// when ctx ends before, ErrFailed or ErrClosed. It takes no place: the follower ends again when no
// reader comes.
func (h *Hub) Begin(ctx context.Context) error {
	h.mu.Lock()
	if h.ctx.Err() == nil {
		h.start()
	}
	h.mu.Unlock()
	return h.reached(ctx, Start{})
}

// Open returns a reader, which the caller closes. For a position that is not durable yet it waits
// until ctx ends, without a place: ErrBeyond. ErrBusy: there is no room for one more reader, or for
// one more of older history. journal.ErrArchived: the position lies in an archive that is not here.
// ErrFailed, ErrClosed. ctx bounds Open alone.
func (h *Hub) Open(ctx context.Context, s Selection, start Start) (_ *Reader, err error) {
	if err := h.reached(ctx, start); err != nil {
		return nil, err
	}
	if err := h.join(start.Guest); err != nil {
		return nil, err
	}
	r := &Reader{h: h, s: s, at: start.At, guest: start.Guest}
	defer func() {
		if err != nil {
			r.Close()
		}
	}()
	// Before it had a reader the follower may have ended, and then begins again.
	if err := h.reached(ctx, start); err != nil {
		return nil, err
	}
	switch books := start.Snapshot && s.Books.any(); {
	case !start.Given:
		if r.first, r.at, err = h.books(ctx, &s.Books); err == nil && !s.Books.any() {
			r.first = [][]byte{append(AppendID([]byte("id: "), r.at), "\n\n"...)}
		}
		r.joined = true
		return r, err
	case books || !h.holds(r.at):
		if err := h.stored(ctx, r.at); err != nil {
			return nil, err
		}
		return r, r.openPast(books)
	}
	return r, nil
}

// stored returns an error when the journal does not have what follows a position:
// journal.ErrArchived.
func (h *Hub) stored(ctx context.Context, at Position) error {
	next := at.InputSeq + 1
	if head, _ := h.o.Journal.Head(); next > head {
		return nil
	}
	return h.o.Journal.Commands(ctx, next, next, func([]matcher.Command) error { return nil })
}

// reached waits until the follower stands at the head, and at a given start.
func (h *Hub) reached(ctx context.Context, start Start) error {
	for {
		h.mu.Lock()
		if h.failed == nil && h.ctx.Err() == nil {
			h.start() // it may have retired since the caller began
		}
		ready, failed, changed := h.ready, h.failed, h.changed
		enough := ready && (!start.Given || h.applied.InputSeq >= start.At.InputSeq)
		h.mu.Unlock()
		switch {
		case enough:
			return nil
		case failed != nil:
			return failed
		}
		select {
		case <-changed:
		case <-h.ctx.Done():
			return ErrClosed
		case <-ctx.Done():
			return ErrBeyond
		}
	}
}

// holds reports that all events behind a position are in memory.
func (h *Hub) holds(at Position) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.ready && !at.before(h.floor)
}

// Close gives up the reader's place, once. It waits for the goroutine of older history.
func (r *Reader) Close() {
	r.closePast()
	r.h.leave(r.guest)
}

// At is the position behind everything that Next has returned.
func (r *Reader) At() Position { return r.at }

// Next returns the next piece of the stream: whole events, as parts in their order, none of them
// empty. The parts are those of the batches, which all readers share: the caller must not change
// them. The list is valid until the next call. It returns no part when wait ends before there is
// one, and an error when the reader is ended: ErrSlow, ErrClosed, ErrFailed, that of ctx or of the
// history.
func (r *Reader) Next(ctx context.Context, wait <-chan time.Time) (parts [][]byte, err error) {
	clear(r.piece) // a reader that waits keeps no text of the piece before
	r.piece = r.piece[:0]
	if len(r.first) > 0 {
		return r.begin(), nil
	}
	for {
		if r.past != nil {
			text, done, err := r.nextPast(ctx, wait)
			if done || err != nil {
				return r.part(text), err
			}
			continue
		}
		parts, changed, err := r.pending()
		if len(parts) > 0 || err != nil {
			return parts, err
		}
		if changed == nil {
			continue
		}
		select {
		case <-changed:
		case <-wait:
			return nil, nil
		case <-r.h.ctx.Done():
			return nil, ErrClosed
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// begin returns the next piece of what comes before everything else: the caller gives its client
// time for each piece, and books may be long.
func (r *Reader) begin() [][]byte {
	n, bytes := 0, 0
	for ; n < len(r.first) && bytes < pieceBytes; n++ {
		bytes += len(r.first[n])
	}
	r.piece = append(r.piece, r.first[:n]...)
	clear(r.first[:n])
	if r.first = r.first[n:]; len(r.first) == 0 {
		r.first = nil
	}
	r.h.counts.bytes.Add(uint64(bytes))
	return r.piece
}

// part is a piece of one part, or of none.
func (r *Reader) part(text []byte) [][]byte {
	if len(text) > 0 {
		r.piece = append(r.piece, text)
	}
	return r.piece
}

// pending returns the texts of the batches behind the reader's position. changed is set when there
// are none.
func (r *Reader) pending() (parts [][]byte, changed <-chan struct{}, err error) {
	batches, changed, err := r.h.behind(r.at)
	switch {
	case errors.Is(err, errDropped) && r.joined:
		return nil, nil, r.slow()
	case errors.Is(err, errDropped):
		return nil, nil, r.openPast(false)
	case err != nil:
		return nil, nil, err
	case len(batches) == 0:
		r.joined = true
		return nil, changed, nil
	}
	if r.joined && r.late(batches) {
		return nil, nil, r.slow()
	}
	n := r.gather(batches)
	r.at = batches[n-1].head()
	r.joined = r.joined || n == len(batches)
	return r.piece, nil, nil
}

// gather makes the texts of the first batches the piece, and returns how many batches these are.
// The first batch may begin before the reader's position: of that one it cuts a text that no other
// reader shares.
func (r *Reader) gather(batches []*batch) (n int) {
	bytes := 0
	for ; n < len(batches) && bytes < pieceBytes; n++ {
		b := batches[n]
		var text []byte
		if b.first <= r.at.InputSeq {
			text, _ = b.selected(&r.s, r.at)
		} else {
			text = b.of(&r.s)
		}
		if len(text) > 0 {
			r.piece = append(r.piece, text)
			bytes += len(text)
		}
	}
	r.h.counts.bytes.Add(uint64(bytes))
	return n
}

// late reports that more waits than may. The newest batch does not count: a single command can be
// longer than that.
func (r *Reader) late(batches []*batch) bool {
	waits := 0
	for _, b := range batches[:len(batches)-1] {
		if waits += len(b.of(&r.s)); waits > MaxPending {
			return true
		}
	}
	return false
}

// slow counts the reader as too slow. The caller ends it with what slow returns.
func (r *Reader) slow() error {
	r.h.counts.slow.Add(1)
	return ErrSlow
}

// errDropped: events behind the position are not in memory any more.
var errDropped = errors.New("dropped")

// behind returns the batches with what is behind a position, and a channel that is closed when
// there is more.
func (h *Hub) behind(at Position) (batches []*batch, changed <-chan struct{}, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.failed != nil:
		return nil, nil, h.failed
	case !h.ready:
		return nil, h.changed, nil
	case at.before(h.floor):
		return nil, nil, errDropped
	}
	from := sort.Search(len(h.batches), func(i int) bool { return at.before(h.batches[i].head()) })
	return slices.Clone(h.batches[from:]), h.changed, nil
}
