package perf

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"posttrade/matcher/flow"
	"posttrade/sidecars/outbox"
	"posttrade/sidecars/securities"
	"posttrade/sidecars/source"
	"posttrade/sidecars/store"
)

// What the row asks for, in milliseconds at the median: with a wake-up a change must pass as fast
// as outbox, broker and replica work; without one, it waits for the poll, half of its interval on
// average, and the limit is an interval and a fifth.
var (
	gateWoken  = atMost("P11", 5, "outbox commit to gate, p50, ms, with the wake-up")
	gatePolled = atMost("P11", 300, fmt.Sprintf(
		"outbox commit to gate, p50, ms, with the poll of %d ms", outbox.DefaultPoll.Milliseconds()))
)

// pollChanges is how many changes wait for the poll. Each takes about an interval, so the row takes
// some ten seconds.
const pollChanges = 40

// commitsToGate is the first part of row P11: the time from the commit of a change to the gate of a
// server, with the wake-up and with the poll alone. The server is a process of its own with its
// sidecars, its database and its broker, and takes no other load.
//
// The time begins when the caller knows of the commit, and ends when an order for the new security
// has been answered with 201. So it has an HTTP round trip and the commit of that order in it, and
// misses what passed between the commit of the change and the caller's knowledge.
func (r *Run) commitsToGate() (err error) {
	c, err := r.startServer("feeds")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.stop()) }()
	return errors.Join(r.wakeToGate(c), r.pollToGate(c))
}

// wakeToGate adds securities over HTTP, one at a time: the server's own handler commits, and wakes
// its outbox. It asks again without a pause.
func (r *Run) wakeToGate(c *child) error {
	p50, err := r.commitToGate("Feeds/op=commit-to-gate", r.scale(20_000)/100,
		gateAsks{addr: c.addr, prefix: "NEW"}, func(ticker string) error {
			status, err := post("http://"+c.ports["reference-data"]+"/stocks",
				map[string]any{"ticker": ticker, "companyName": ticker})
			if err == nil && status != http.StatusCreated {
				err = fmt.Errorf("POST /stocks: status %d", status)
			}
			return err
		})
	if err == nil {
		r.judge(gateWoken, p50)
	}
	return err
}

// pollToGate adds securities in the way of another program that writes into the server's database.
// No part of the server is notified, so only the poll of the outbox finds them. Their times are
// independent of the poll's.
func (r *Run) pollToGate(c *child) (err error) {
	ctx := context.Background()
	db, err := store.Open(store.Options{Dir: c.dir})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	if err := db.Ready(ctx); err != nil {
		return err
	}
	others := securities.New(source.Options{DB: db}) // without a publisher to wake
	random := flow.NewRandom(5)
	n := max(r.scale(pollChanges), 3)
	asks := gateAsks{addr: c.addr, prefix: "POLL", every: time.Millisecond}
	p50, err := r.commitToGate("Feeds/op=poll-to-gate", n, asks, func(ticker string) error {
		time.Sleep(time.Duration(random.N(uint64(outbox.DefaultPoll))))
		_, _, _, err := others.Upsert(ctx, securities.Stock{Ticker: ticker, CompanyName: ticker,
			Enabled: true})
		return err
	})
	if err == nil {
		r.judge(gatePolled, p50).
			beside("%d changes written by another process", n)
	}
	return err
}

// commitToGate adds n securities, one at a time, and asks until the server admits an order for
// each. It returns the median of the time that takes after the commit, in ms. Tickers are the
// prefix and a number, so two calls on one server need different prefixes.
func (r *Run) commitToGate(name string, n int, asks gateAsks,
	add func(ticker string) error) (p50 float64, err error) {
	ns := make([]int64, 0, n)
	for i := range n {
		ticker := fmt.Sprintf("%s%d", asks.prefix, i)
		if err := add(ticker); err != nil {
			return 0, err
		}
		took, err := asks.untilIn(ticker)
		if err != nil {
			return 0, err
		}
		ns = append(ns, took.Nanoseconds())
	}
	p50 = float64(percentile(ns, 50)) / 1e6
	r.figures(name, metric{p50, "p50-ms"}, metric{float64(percentile(ns, 99)) / 1e6, "p99-ms"},
		metric{float64(n), "changes"})
	return p50, nil
}

// gatePatience is how long a change may take to reach the gate; later is an error.
const gatePatience = 10 * time.Second

// gateAsks asks an order-matcher whether it admits orders for a security.
type gateAsks struct {
	// addr is the order-matcher's host:port.
	addr string
	// prefix begins the tickers.
	prefix string
	// every is the pause between two requests; 0 for none.
	every time.Duration
}

// untilIn is the time from now until an order is admitted. Only 422, the refusal of an unknown
// security, is asked again; any other status is an error. The resolution is a request's own time.
func (g gateAsks) untilIn(ticker string) (time.Duration, error) {
	order := map[string]any{"accountId": 1, "security": ticker, "side": "Buy", "quantity": 1,
		"limitPrice": 1}
	start := time.Now()
	for {
		status, err := post("http://"+g.addr+"/orders", order)
		took := time.Since(start)
		switch {
		case err != nil:
			return 0, err
		case status == http.StatusCreated:
			return took, nil
		case status != http.StatusUnprocessableEntity || took > gatePatience:
			return 0, fmt.Errorf("an order for %s: status %d after %v", ticker, status, took)
		}
		time.Sleep(g.every)
	}
}

// post sends a body as JSON and returns the status of the answer, which it reads to its end, so
// that the connection is used again.
func post(url string, body any) (status int, err error) {
	text, err := json.Marshal(body)
	if err != nil {
		return 0, err
	}
	answer, err := http.Post(url, "application/json", bytes.NewReader(text))
	if err != nil {
		return 0, err
	}
	defer answer.Body.Close()
	_, err = io.Copy(io.Discard, answer.Body)
	return answer.StatusCode, err
}
