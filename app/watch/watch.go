package watch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"posttrade/httpapi/client"
)

// Everything is what is watched when no topic is named: each topic, of books the best levels.
//
// Deeper levels of books are left out, because a snapshot of every book would come first.
var Everything = []string{"bbo:*", "trades", "orders", "prices", "controls", "contracts"}

// Options of Run.
//
// Query and Connect are required, and Notices.
type Options struct {
	Query client.FeedQuery // Lost is set by Run
	JSON  bool             // each event as {"id":...,"event":...,"data":...}, marks too
	Count uint64           // events after which the watch ends; 0: it does not
	// Connect makes the client, at the begin and again when its token has expired.
	Connect func() (*client.Client, error)
	// Notices gets a line when the server is gone.
	Notices io.Writer
	// Now is the clock; nil: time.Now.
	Now func() time.Time
}

// freshFor is how long a token is fresh. The server has said something by then, or refused it.
const freshFor = time.Minute

// Run prints events until ctx ends, the count is reached, or the server refuses the feed.
//
// A token that is refused is renewed behind the last event: it has expired, at the server or while
// the server was away. A fresh one that is refused before an event ends the watch, because another
// one would do no better.
//
// Errors: that of Connect, the server's refusal, a document that is none, and those of w. A nil
// error is the end of ctx, or of the count.
func Run(ctx context.Context, w io.Writer, o Options) error {
	p := &printer{w: w, o: o, last: o.Query.From}
	o.Query.Lost = p.lost
	if o.Now == nil {
		o.Now = time.Now
	}
	for {
		begun := o.Now()
		server, err := o.Connect()
		if err != nil {
			return err
		}
		err = p.follow(server.FeedOf(ctx, o.Query))
		server.Close()
		var problem *client.Problem
		switch {
		case ctx.Err() != nil || err == nil:
			return nil
		case !errors.As(err, &problem) || !refusedToken(problem.Code),
			p.last == o.Query.From && o.Now().Sub(begun) < freshFor:
			return err
		}
		o.Query.From = p.last
	}
}

// refusedToken reports a code of a token that is not taken, or not any more.
func refusedToken(code string) bool { return code == "TOKEN_EXPIRED" || code == "UNAUTHORIZED" }

// printer prints the events of one watch, over all its connections.
type printer struct {
	w io.Writer
	o Options
	n uint64 // events printed
	// Where the next connection goes on: the id of the last event, the query's From before the first.
	last string
	// The notice of this outage has been printed; the next event ends the outage.
	told bool
}

// lost is called by the client each time a connection is lost or cannot be made.
func (p *printer) lost(err error) {
	if !p.told {
		fmt.Fprintf(p.o.Notices, "posttrade: disconnected, trying again: %v\n", err)
	}
	p.told = true
}

// follow prints events until the feed ends with an error, or the count is reached. Marks have an
// id and do not count.
func (p *printer) follow(feed func(func(client.Event, error) bool)) error {
	for e, err := range feed {
		if err != nil {
			return err
		}
		p.told = false
		if e.ID != "" {
			p.last = e.ID
		}
		line, err := p.line(&e)
		if err != nil {
			return fmt.Errorf("event %s %s: %w", e.ID, e.Kind, err)
		}
		if _, err := io.WriteString(p.w, line); err != nil {
			return err
		}
		if e.Kind == "mark" {
			continue
		}
		if p.n++; p.n == p.o.Count {
			return nil
		}
	}
	return nil
}

// jsonLine is an event as a program reads it.
type jsonLine struct {
	ID    string          `json:"id,omitempty"`
	Event string          `json:"event"`
	Data  json.RawMessage `json:"data"`
}

// line is an event as it is printed; empty when it is not.
//
// The columns are id, kind, security and text.
func (p *printer) line(e *client.Event) (string, error) {
	if p.o.JSON {
		text, err := json.Marshal(jsonLine{e.ID, e.Kind, e.Data})
		return string(text) + "\n", err
	}
	if e.Kind == "mark" {
		return "", nil
	}
	var d document
	if err := json.Unmarshal(e.Data, &d); err != nil {
		return "", err
	}
	text := d.text(e.Kind)
	if text == "" {
		text = string(e.Data)
	}
	security := d.Security
	if security == "" {
		security = "-"
	}
	return fmt.Sprintf("%-12s  %-8s  %-8s  %s\n", e.ID, e.Kind, printable(security),
		printable(text)), nil
}
