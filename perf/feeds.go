package perf

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// What the row asks for: changes a second, and seconds until a server with a large universe is
// ready.
var (
	deltasRate    = atLeast("P11", 100_000, "deltas/s, read, sequenced and durable")
	bootstrapTime = atMost("P11", 2, "bootstrap of %d securities, from the subscription to ready, s").
			as("bootstrap of 100,000 securities, s")
)

// measureFeeds is row P11: from the commit of a change to the gate, deltas per second, and the
// bootstrap of a large universe. An error of one part does not keep the others from being measured.
func measureFeeds(r *Run) error {
	return errors.Join(r.commitsToGate(), r.withFeed("deltas", r.deltas), r.bootstrap())
}

// deltas sends a million changes of accounts through the replica into the engine until they are
// sequenced and durable. It is the rate of one source, with nothing beside it: parsing, checking,
// sequencing in mode fsync. The broker and the making of the deltas are not in it, see deltaFeed.
func (r *Run) deltas(_ *fullEngine, f *feedReplays) error {
	n := r.scale(1_000_000)
	f.feed.prepare(n)
	start := time.Now()
	if err := f.replay(n); err != nil {
		return err
	}
	took := time.Since(start)
	rate := float64(n) / took.Seconds()
	r.bench("Feeds/op=deltas", n, took, metric{rate, "deltas/s"})
	r.judge(deltasRate, rate)
	return nil
}

// bootstrap starts a server with a large universe in its reference data, and reads from the
// server's own metric how long its replica took, in seconds, from the subscription to ready.
// Source, replica and engine are in that one process, on an empty journal: every security is a
// command. The start itself is not in the figure, and the universe comes from seed files, not from
// a database that had it before.
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
	c, err := r.startServer("bootstrap", "--seed.securities="+seeds, "--risk.seed.securities=T0",
		"--risk.max-securities=131072", "--risk.max-accounts=64")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.stop()) }()
	seconds, err := c.metric("svc_replica_bootstrap_seconds", `source="security"`)
	if err != nil {
		return err
	}
	r.figures(fmt.Sprintf("Feeds/op=bootstrap/securities=%d", n), metric{seconds, "s"})
	r.judge(bootstrapTime, seconds, n)
	return nil
}
