package acts

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"posttrade/journal"
	"posttrade/matcher"
)

// ErrBusy: as many readings as may be are under way.
var ErrBusy = errors.New("too many readings at a time")

// maxConcurrent is the number of readings at a time.
const maxConcurrent = 4

// Journal is the part of *journal.Journal that a Reader uses.
type Journal interface {
	Head() (inputSeq, tradeSeq uint64)
	ReplayTo(ctx context.Context, from, to uint64,
		fn func(cmds []matcher.Command, ids journal.ClientIDs) error) error
}

// Reader reads the acts of one journal.
type Reader struct {
	j      Journal
	ticker func(id uint32) string
	places chan struct{}

	judge judge

	mu    sync.Mutex
	quiet []span // stretches without an act, ascending, apart from each other
}

// span is a stretch of input sequences, both ends included.
type span struct{ from, to uint64 }

// New returns a Reader. ticker names a security; it may know more of them than the journal's head.
func New(j Journal, ticker func(id uint32) string) *Reader {
	return &Reader{j: j, ticker: ticker, places: make(chan struct{}, maxConcurrent)}
}

// Query says which acts are asked for. Zero values leave a condition out.
type Query struct {
	From      uint64 // the first sequence
	Limit     int    // the most records
	Subject   string
	Kind      string
	AccountID uint64
	OrderID   string // as in ord-17
}

// fits reports whether a record is asked for.
func (q *Query) fits(r *Record) bool {
	return r.Sequence >= q.From && (q.Subject == "" || r.Subject == q.Subject) &&
		(q.Kind == "" || r.Kind == q.Kind) && (q.AccountID == 0 || r.accountID == q.AccountID) &&
		(q.OrderID == "" || r.orderID == q.OrderID)
}

// longest is the number of commands that an act can take, its note included.
const longest = matcher.MaxNoteParts + matcher.MaxNoteActs

// errEnough ends a walk: the page is full.
var errEnough = errors.New("enough")

// Read gives the acts that q asks for to fn, ascending by sequence, up to the durable head as it is
// at the call.
//
// Errors: ErrBusy at once; fn's; ctx's; the journal's when it is damaged.
func (r *Reader) Read(ctx context.Context, q Query, fn func(*Record) error) error {
	select {
	case r.places <- struct{}{}:
		defer func() { <-r.places }()
	default:
		return fmt.Errorf("acts: read fromSeq=%d: %w", q.From, ErrBusy)
	}
	head, _ := r.j.Head()
	w := walk{reader: r, query: q, fn: fn}
	err := journal.Politely(journal.Background, func() error { return w.run(ctx, q.From, head) })
	if err != nil && !errors.Is(err, errEnough) {
		return fmt.Errorf("acts: read fromSeq=%d: %w", q.From, err)
	}
	return nil
}

// walk is one reading.
type walk struct {
	reader *Reader
	query  Query
	fn     func(*Record) error // nil: the walk is for the judge alone
	parser parser
	given  int
	silent uint64 // commands from here on have no act
	began  uint64
	failed error // of the walk through the acts before
}

// run walks through everything from a sequence on that is not known to be quiet.
func (w *walk) run(ctx context.Context, from, head uint64) error {
	from = max(from, 1)
	from -= min(from-1, longest) // the note of the first act may begin before it
	w.began = from
	w.parser = parser{ticker: w.reader.ticker,
		refused: func(c *matcher.Command) bool { return w.refused(ctx, c) }}
	for from <= head {
		to := head
		if s := w.reader.quietAt(from); s.to != 0 {
			if s.from <= from {
				from = s.to + 1
				continue
			}
			to = min(to, s.from-1)
		}
		w.silent = from
		if err := w.reader.j.ReplayTo(ctx, from, to, w.commands); err != nil {
			return err
		}
		if err := w.pass(w.parser.end()); err != nil {
			return err
		}
		w.reader.remember(span{w.silent, to})
		from = to + 1
	}
	if w.began == 1 || w.began+longest <= w.reader.judge.seen()+1 {
		w.reader.judge.pass(head)
	}
	return nil
}

// refused reports an act that the engine has refused. Those before the walk's beginning that have
// not been judged are judged first, and those of an act that may begin before it. What is in an
// archive that cannot be read counts as none.
func (w *walk) refused(ctx context.Context, c *matcher.Command) bool {
	j := &w.reader.judge
	end := min(w.began+longest, c.InputSeq-1)
	if seen := j.seen(); w.fn != nil && w.failed == nil && seen < end {
		before := walk{reader: w.reader}
		if w.failed = before.run(ctx, seen+1, end); errors.Is(w.failed, journal.ErrArchived) {
			w.failed = nil
			j.pass(end)
		}
	}
	return w.failed == nil && j.refuses(c)
}

// commands takes the commands of one commit.
func (w *walk) commands(cmds []matcher.Command, ids journal.ClientIDs) error {
	for i := range cmds {
		c := &cmds[i]
		if !ofActs(c) && w.parser.wanted == 0 {
			continue
		}
		if c.InputSeq > w.silent {
			w.reader.remember(span{w.silent, c.InputSeq - 1})
		}
		w.silent = c.InputSeq + 1
		var text []byte
		if c.Type == matcher.OperatorNote {
			text = ids.Of(c.InputSeq)
		}
		if err := w.pass(w.parser.take(c, text)); err != nil {
			return err
		}
		if w.failed != nil {
			return w.failed
		}
	}
	return nil
}

// ofActs reports a command that can be part of an act.
func ofActs(c *matcher.Command) bool {
	if c.TemplateID != matcher.TemplateCommand {
		return false
	}
	switch c.Type {
	case matcher.OperatorNote, matcher.PolicyControl, matcher.RestrictionControl,
		matcher.ForceFill, matcher.CapacityControl, matcher.TokenRevoke:
		return true
	case matcher.AccountControl, matcher.SecurityControl:
		return c.OrderRef == 0
	}
	return false
}

// pass gives the records that fit to fn.
func (w *walk) pass(found []Record) error {
	if w.fn == nil {
		return nil
	}
	for i := range found {
		if !w.query.fits(&found[i]) {
			continue
		}
		if err := w.fn(&found[i]); err != nil {
			return err
		}
		if w.given++; w.given == w.query.Limit {
			return errEnough
		}
	}
	return nil
}

// minQuiet is the shortest stretch that is worth remembering, maxQuiet how many are remembered.
const (
	minQuiet = 1 << 14
	maxQuiet = 1 << 16
)

// quietAt returns the first stretch that ends at or after a sequence; its to is 0 for none.
func (r *Reader) quietAt(seq uint64) span {
	r.mu.Lock()
	defer r.mu.Unlock()
	if i := r.place(seq); i < len(r.quiet) {
		return r.quiet[i]
	}
	return span{}
}

// place is the index of the first stretch that ends at or after a sequence.
func (r *Reader) place(seq uint64) int {
	i, _ := slices.BinarySearchFunc(r.quiet, seq, func(s span, seq uint64) int {
		if s.to < seq {
			return -1
		}
		return 1
	})
	return i
}

// remember adds a stretch without an act, and joins it with those that it touches.
func (r *Reader) remember(s span) {
	if s.to < s.from || s.to-s.from < minQuiet {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	i := r.place(max(s.from, 2) - 1)
	end := i
	for end < len(r.quiet) && r.quiet[end].from <= s.to+1 {
		s.from, s.to = min(s.from, r.quiet[end].from), max(s.to, r.quiet[end].to)
		end++
	}
	if end == i && len(r.quiet) >= maxQuiet {
		return
	}
	r.quiet = slices.Replace(r.quiet, i, end, s)
}
