package bootstrap

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"posttrade/sidecars/control"
)

// upstream is a source and its stream in memory: it behaves like a real one, without the network.
// mu guards all of it.
type upstream struct {
	source control.Source

	mu      sync.Mutex
	epoch   uint64
	records map[uint32]control.Record
	version uint64
	stream  [][]byte // every payload that was ever published
	feeds   []*fakeFeed
	held    [][]byte // committed, not published: the publisher is late

	late      bool          // publishing waits for release
	followErr error         // the error of a subscription
	fetchErr  error         // the error of a fetch
	stall     chan struct{} // a fetch waits for it
	fetches   int
	damage    func(*control.Snapshot) // changes a snapshot before it is returned
}

func newUpstream(source control.Source) *upstream {
	return &upstream{source: source, epoch: 1000, records: map[uint32]control.Record{}}
}

// commit changes a record. The new version is in the database at once, and on the stream now or,
// when the publisher is late, at release.
func (u *upstream) commit(id uint32, enabled bool) uint64 {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.version++
	r := control.Record{ID: id, Name: fmt.Sprint("account ", id), Enabled: enabled, Version: u.version}
	if u.source == control.Security {
		r.ID, r.Ticker = 0, fmt.Sprintf("T%d", id)
	}
	u.records[id] = r
	d := control.Delta{Source: u.source, Epoch: u.epoch, Version: u.version, Record: r}
	u.held = append(u.held, d.AppendJSON(nil))
	if !u.late {
		u.flush()
	}
	return u.version
}

// forgetTwo restores the database to the state before its last two changes, which were of accounts
// 4 and 5.
func forgetTwo(u *upstream) {
	u.version -= 2
	delete(u.records, 5)
	delete(u.records, 4)
}

// release publishes the held changes.
func (u *upstream) release() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.flush()
}

func (u *upstream) flush() {
	for _, payload := range u.held {
		u.put(payload)
	}
	u.held = nil
}

// publish puts a payload, valid or not, on the stream.
func (u *upstream) publish(payload []byte) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.put(payload)
}

func (u *upstream) put(payload []byte) {
	u.stream = append(u.stream, payload)
	for _, f := range u.feeds {
		f.push(payload)
	}
}

// delta returns the payload of a version.
func (u *upstream) delta(epoch, version uint64, id uint32) []byte {
	r := control.Record{ID: id, Name: "x", Enabled: true, Version: version}
	if u.source == control.Security {
		r.ID, r.Ticker = 0, fmt.Sprintf("T%d", id)
	}
	d := control.Delta{Source: u.source, Epoch: epoch, Version: version, Record: r}
	return d.AppendJSON(nil)
}

func (u *upstream) follow(context.Context) (Feed, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.followErr != nil {
		return nil, u.followErr
	}
	f := &fakeFeed{arrived: make(chan struct{}, 1), heard: time.Now()}
	if n := len(u.stream); n > 0 {
		if d, err := control.ParseDelta(u.source, u.stream[n-1]); err == nil {
			f.high, f.last = d.Version, u.stream[n-1]
		}
	}
	u.feeds = append(u.feeds, f)
	return f, nil
}

func (u *upstream) fetch(ctx context.Context) (control.Snapshot, error) {
	u.mu.Lock()
	u.fetches++
	stall := u.stall
	u.mu.Unlock()
	if stall != nil {
		select {
		case <-stall:
		case <-ctx.Done():
			return control.Snapshot{}, ctx.Err()
		}
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.fetchErr != nil {
		return control.Snapshot{}, u.fetchErr
	}
	s := control.Snapshot{Source: u.source, Epoch: u.epoch, Watermark: u.version}
	for _, r := range u.records {
		s.Records = append(s.Records, r)
	}
	slices.SortFunc(s.Records, func(a, b control.Record) int {
		if u.source == control.Security {
			return slices.Compare([]byte(a.Ticker), []byte(b.Ticker))
		}
		return int(a.ID) - int(b.ID)
	})
	if u.damage != nil {
		u.damage(&s)
	}
	return s, nil
}

// set changes the upstream's behaviour.
func (u *upstream) set(change func(*upstream)) {
	u.mu.Lock()
	defer u.mu.Unlock()
	change(u)
}

// fakeFeed is one subscription.
type fakeFeed struct {
	high uint64
	last []byte

	mu      sync.Mutex
	queue   [][]byte
	lost    error
	heard   time.Time
	arrived chan struct{}
}

func (f *fakeFeed) push(payload []byte) {
	f.mu.Lock()
	f.queue, f.heard = append(f.queue, payload), time.Now()
	f.mu.Unlock()
	f.wake()
}

func (f *fakeFeed) wake() {
	select {
	case f.arrived <- struct{}{}:
	default:
	}
}

// lose ends the subscription.
func (f *fakeFeed) lose(err error) {
	f.mu.Lock()
	f.lost = err
	f.mu.Unlock()
	f.wake()
}

// beat sends a heartbeat.
func (f *fakeFeed) beat() {
	f.mu.Lock()
	f.heard = time.Now()
	f.mu.Unlock()
}

func (f *fakeFeed) Last() (uint64, []byte) { return f.high, f.last }
func (f *fakeFeed) Close() error           { return errors.New("lost already") }

func (f *fakeFeed) LastHeard() time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.heard
}

func (f *fakeFeed) Next(ctx context.Context) ([][]byte, error) {
	for {
		f.mu.Lock()
		queue, lost := f.queue, f.lost
		f.queue = nil
		f.mu.Unlock()
		if len(queue) > 0 {
			return queue, nil
		}
		if lost != nil {
			return nil, lost
		}
		select {
		case <-f.arrived:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// universe is a Sink that keeps the records and checks its calls.
type universe struct {
	mu       sync.Mutex
	records  map[uint32]control.Record
	at       uint64
	states   []State
	reasons  []Reason
	installs int
	applyErr error
	hold     chan struct{} // Apply waits for it
	wrong    []string
}

func (s *universe) Install(_ context.Context, snapshot control.Snapshot) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.installs++
	s.records = map[uint32]control.Record{}
	for i, r := range snapshot.Records {
		s.records[keyOf(r, i)] = r
	}
	s.at = snapshot.Watermark
	return nil
}

func (s *universe) installed() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.installs
}

// keyOf maps the rig's securities to keys of the same map.
func keyOf(r control.Record, _ int) uint32 {
	if r.ID == 0 {
		var n uint32
		fmt.Sscanf(r.Ticker, "T%d", &n)
		return n
	}
	return r.ID
}

func (s *universe) Apply(ctx context.Context, deltas []control.Delta) error {
	s.mu.Lock()
	hold, err := s.hold, s.applyErr
	s.mu.Unlock()
	if hold != nil {
		select {
		case <-hold:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, d := range deltas {
		if d.Version != s.at+1 {
			s.wrong = append(s.wrong, fmt.Sprintf("version %d after %d", d.Version, s.at))
		}
		s.at = d.Version
		s.records[keyOf(d.Record, 0)] = d.Record
	}
	return nil
}

func (s *universe) SetState(state State, _, _, _ uint64, reason Reason) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.states, s.reasons = append(s.states, state), append(s.reasons, reason)
}

// rig is a source with its replica, in a bubble of virtual time.
type rig struct {
	t    *testing.T
	up   *upstream
	sink *universe
	b    *Bootstrap
	stop func()
}

// following starts a replica of a source with a few records and waits until it is ready.
func following(t *testing.T, source control.Source, change func(*Options)) *rig {
	t.Helper()
	r := started(t, source, change)
	r.wait(Ready)
	return r
}

func started(t *testing.T, source control.Source, change func(*Options)) *rig {
	t.Helper()
	r := &rig{t: t, up: newUpstream(source), sink: &universe{}}
	for id := uint32(1); id <= 5; id++ {
		r.up.commit(id, true)
	}
	o := Options{Source: source, Follow: r.up.follow, Fetch: r.up.fetch, Sink: r.sink,
		Jitter: func() float64 { return 0.5 }}
	if change != nil {
		change(&o)
	}
	r.b = New(o)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- r.b.Run(ctx) }()
	r.stop = func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("Run: %v", err)
		}
	}
	return r
}

// wait lets virtual time pass until the source is in a state.
func (r *rig) wait(want State) {
	r.t.Helper()
	for range 4000 {
		synctest.Wait()
		if r.b.Status().State == want {
			return
		}
		<-time.After(50 * time.Millisecond) // of virtual time
	}
	r.t.Fatalf("state %v, want %v: %+v", r.b.Status().State, want, r.b.Status())
}

// same asserts that the replica is ready and holds the same records as the source.
func (r *rig) same() {
	r.t.Helper()
	r.wait(Ready)
	synctest.Wait()
	r.up.mu.Lock()
	defer r.up.mu.Unlock()
	r.sink.mu.Lock()
	defer r.sink.mu.Unlock()
	if len(r.sink.wrong) > 0 {
		r.t.Fatalf("applied out of order: %v", r.sink.wrong)
	}
	if fmt.Sprint(r.sink.records) != fmt.Sprint(r.up.records) {
		r.t.Fatalf("the replica holds %v, the source %v", r.sink.records, r.up.records)
	}
}

func (r *rig) feed() *fakeFeed {
	r.up.mu.Lock()
	defer r.up.mu.Unlock()
	return r.up.feeds[len(r.up.feeds)-1]
}
