package installation

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"posttrade/app/apptest"
	"posttrade/app/engine"
	"posttrade/matcher/gate"
	"posttrade/ring/must"
	"posttrade/sidecars/bootstrap"
	"posttrade/sidecars/broker"
	"posttrade/sidecars/broker/brokertest"
	"posttrade/sidecars/control"
	"posttrade/sidecars/feeds"
	"posttrade/sidecars/outbox"
)

// replicaRig is the replica of one source as the program builds it, over a real engine and a real
// stream. Only the service from which it fetches belongs to the test.
type replicaRig struct {
	t      *testing.T
	k      *engine.Engine
	broker *broker.Broker
	boot   *bootstrap.Bootstrap

	mu       sync.Mutex // guards the next fields; the service answers under it
	snapshot control.Snapshot
	answer   func(w http.ResponseWriter, r *http.Request, good []byte) // nil: the correct answer
	leaks    int                                                       // rounds with an open gate
}

// newReplicaRig starts the account's replica with a universe of n accounts. The other source is
// ready, and no step changes it.
func newReplicaRig(t *testing.T, n int, change func(*bootstrap.Options)) *replicaRig {
	t.Helper()
	r := &replicaRig{t: t, k: feedCore(t, t.TempDir()),
		snapshot: control.Snapshot{Source: control.Account, Epoch: 7, Watermark: uint64(n)}}
	for v := range uint64(n) {
		r.snapshot.Records = append(r.snapshot.Records, control.Record{ID: uint32(v + 1), Name: "x",
			Enabled: true, Version: v + 1})
	}
	log := slog.New(slog.NewTextHandler(t.Output(), nil))
	var err error
	if r.broker,
		err = broker.Open(broker.Options{Dir: t.TempDir(), Name: "test", Logger: log}); err != nil {
		t.Fatal(err)
	}
	apptest.Until(t, "the embedded server runs",
		func() (bool, any) { ready, detail := r.broker.State(); return ready, detail })
	service := httptest.NewServer(http.HandlerFunc(r.serve))
	fetcher := feeds.NewSnapshotFetcher(nil, func(control.Source) int { return 0 },
		func() (string, error) { return "", nil })
	follow := feeds.FollowingOf(r.broker, control.Account, everyHand{}, bootstrap.DefaultMaxSilence)
	o := bootstrap.Options{
		Source: control.Account, Sink: &feeds.Sink{Source: control.Account, Gate: r.k.Gate,
			Desk: r.k.Desk, Views: r.k.Views, Now: time.Now, Log: log}, Logger: log,
		Jitter: func() float64 { return 0 },
		Follow: func(ctx context.Context) (bootstrap.Feed, error) {
			r.closedGate()
			return follow(ctx)
		},
		Fetch: func(ctx context.Context) (control.Snapshot, error) {
			r.closedGate()
			return fetcher.Fetch(ctx, control.Account, service.Listener.Addr().String())
		},
	}
	if change != nil {
		change(&o)
	}
	must.OK(t, r.k.Gate.SetSource("security", gate.Ready, 1, 5, 5, ""))
	r.boot = bootstrap.New(o)
	end := during(t, func(ctx context.Context) { r.boot.Run(ctx) })
	t.Cleanup(func() {
		end()
		service.CloseClientConnections()
		service.Close()
		if err := r.broker.Close(); err != nil {
			t.Error(err)
		}
		if err := r.k.Stop(); err != nil {
			t.Error(err)
		}
		if r.leaks > 0 {
			t.Errorf("%d bootstraps began while the gate was open", r.leaks)
		}
	})
	return r
}

// everyHand takes every message on the stream for one of the source's; the source has no outbox
// here.
type everyHand struct{}

func (everyHand) Own(_ context.Context, _ uint64, m *outbox.Message) (bool, uint64, error) {
	d, _ := control.ParseDelta(control.Account, m.Data) // a message that is no delta has no version
	return true, d.Version, nil
}
func (everyHand) CountForeign(*outbox.Message) {}

// closedGate counts a bootstrap that runs while orders are admitted.
func (r *replicaRig) closedGate() {
	open := r.k.Gate.Ready()
	r.mu.Lock()
	defer r.mu.Unlock()
	if open {
		r.leaks++
	}
}

func (r *replicaRig) serve(w http.ResponseWriter, asked *http.Request) {
	r.mu.Lock()
	answer, good := r.answer, r.snapshot.AppendJSON(nil)
	r.mu.Unlock()
	if asked.URL.Path != feeds.SnapshotPaths[control.Account] {
		http.NotFound(w, asked)
		return
	}
	if answer == nil {
		w.Write(good)
		return
	}
	answer(w, asked, good)
}

// answering sets the answer of the service; nil: the correct one.
func (r *replicaRig) answering(answer func(w http.ResponseWriter, asked *http.Request,
	good []byte)) {
	r.mu.Lock()
	r.answer = answer
	r.mu.Unlock()
}

// commit changes an account at the source and returns the delta, which is not published yet.
func (r *replicaRig) commit(id uint32, enabled bool) []byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := &r.snapshot
	s.Watermark++
	s.Records = slices.Clone(s.Records)
	at := slices.IndexFunc(s.Records, func(x control.Record) bool { return x.ID == id })
	s.Records[at].Enabled, s.Records[at].Version = enabled, s.Watermark
	d := control.Delta{Source: s.Source, Epoch: s.Epoch, Version: s.Watermark, Record: s.Records[at]}
	return d.AppendJSON(nil)
}

func (r *replicaRig) publish(payload []byte) {
	r.t.Helper()
	if _, err := r.broker.Publish(context.Background(), control.Account.Subject(), payload,
		broker.PublishOptions{}); err != nil {
		r.t.Error(err)
	}
}

// quarantined returns when a reason has been counted more than n times.
func (r *replicaRig) quarantined(reason bootstrap.Reason, n uint64) {
	r.t.Helper()
	apptest.Until(r.t, string(reason), func() (bool, any) {
		s := r.boot.Status()
		return s.Quarantines[reason] > n, s
	})
}

// whole returns when the source is ready again and the gate has its universe.
func (r *replicaRig) whole() {
	r.t.Helper()
	r.mu.Lock()
	want := r.snapshot
	r.mu.Unlock()
	apptest.Until(r.t, "ready, with the source's universe", func() (bool, any) {
		image := r.k.Gate.Snapshot()
		enabled := map[uint32]bool{}
		for _, a := range image.Accounts {
			enabled[a.ID] = a.Enabled
		}
		for _, x := range want.Records {
			if enabled[x.ID] != x.Enabled {
				return false, fmt.Sprintf("account %d: %+v", x.ID, image.Sources)
			}
		}
		s := r.boot.Status()
		return image.Ready && s.Watermark == want.Watermark, s
	})
	for _, s := range r.k.Gate.Snapshot().Sources {
		if s.Name == "security" && (s.State != gate.Ready || s.Epoch != 1 || s.Watermark != 5 ||
			s.LastReason != "") {
			r.t.Errorf("the other source has noticed: %+v", s)
		}
	}
}

// again makes the replica fetch once more: it publishes a message that is no delta.
func (r *replicaRig) again() { r.publish([]byte("not a delta")) }

// TestBadSnapshots answers the replica's fetch with every kind of bad snapshot, and then with a
// good one.
func TestBadSnapshots(t *testing.T) {
	replaced := func(old, new string) func(http.ResponseWriter, *http.Request, []byte) {
		return func(w http.ResponseWriter, _ *http.Request, good []byte) {
			if !strings.Contains(string(good), old) {
				t.Errorf("the snapshot has no %s", old)
			}
			fmt.Fprint(w, strings.Replace(string(good), old, new, 1))
		}
	}
	first, second := `{"displayName":"x","enabled":true,"id":1,"version":1}`,
		`{"displayName":"x","enabled":true,"id":2,"version":2}`
	for _, tt := range []struct {
		name   string
		reason bootstrap.Reason
		answer func(http.ResponseWriter, *http.Request, []byte)
	}{
		{"a record was changed", bootstrap.ChecksumFailure,
			replaced(`"enabled":true,"id":2`, `"enabled":false,"id":2`)},
		{"another epoch under the same checksum", bootstrap.ChecksumFailure,
			replaced(`"sourceEpoch":7`, `"sourceEpoch":8`)},
		{"a record is missing", bootstrap.CountMismatch, replaced(first+",", "")},
		{"the count is another", bootstrap.CountMismatch, replaced(`"count":3`, `"count":4`)},
		{"out of order", bootstrap.Malformed, replaced(first+","+second, second+","+first)},
		{"twice", bootstrap.Malformed, replaced(first, first+","+first)},
		{"a later schema", bootstrap.Malformed, replaced(`"schemaVersion":1`, `"schemaVersion":2`)},
		{"of the other source", bootstrap.Malformed,
			replaced(`"source":"account"`, `"source":"security"`)},
		{"a version above the watermark", bootstrap.Malformed, replaced(`"version":3`, `"version":4`)},
		{"half of it", bootstrap.Malformed, func(w http.ResponseWriter, _ *http.Request, good []byte) {
			w.Write(good[:len(good)/2])
		}},
		{"the connection breaks", bootstrap.Disconnected, func(w http.ResponseWriter, _ *http.Request,
			good []byte) {
			w.Header().Set("Content-Length", fmt.Sprint(len(good)))
			w.Write(good[:len(good)/2])
		}},
		{"an error of the service", bootstrap.Disconnected, func(w http.ResponseWriter, _ *http.Request,
			good []byte) {
			w.WriteHeader(http.StatusInternalServerError)
			w.Write(good)
		}},
		{"no answer", bootstrap.Disconnected, func(_ http.ResponseWriter, asked *http.Request, _ []byte) {
			<-asked.Context().Done()
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := newReplicaRig(t, 3, func(o *bootstrap.Options) { o.FetchTimeout = time.Second / 5 })
			r.whole()
			sequenced := r.k.Journal.Answered()
			for n := range *feedRepeats {
				before := r.boot.Status()
				r.answering(tt.answer)
				r.again()
				r.quarantined(tt.reason, before.Quarantines[tt.reason])
				if r.k.Gate.Ready() {
					t.Error("orders are let in on a bad snapshot")
				}
				if now := r.k.Journal.Answered(); now != sequenced {
					t.Fatalf("round %d: %d commands of a bad snapshot were sequenced", n, now-sequenced)
				}
				r.answering(nil)
				r.whole()
				for reason, of := range r.boot.Status().Quarantines {
					if reason != tt.reason && reason != bootstrap.Malformed && of > 0 {
						t.Errorf("%d quarantines for %s", of, reason)
					}
				}
			}
		})
	}
}

// TestBufferOverflow stalls the snapshot until more deltas have come than the replica may hold;
// TestLateDeltas stalls it until fewer have come.
func TestBufferOverflow(t *testing.T) {
	r := newReplicaRig(t, 3, func(o *bootstrap.Options) { o.BufferCapacity = 4 })
	r.whole()
	for n := range *feedRepeats {
		before := r.boot.Status()
		r.duringFetch(func() {
			for v := range 6 {
				r.publish(r.commit(2, v%2 == n%2))
			}
			r.quarantined(bootstrap.BufferOverflow, before.Quarantines[bootstrap.BufferOverflow])
		})
		r.whole()
	}
}

// duringFetch makes the replica fetch again and calls do between its subscription and the answer.
func (r *replicaRig) duringFetch(do func()) {
	r.t.Helper()
	arrived, answer := make(chan struct{}), make(chan struct{})
	var once sync.Once
	r.answering(func(w http.ResponseWriter, asked *http.Request, _ []byte) {
		once.Do(func() { close(arrived) })
		select {
		case <-answer:
		case <-asked.Context().Done():
			return
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		w.Write(r.snapshot.AppendJSON(nil))
	})
	r.again()
	<-arrived
	do()
	r.answering(nil)
	close(answer)
}

func TestLateDeltas(t *testing.T) {
	r := newReplicaRig(t, 3, nil)
	r.whole()
	var last uint64
	for n := range *feedRepeats {
		before := r.boot.Status()
		r.duringFetch(func() {
			for v := range 100 {
				r.publish(r.commit(uint32(v%3+1), v%2 == n%2))
			}
			r.mu.Lock()
			last = r.snapshot.Watermark
			r.mu.Unlock()
			apptest.Until(t, "all have been seen", func() (bool, any) {
				s := r.boot.Status()
				return s.HighWatermark == last, s
			})
		})
		r.whole()
		after := r.boot.Status()
		if late, found := after.Late-before.Late, quarantines(&after)-quarantines(&before); late != 100 ||
			found != 1 {
			t.Errorf("round %d: %d of 100 deltas were late, %d quarantines", n, late, found)
		}
		if after.Applied != before.Applied {
			t.Errorf("round %d: %d late deltas were applied", n, after.Applied-before.Applied)
		}
	}
}

// TestHoleInTheStreamIsAGap removes a message from the stream that the replica's subscription has
// not delivered yet.
func TestHoleInTheStreamIsAGap(t *testing.T) {
	server := brokertest.External(t)
	b, err := broker.Open(broker.Options{URL: server.URL(), Name: "test"})
	must.OK(t, err)
	defer b.Close()
	feed, err := feeds.FollowingOf(b, control.Account, everyHand{},
		bootstrap.DefaultMaxSilence)(t.Context())
	must.OK(t, err)
	defer feed.Close()
	if version, payload := feed.Last(); version != 0 || payload != nil {
		t.Errorf("an empty stream ends with version %d, %s", version, payload)
	}
	for version := range uint64(3) {
		must.Get(b.Publish(t.Context(), control.Account.Subject(), deltaByHand(1, version+1),
			broker.PublishOptions{}))(t)
	}
	server.DeleteMessage(control.Account.Stream(), 2)
	payloads, err := feed.Next(t.Context())
	if err != nil || len(payloads) != 1 || string(payloads[0]) != string(deltaByHand(1, 1)) {
		t.Fatalf("before the hole: %s, %v", payloads, err)
	}
	if _, err := feed.Next(t.Context()); !errors.Is(err, bootstrap.ErrGap) {
		t.Errorf("behind the hole: %v", err)
	}
	late, err := feeds.FollowingOf(b, control.Account, everyHand{},
		bootstrap.DefaultMaxSilence)(t.Context())
	must.OK(t, err)
	defer late.Close()
	if version, payload := late.Last(); version != 3 || string(payload) != string(deltaByHand(1, 3)) {
		t.Errorf("the stream ends with version %d, %s", version, payload)
	}
}
