package perf

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"posttrade/perf/load"
	"posttrade/sidecars/bootstrap"
	"posttrade/sidecars/control"
	"posttrade/sidecars/feeds"
)

// What the row asks for: orders' p99 as besideLimit says, and no allocation of the stages that
// decide, also while the other source of commands is busy.
var (
	besideDeltas = atMost("P11", besideLimit,
		"p99 of orders while %d deltas are replayed, against without").
		as("p99 of orders while 500,000 deltas are replayed, against without")
	deltasAllocs = atMost("P11", 0,
		"allocations a command in gate, desk, matcher and recorder meanwhile").
		unless("a smoke run is too short")
)

// feedBatch is the number of deltas that a subscription delivers at once.
const feedBatch = 256

// deltaFeed is a subscription that delivers as many deltas as it is told to, in the order of their
// versions. The deltas are made on request or before. It stands in the place of a broker: what NATS
// costs is not in the rows that use it.
//
// The replica's goroutine reads it; another one tells it through more.
type deltaFeed struct {
	// more has one place: the number of deltas to deliver in addition.
	more chan int
	// next is the version of the last delta delivered. The reader owns it, and left.
	next uint64
	// left is how many deltas are still to be delivered.
	left int
	// ready is the next deltas, made already. The sender on more hands them over: it writes ready
	// before it sends, and not again before they are applied.
	ready [][]byte
}

// prepare makes the next n deltas, so that making them is not part of a measurement. The caller
// calls it before it tells the reader to deliver any.
func (f *deltaFeed) prepare(n int) {
	for i := range n {
		f.ready = append(f.ready, accountDelta(f.next+uint64(i)+1))
	}
}

// Last, LastHeard and Close are what a replica asks of a subscription: the stream had no message
// before it, it was heard just now, and there is nothing to close.
func (f *deltaFeed) Last() (uint64, []byte) { return 0, nil }
func (f *deltaFeed) LastHeard() time.Time   { return time.Now() }
func (f *deltaFeed) Close() error           { return nil }

// Next waits until deltas are asked for, then returns at most feedBatch of them, each as JSON.
// Deltas that prepare has made are used up first. The error is that of ctx.
func (f *deltaFeed) Next(ctx context.Context) ([][]byte, error) {
	if f.left == 0 {
		select {
		case n := <-f.more:
			f.left = n
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	n := min(f.left, feedBatch)
	f.left -= n
	if len(f.ready) >= n {
		payloads := f.ready[:n]
		f.ready, f.next = f.ready[n:], f.next+uint64(n)
		return payloads, nil
	}
	payloads := make([][]byte, n)
	for i := range payloads {
		f.next++
		payloads[i] = accountDelta(f.next)
	}
	return payloads, nil
}

// accountDelta changes one of the flow's accounts, which stays enabled: no order is refused for it.
// The accounts follow each other, so every delta is a change of its own, in JSON as a source
// publishes it.
func accountDelta(version uint64) []byte {
	d := control.Delta{Source: control.Account, Epoch: 1, Version: version,
		Record: accountRecord(version)}
	return d.AppendJSON(nil)
}

// accountRecord is the record of a version: the flow's accounts follow each other in the order of
// their numbers.
func accountRecord(version uint64) control.Record {
	return control.Record{ID: uint32((version-1)%flowAccounts + 1), Name: "name of an account",
		Enabled: true, Version: version}
}

// accountSnapshot is the source's state before its first delta: every account of the flow once.
func accountSnapshot(context.Context) (control.Snapshot, error) {
	s := control.Snapshot{Source: control.Account, Epoch: 1, Watermark: flowAccounts}
	for version := range uint64(flowAccounts) {
		s.Records = append(s.Records, accountRecord(version+1))
	}
	return s, nil
}

// marks are controls that report when the expected versions are applied: sequenced and durable,
// which is when the sink returns.
type marks struct {
	*feeds.Sink
	// want is the version to report. The caller of replay raises it before it asks for deltas.
	want atomic.Uint64
	// reached has one place, for the one replay that may be under way.
	reached chan struct{}
}

// Apply passes deltas on and reports the version that replay waits for, which is the last one of a
// replay's last batch. The replica's goroutine calls it.
func (m *marks) Apply(ctx context.Context, deltas []control.Delta) error {
	err := m.Sink.Apply(ctx, deltas)
	if err == nil && deltas[len(deltas)-1].Version == m.want.Load() {
		m.reached <- struct{}{}
	}
	return err
}

// feedReplays delivers deltas through a replica into an engine. One replay at a time.
type feedReplays struct {
	feed   *deltaFeed
	sink   *marks
	b      *bootstrap.Bootstrap
	cancel context.CancelFunc
	ended  chan error
}

// withFeed runs work with an engine of its own, in a folder of this name, in mode fsync, and with a
// feed that the engine follows. Both end when work has returned.
func (r *Run) withFeed(name string, work func(e *fullEngine, f *feedReplays) error) (err error) {
	e, err := r.open(engineOptions{folder: name, durability: "fsync", genesis: flowGenesis(1)})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, e.close()) }()
	f, err := startFeed(e)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.stop()) }()
	return work(e, f)
}

// startFeed starts a replica of a source of the flow's accounts. The source delivers deltas when it
// is told to.
func startFeed(e *fullEngine) (*feedReplays, error) {
	f := &feedReplays{
		feed:  &deltaFeed{more: make(chan int, 1), next: flowAccounts},
		sink:  &marks{Sink: e.controls(control.Account), reached: make(chan struct{}, 1)},
		ended: make(chan error, 1),
	}
	f.sink.want.Store(flowAccounts)
	f.b = bootstrap.New(bootstrap.Options{
		Source: control.Account, Sink: f.sink,
		Follow: func(context.Context) (bootstrap.Feed, error) { return f.feed, nil },
		Fetch:  accountSnapshot,
	})
	ctx, cancel := context.WithCancel(context.Background())
	f.cancel = cancel
	go func() { f.ended <- f.b.Run(ctx) }()
	for begun := time.Now(); f.b.Status().State != bootstrap.Ready; time.Sleep(time.Millisecond) {
		if time.Since(begun) > feedPatience {
			return nil, errors.Join(fmt.Errorf("the source is not ready after %v: %+v", feedPatience,
				f.b.Status()), f.stop())
		}
	}
	return f, nil
}

// feedPatience is how long a source of this size may take to be ready.
const feedPatience = 30 * time.Second

// stop ends the replica and returns its error.
func (f *feedReplays) stop() error {
	f.cancel()
	return <-f.ended
}

// replay delivers n deltas and returns when they are sequenced and durable. It gives up after
// longestPhase, with the version that was reached.
func (f *feedReplays) replay(n int) error {
	f.sink.want.Add(uint64(n))
	f.feed.more <- n
	select {
	case <-f.sink.reached:
		return nil
	case <-time.After(longestPhase):
		return fmt.Errorf("version %d of %d is applied after %v", f.b.Status().Watermark,
			f.sink.want.Load(), longestPhase)
	}
}

// measureFeedReplay is the last part of row P11: orders during the replay of a control source. It
// samples the heap meanwhile, to count allocations, which costs the allocating goroutines a little.
func measureFeedReplay(r *Run) error {
	return profiled(func() error { return r.withFeed("feed-beside", r.feedReplay) })
}

// feedReplay replays 500,000 deltas a round beside single orders at a tenth of saturation. Deltas
// are commands of the same engine, and the orders share the input ring with them. Unlike in the row
// of the deltas' rate, they are made while they are delivered, which takes a core's time too.
// Allocations are per command of both kinds, of the rounds with deltas only.
func (r *Run) feedReplay(e *fullEngine, f *feedReplays) error {
	n := max(r.scale(500_000), 10_000)
	clock := load.NewBusyClock()
	c := beside{name: "feed", target: newEngineTarget(e, clock), clock: clock,
		alone: r.duration(besideTurn),
		work:  func(int) error { return f.replay(n) }}
	if err := c.saturation(r, besideRate); err != nil {
		return err
	}
	before := e.readHeap()
	var hot, all float64 // allocations, and commands
	c.after = func(name string, orders int) {
		now := e.readHeap()
		if name == c.name {
			commands := orders + n // the deltas are commands too
			hot += float64(commands) * r.allocatedBy("Beside", now.profile.since(before.profile), commands,
				now.commits-before.commits)
			all += float64(commands)
		}
		before = now
	}
	p, err := r.besideWork(c)
	if err != nil {
		return err
	}
	r.judgeBeside(besideDeltas, p, n)
	if !r.o.Smoke {
		r.judge(deltasAllocs, roundTo(hot/all, allocNoise))
	}
	return nil
}
