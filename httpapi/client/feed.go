package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// Event is one event of the live feed.
//
// A mark has no Data but its sequence. The server's event gone is not passed on: it is the reason
// of a lost connection.
type Event struct {
	// ID is the event's place in the history: <inputSeq>.<n>, or <inputSeq>.s of a snapshot. A feed
	// from an ID goes on behind the event.
	ID   string
	Kind string          // snapshot, book, bbo, trade, order, price, control, contract or mark
	Data json.RawMessage // the event's document
}

// Sequence is the inputSeq of the event's command; 0: the event has no ID.
//
// It is what AsOf takes to see the state behind the event.
func (e *Event) Sequence() uint64 {
	seq, _, _ := strings.Cut(e.ID, ".")
	n, _ := strconv.ParseUint(seq, 10, 64)
	return n
}

// FeedQuery selects what a feed has.
type FeedQuery struct {
	// Topics are book:<security>, bbo:<security>, with * for every security, trades, orders, prices,
	// controls and contracts.
	Topics    []string
	AccountID *uint32 // only its orders, own fills and contracts; nil: all that the token may see
	// From is the ID of an event, to go on behind it, or a sequence, to begin behind the command. "":
	// at the durable head.
	From string
	// Lost is called with the reason when a connection has ended, before the next one. nil: not told.
	Lost func(err error)
}

// Feed returns the order-matcher's live feed of some topics, from an event's ID or a sequence on,
// or from the durable head. See FeedQuery for the topics and FeedOf for what the loop gets.
func (c *Client) Feed(ctx context.Context, from string, topics ...string) iter.Seq2[Event, error] {
	return c.FeedOf(ctx, FeedQuery{From: from, Topics: topics})
}

// FeedOf returns the live feed: every event of the selection behind the place where it begins, once
// and in order. When the connection ends, or the server is gone, the feed goes on behind the last
// event, at the same member or at another one, for as long as ctx lasts. A mark says how far the
// feed is when nothing else is sent.
//
// The last pair has the error that ended the feed: that of ctx, or one that the same request would
// get again, such as a *Problem with 401 TOKEN_EXPIRED or 503 ARCHIVE_NEEDED, or a token that
// cannot be sent. After 408, 429 and every other status from 500 on the feed is asked for again.
// Data is valid after the loop's next turn.
//
// The loop's body may take its time: what it does not take waits at the server, at most 1 MiB, and
// then the connection is made again behind the last event. The loop runs on the caller's goroutine;
// leaving it closes the connection.
func (c *Client) FeedOf(ctx context.Context, q FeedQuery) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		f := &feed{c: c, query: q.values(), last: q.From}
		for attempt := 1; ; attempt++ {
			before := f.heard
			err := f.connection(ctx, yield)
			switch {
			case f.left:
				return
			case ctx.Err() != nil:
				err = context.Cause(ctx)
				fallthrough
			case !passing(err):
				yield(Event{}, err)
				return
			}
			if q.Lost != nil {
				q.Lost(err)
			}
			if f.heard > before {
				attempt = 1
			}
			c.link.pause(ctx, attempt)
		}
	}
}

// archiveNeeded is the code, and the reason, of a history that only an operator can bring back.
const archiveNeeded = "ARCHIVE_NEEDED"

// passing reports an error of a connection that the next one need not meet.
func passing(err error) bool {
	var p *Problem
	if errors.As(err, &p) {
		return p.Status >= http.StatusInternalServerError && p.Code != archiveNeeded ||
			p.Status == http.StatusTooManyRequests || p.Status == http.StatusRequestTimeout
	}
	return !errors.Is(err, ErrAnswer) && !errors.Is(err, errUnsendable)
}

// values are the parameters of a feed from the head.
func (q *FeedQuery) values() url.Values {
	v := list(q.AccountID, 0, "")
	v.Set("topics", strings.Join(q.Topics, ","))
	return v
}

// feedSilent is after how long without a byte a connection counts as lost: the server sends a mark
// every 5 s, and may take 12 s until it answers.
const feedSilent = 20 * time.Second

// feed is the state of one loop over a feed.
//
// One goroutine, that of the loop, uses it.
type feed struct {
	c     *Client
	query url.Values // of a feed from the head
	last  string     // the ID behind which the next connection goes on
	left  bool       // the loop was left

	heard     uint64 // events so far, marks too
	snapshots int    // that have come with the ID last
	skip      int    // of them, how many the connection is still to repeat
}

// connection passes on the events of one connection. It returns why it has ended.
//
// A connection on which nothing comes for feedSilent is ended here: a peer that is gone without a
// word would otherwise hold the loop for ever.
func (f *feed) connection(ctx context.Context, yield func(Event, error) bool) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	silent := time.AfterFunc(feedSilent, func() { cancel(errSilent) })
	defer silent.Stop()
	// An event must not wait for the end of a compressed block.
	header := http.Header{"Accept": {"text/event-stream"}, "Accept-Encoding": {"identity"}}
	f.query.Del("fromSeq")
	if strings.Contains(f.last, ".") {
		header.Set("Last-Event-ID", f.last)
	} else {
		set(f.query, "fromSeq", f.last)
	}
	answer, err := f.c.stream(ctx, "/feed", f.query, header)
	if err != nil {
		return silence(ctx, err)
	}
	defer answer.Body.Close()
	f.skip = f.snapshots
	r := newEventReader(answer.Body)
	for {
		e, err := r.next()
		silent.Stop() // the time that the loop takes is its own
		if err != nil {
			return silence(ctx, fmt.Errorf("client: GET /feed: %w", err))
		}
		if e.Kind == "gone" {
			return gone(e.Data)
		}
		if f.note(&e) && !yield(e, nil) {
			f.left = true
			return nil
		}
		silent.Reset(feedSilent)
	}
}

// errSilent ends a connection on which nothing comes.
var errSilent = fmt.Errorf("client: nothing has come for %s", feedSilent)

// silence is err, or why the client has ended the connection itself.
func silence(ctx context.Context, err error) error {
	if errors.Is(context.Cause(ctx), errSilent) {
		return errSilent
	}
	return err
}

// note remembers where the feed is. It reports whether the event is new: a server repeats the
// snapshots of several books when the feed goes on behind one of them.
func (f *feed) note(e *Event) (fresh bool) {
	f.heard++
	again := e.ID == f.last
	if e.ID != "" && !again {
		f.last, f.snapshots, f.skip = e.ID, 0, 0
	}
	switch {
	case e.Kind == "":
		return false
	case e.Kind != "snapshot":
		return true
	case again && f.skip > 0:
		f.skip--
		return false
	}
	f.snapshots++
	return true
}

// gone is the error of a stream that the server has ended.
//
// A token that is not valid any more and a history that was moved into an archive are a *Problem,
// which ends the feed: the next connection would be refused as well. Every other reason is an error
// after which the feed goes on.
func gone(data []byte) error {
	var end struct{ Reason string }
	if err := json.Unmarshal(data, &end); err != nil {
		return fmt.Errorf("%w: event gone: %w", ErrAnswer, err)
	}
	switch end.Reason {
	case "TOKEN_EXPIRED":
		return &Problem{Status: http.StatusUnauthorized, Code: end.Reason,
			Detail: "the token that the topics ask for is not valid any more"}
	case archiveNeeded:
		return &Problem{Status: http.StatusServiceUnavailable, Code: end.Reason,
			Detail: "the history behind this place was moved into an archive that is not there"}
	}
	return fmt.Errorf("client: the server has ended the feed: %s", end.Reason)
}
