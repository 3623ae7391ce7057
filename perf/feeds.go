package perf

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"posttrade/sidecars/bootstrap"
	"posttrade/sidecars/control"
)

// Controls carries the changes of a control source into the engine.
type Controls interface{ bootstrap.Sink }

// feedEngine is an engine that takes control changes.
type feedEngine interface {
	Engine
	NewControls(s control.Source) Controls
}

// measureFeeds is row P11: from the commit of a change to the gate, deltas a
// second, and the bootstrap of a large universe.
func measureFeeds(r *Run) error {
	return errors.Join(r.commitToGate(), r.withFeed("deltas", r.deltas), r.bootstrap())
}

// commitToGate adds securities over HTTP, one at a time, and asks the order-matcher
// until an order for each is let in.
func (r *Run) commitToGate() (err error) {
	c, err := r.startServer("feeds")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.stop()) }()
	ns := make([]int64, 0, 200)
	for i := range r.scale(20_000) / 100 {
		ticker := fmt.Sprintf("NEW%d", i)
		status, err := post("http://"+c.ports["reference-data"]+"/stocks", map[string]any{"ticker": ticker, "companyName": ticker})
		if err != nil {
			return err
		}
		if status != http.StatusCreated {
			return fmt.Errorf("POST /stocks: status %d", status)
		}
		start := time.Now()
		for {
			status, err := post("http://"+c.addr+"/orders", map[string]any{
				"accountId": 1, "security": ticker, "side": "Buy", "quantity": 1, "limitPrice": 1,
			})
			if err != nil {
				return err
			}
			if status == http.StatusCreated {
				break
			}
			if status != http.StatusUnprocessableEntity || time.Since(start) > 10*time.Second {
				return fmt.Errorf("an order for %s: status %d after %v", ticker, status, time.Since(start))
			}
		}
		ns = append(ns, time.Since(start).Nanoseconds())
	}
	p50 := float64(percentile(ns, 50)) / 1e6
	r.figures("Feeds/op=commit-to-gate", metric{p50, "p50-ms"}, metric{float64(percentile(ns, 99)) / 1e6, "p99-ms"})
	r.atMost("P11", "outbox commit to gate, p50, ms, with the wake-up", p50, 5)
	return nil
}

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

// deltas pushes changes of accounts through the replica into the engine, sequenced and durable.
func (r *Run) deltas(_ Engine, f *feedReplays) error {
	n := r.scale(1_000_000)
	f.feed.prepare(n)
	start := time.Now()
	if err := f.replay(n); err != nil {
		return err
	}
	took := time.Since(start)
	rate := float64(n) / took.Seconds()
	r.bench("Feeds/op=deltas", n, took, metric{rate, "deltas/s"})
	r.atLeast("P11", "deltas/s, read, sequenced and durable", rate, 100_000)
	return nil
}

// bootstrap starts a server whose reference data holds a large universe.
func (r *Run) bootstrap() (err error) {
	n := r.scale(100_000)
	seeds := filepath.Join(r.o.Dir, "many-securities.csv")
	var text bytes.Buffer
	text.WriteString("ticker,companyName,enabled,halted\n")
	for i := range n {
		fmt.Fprintf(&text, "T%d,Company number %d,true,false\n", i, i)
	}
	if err := os.WriteFile(seeds, text.Bytes(), 0o600); err != nil {
		return err
	}
	c, err := r.startServer("bootstrap", "--seed.securities="+seeds, "--risk.seed.securities=T0", "--risk.max-securities=131072", "--risk.max-accounts=64")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.stop()) }()
	seconds, err := c.metric("svc_replica_bootstrap_seconds", "security")
	if err != nil {
		return err
	}
	r.figures(fmt.Sprintf("Feeds/op=bootstrap/securities=%d", n), metric{seconds, "s"})
	r.atMost("P11", fmt.Sprintf("bootstrap of %d securities, from the subscription to ready, s", n), seconds, 2)
	return nil
}
