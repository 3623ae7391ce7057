package perf

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"sync/atomic"
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
	return errors.Join(r.commitToGate(), r.deltas(), r.bootstrap())
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

// memoryFeed is a subscription whose messages are there already.
type memoryFeed struct {
	batches [][][]byte
	next    int
}

func (f *memoryFeed) Last() (uint64, []byte) { return 0, nil }
func (f *memoryFeed) LastHeard() time.Time   { return time.Now() }
func (f *memoryFeed) Close() error           { return nil }
func (f *memoryFeed) Next(ctx context.Context) ([][]byte, error) {
	if f.next == len(f.batches) {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	f.next++
	return f.batches[f.next-1], nil
}

// watched is Controls that notes when a version has been applied.
type watched struct {
	Controls
	want    uint64
	at      atomic.Uint64
	reached chan struct{}
}

func (w *watched) Apply(ctx context.Context, deltas []control.Delta) error {
	err := w.Controls.Apply(ctx, deltas)
	if last := deltas[len(deltas)-1].Version; err == nil {
		if w.at.Store(last); last >= w.want {
			close(w.reached)
		}
	}
	return err
}

// deltas pushes changes of accounts through the replica into the engine, sequenced and durable.
func (r *Run) deltas() (err error) {
	dir := filepath.Join(r.o.Dir, "deltas")
	e, err := r.o.Open(EngineOptions{Dir: dir, Durability: "fsync", Genesis: flowGenesis(1)})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, e.Close()) }()
	engine, ok := e.(feedEngine)
	if !ok {
		return errors.New("the engine takes no control changes")
	}
	const batch = 256
	n := r.scale(1_000_000) / batch * batch
	feed := &memoryFeed{}
	for v := 0; v < n; v += batch {
		payloads := make([][]byte, batch)
		for i := range payloads {
			d := control.Delta{Source: control.Account, Epoch: 1, Version: uint64(v + i + 1)}
			d.Record = control.Record{ID: uint32((v+i)%flowAccounts + 1), Name: "name of an account", Enabled: true, Version: d.Version}
			payloads[i] = d.AppendJSON(nil)
		}
		feed.batches = append(feed.batches, payloads)
	}
	sink := &watched{Controls: engine.NewControls(control.Account), want: uint64(n), reached: make(chan struct{})}
	b := bootstrap.New(bootstrap.Options{
		Source: control.Account, Sink: sink, BufferCapacity: n,
		Tail: func(context.Context) (bootstrap.Feed, error) { return feed, nil },
		Fetch: func(context.Context) (control.Snapshot, error) {
			return control.Snapshot{Source: control.Account, Epoch: 1}, nil
		},
	})
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	start := time.Now()
	go func() { ended <- b.Run(ctx) }()
	select {
	case <-sink.reached:
	case <-time.After(5 * time.Minute):
		err = fmt.Errorf("version %d of %d is applied after five minutes: %+v", sink.at.Load(), n, b.Status())
	}
	took := time.Since(start)
	cancel()
	if err = errors.Join(err, <-ended); err != nil {
		return err
	}
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
