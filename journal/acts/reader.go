package acts

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"posttrade/journal"
	"posttrade/matcher"
)

// ErrBusy: as many readings as may be are under way. The caller may try again.
var ErrBusy = errors.New("too many readings at a time")

// maxConcurrent is the number of readings at a time: each may walk through the whole history.
const maxConcurrent = 4

// Journal is the part of *journal.Journal that a Reader uses. ReplayTo gives whole stretches in
// order; what is in an archive that cannot be read is journal.ErrArchived.
type Journal interface {
	Head() (inputSeq, tradeSeq uint64)
	ReplayTo(ctx context.Context, from, to uint64,
		fn func(cmds []matcher.Command, ids journal.ClientIDs) error) error
}

// Reader reads the acts of one journal.
//
// What it remembers makes later readings short and changes no answer; it is lost at the end of the
// process. Any goroutine.
type Reader struct {
	j      Journal
	ticker func(id uint32) string
	// places has a place for each reading that may be under way.
	places chan struct{}

	// judge has its own lock; a reading asks it while it holds no other.
	judge judge

	// mu guards quiet.
	mu    sync.Mutex
	quiet []span // stretches without an act, ascending, apart from each other
}

// New returns a Reader. ticker names a security; it may know more of them than the journal's head.
func New(j Journal, ticker func(id uint32) string) *Reader {
	return &Reader{j: j, ticker: ticker, places: make(chan struct{}, maxConcurrent)}
}

// Query says which acts are asked for. Zero values leave a condition out.
type Query struct {
	// From is the first sequence of a record, not of its note.
	From uint64
	// Limit is the most records. 0 gives all of them.
	Limit int
	// These four select: a record must have exactly that subject, kind, account or order.
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

// errEnough ends a walk: the page is full.
var errEnough = errors.New("enough")

// Read gives the acts that q asks for to fn, ascending by sequence, up to the durable head as it is
// at the call.
//
// Errors: ErrBusy at once; fn's; ctx's; the journal's when it is damaged.
//
// fn runs on a thread of low priority, not on the caller's goroutine, while the caller waits. It
// may use the record only until it returns.
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

// walk is one reading. It runs on one goroutine; what outlives it is in the Reader.
type walk struct {
	// reader is what outlives the walk: the judge and the quiet stretches.
	reader *Reader
	query  Query
	fn     func(*Record) error // nil: the walk is for the judge alone
	parser parser
	// given is how many records fn has had; the walk ends at Query.Limit.
	given int
	// silent: commands from this sequence on, up to the one that passes, hold no act.
	silent uint64
	// began is where the walk began: the parser may lack the beginning of an act that ends soon
	// behind.
	began uint64
	// failed is the error of the walk through the acts before, which ends this walk too.
	failed error
}

// run walks through everything from a sequence on that is not known to be quiet. A stretch that
// turns out to be quiet is remembered as soon as it ends, also when the walk does not come to its
// own end. The judge passes the head only when the walk has seen every act that was not judged
// before.
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
//
// For that a second walk runs inside this one, with no fn, so that it gives no records and starts
// no third one. Its error is kept in failed: this function has no way to return it.
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

// commands takes the commands of one commit. Most are of no act and cost one comparison; while a
// note waits for its acts, all commands go to the parser, because any of them may be one.
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
//
// Prices and changes of limits are acts only behind a note.
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
