package outbox

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"posttrade/ring/must"
	"posttrade/sidecars/bootstrap"
	"posttrade/sidecars/broker"
	"posttrade/sidecars/control"
)

// feed is a Following in the form that a replica reads.
type feed struct {
	*broker.Following
	own     *Outbox
	version uint64
	payload []byte
}

func (f *feed) Last() (uint64, []byte) { return f.version, f.payload }

func (f *feed) Next(ctx context.Context) ([][]byte, error) {
	messages, err := f.Following.Next(ctx)
	if errors.Is(err, broker.ErrGap) {
		err = fmt.Errorf("%w: %w", bootstrap.ErrGap, err)
	}
	var payloads [][]byte
	for i := range messages {
		m := messageOf(&messages[i])
		mine, version, failed := f.own.Own(ctx, f.version, &m)
		switch {
		case failed != nil:
			return payloads, failed
		case mine:
			f.version, payloads = version, append(payloads, m.Data)
		default:
			f.own.CountForeign(&m)
		}
	}
	return payloads, err
}

// universe holds a replica's records.
type universe struct {
	mu      sync.Mutex
	records map[uint32]control.Record
	at      uint64
	wrong   string
}

func (u *universe) Install(_ context.Context, s control.Snapshot) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.records, u.at = map[uint32]control.Record{}, s.Watermark
	for _, r := range s.Records {
		u.records[r.ID] = r
	}
	return nil
}

func (u *universe) Apply(_ context.Context, deltas []control.Delta) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, d := range deltas {
		if d.Version != u.at+1 {
			u.wrong = fmt.Sprintf("version %d after %d", d.Version, u.at)
		}
		u.records[d.Record.ID], u.at = d.Record, d.Version
	}
	return nil
}

func (u *universe) SetState(bootstrap.State, uint64, uint64, uint64, bootstrap.Reason) {}

// holds reports whether the replica has exactly the records of a snapshot.
func (u *universe) holds(s *control.Snapshot) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	want := map[uint32]control.Record{}
	for _, r := range s.Records {
		want[r.ID] = r
	}
	return u.at == s.Watermark && maps.Equal(u.records, want)
}

// replica follows the rig's source over the stream, until the test ends.
func (r *rig) replica(behind bool) (*bootstrap.Bootstrap, *universe) {
	u := &universe{}
	// A busy machine must not look like a lost connection.
	heartbeat, silence := 30*time.Second, 5*time.Minute
	if behind {
		heartbeat, silence = time.Second, 4*time.Second // the publisher is asked every second
	}
	b, publisher := r.stream.broker, r.b
	o := bootstrap.Options{
		Source: account, Sink: u, MaxSilence: silence,
		Jitter: func() float64 { return 0 },
		Fetch: func(ctx context.Context) (control.Snapshot, error) { // over its text, as by HTTP
			s, err := r.s.Snapshot(ctx)
			if err != nil {
				return s, err
			}
			return control.ParseSnapshot(account, s.AppendJSON(nil))
		},
		Follow: func(ctx context.Context) (bootstrap.Feed, error) {
			if err := r.stream.Ensure(ctx); err != nil {
				return nil, err
			}
			following, err := b.Follow(ctx, account.Stream(), account.Subject(),
				broker.FollowOptions{Heartbeat: heartbeat})
			if err != nil {
				return nil, err
			}
			f := &feed{Following: following, own: publisher}
			for at := following.LastSequence(); at > 0 && f.version == 0; at-- {
				m, found, err := r.stream.At(ctx, at)
				mine, version := false, uint64(0)
				if found && err == nil {
					mine, version, err = publisher.Own(ctx, 0, &m)
				}
				if err != nil {
					return nil, errors.Join(err, following.Close())
				}
				if mine {
					f.version, f.payload = version, m.Data
				}
			}
			return f, nil
		},
	}
	if behind {
		o.Behind = func(ctx context.Context, watermark uint64) error {
			return publisher.Behind(ctx, watermark, 100*time.Millisecond)
		}
	}
	replica := bootstrap.New(o)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- replica.Run(ctx) }()
	r.t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			r.t.Errorf("the replica's Run: %v", err)
		}
	})
	return replica, u
}

// converges waits until the replica is ready and holds what the table holds.
func (r *rig) converges(replica *bootstrap.Bootstrap, u *universe) {
	r.t.Helper()
	until(r.t, "the replica is ready and equal to the table", func() bool {
		s := must.Get(r.s.Snapshot(r.t.Context()))(r.t)
		return replica.Status().State == bootstrap.Ready && u.holds(&s)
	})
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.wrong != "" {
		r.t.Error(u.wrong)
	}
}
