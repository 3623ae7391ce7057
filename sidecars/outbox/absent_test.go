package outbox

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"posttrade/ring/must"
	"posttrade/ring/waittest"
	"posttrade/sidecars/broker"
	"posttrade/sidecars/broker/brokertest"
	"posttrade/sidecars/store"
	"posttrade/sidecars/store/storetest"
)

// NATS is absent when the program starts. Changes are committed all the same, the metrics show how
// many wait and for how long, and the log says so once. All changes are published in order when the
// server comes.
func TestBrokerAbsentAtTheStart(t *testing.T) {
	n := size(300, 60)
	storetest.EachInFull(t, func(t *testing.T, db *store.DB) {
		srv := brokertest.ExternalWith(t, brokertest.Config{Stopped: true})
		r := newRig(t, db, openBroker(t, broker.Options{URL: srv.URL()}))
		var log waittest.Log
		r.b = New(Options{
			Source: account, DB: db, Stream: r.stream, Poll: 5 * time.Millisecond,
			Logger: slog.New(slog.NewTextHandler(&log, nil)),
		})
		began := time.Now()
		stop := r.run()
		r.upsert(n)
		until(t, "the backlog shows", func() bool {
			return r.b.Unpublished() == int64(n) && log.Count("outbox waits") == 1
		})
		until(t, "the lag shows", func() bool { return r.b.LagSeconds() > 0.3 })
		lag := r.b.LagSeconds()
		if most := time.Since(began).Seconds() + 0.01; lag > most {
			t.Errorf("%v s of at most %v", lag, most)
		}
		if err := r.b.Behind(t.Context(), 0, 100*time.Millisecond); !errors.Is(err, ErrBehind) {
			t.Errorf("a replica beside it is told %v", err)
		}
		srv.Restart()
		until(t, "all is published", func() bool {
			return r.b.Published() == uint64(n) && r.b.Unpublished() == 0
		})
		until(t, "it says so", func() bool { return log.Count("outbox goes on") > 0 })
		stop()
		r.has(span(1, uint64(n)))
		if waits, goesOn := log.Count("outbox waits"), log.Count("outbox goes on"); waits != 1 ||
			goesOn != 1 || r.b.Alarms() != 0 {
			t.Errorf("logged %d and %d times, %d alarms", waits, goesOn, r.b.Alarms())
		}
	})
}

// The server hangs. No call waits longer than its limit, nothing is lost, and messages that the
// server took while its answers were held back are not published a second time.
func TestBrokerHangs(t *testing.T) {
	hangs := map[string]func(*brokertest.Server){
		"deaf and mute":    (*brokertest.Server).Hang,
		"mute":             (*brokertest.Server).Mute,
		"mute, then a cut": (*brokertest.Server).Mute,
	}
	for name, hang := range hangs {
		t.Run(name, func(t *testing.T) {
			elsewhere(t, func(t *testing.T, r *rig, srv *brokertest.Server) {
				r.upsert(10)
				r.step()
				r.stream.impatient = 150 * time.Millisecond
				hang(srv)
				r.upsert(20)
				n, err := r.b.Step(t.Context())
				if n != 0 || !errors.Is(err, broker.ErrUnavailable) {
					t.Errorf("published %d, %v", n, err)
				}
				// The deadline of the rig must end the call, not the broker's own.
				if err != nil && !strings.Contains(err.Error(), context.DeadlineExceeded.Error()) {
					t.Errorf("waited longer than it may: %v", err)
				}
				if r.b.Unpublished() != 20 {
					t.Errorf("%d rows wait", r.b.Unpublished())
				}
				if name != "deaf and mute" {
					srv.AwaitLastSequence(t.Context(), account.Stream(), 30)
				}
				if name == "mute, then a cut" {
					srv.Cut()
				}
				srv.Resume()
				r.stream.impatient = 0
				r.drain()
				r.has(span(1, 30))
				if r.b.Alarms() != 0 {
					t.Error(r.b.Alarm())
				}
			})
		})
	}
}

// overheard is a stream that reports when a Publish begins, and how the last one ended.
type overheard struct {
	*natsStream
	begun chan struct{}
	ended error
}

func (o *overheard) Publish(ctx context.Context, messages []Outgoing) (acks []Ack, err error) {
	o.begun <- struct{}{}
	acks, o.ended = o.natsStream.Publish(ctx, messages)
	return acks, o.ended
}

// Run ends when its context ends, also in the middle of a call that hangs: the call ends with its
// context, not at the broker's own timeout.
func TestRunEndsWhileTheBrokerHangs(t *testing.T) {
	srv := brokertest.External(t)
	r := newRig(t, storetest.Open(t, store.SQLite), openBroker(t, broker.Options{URL: srv.URL()}))
	r.upsert(1)
	r.step()
	srv.Hang()
	r.upsert(5)
	stream := &overheard{natsStream: r.stream, begun: make(chan struct{}, 1)}
	r.b.o.Stream = stream // the stream's end is known: the next call is Publish
	stop := r.run()
	<-stream.begun
	stop()
	if err := stream.ended; err == nil || !strings.Contains(err.Error(), context.Canceled.Error()) {
		t.Errorf("the call that hung ended with %v", err)
	}
	srv.Resume()
}

// The server is restarted again and again while changes are made.
func TestBrokerRestartsUnderWay(t *testing.T) {
	elsewhere(t, func(t *testing.T, r *rig, srv *brokertest.Server) {
		stop := r.run()
		for range 5 {
			r.upsert(30)
			srv.Restart()
			r.upsert(30)
		}
		stop()
		r.drain()
		r.has(span(1, 300))
	})
}

// A full stream refuses: rows stay, in order, and are published as space is made.
func TestFullStream(t *testing.T) {
	elsewhere(t, func(t *testing.T, r *rig, srv *brokertest.Server) {
		r.stream.config.MaxMessages = 10
		r.upsert(25)
		if n, err := r.b.Step(t.Context()); n != 10 || !errors.Is(err, broker.ErrFull) {
			t.Fatalf("published %d, %v", n, err)
		}
		for range 3 {
			if n, err := r.b.Step(t.Context()); n != 0 || !errors.Is(err, broker.ErrFull) {
				t.Fatalf("published %d, %v", n, err)
			}
		}
		if got := r.versions(); !slices.Equal(got, span(1, 10)) || r.b.Unpublished() != 15 {
			t.Fatalf("the stream has %v, %d wait", got, r.b.Unpublished())
		}
		for first := uint64(1); first <= 15; first += 5 {
			for sequence := first; sequence < first+5; sequence++ {
				srv.DeleteMessage(account.Stream(), sequence)
			}
			if n, err := r.b.Step(t.Context()); n != 5 {
				t.Fatalf("published %d, %v", n, err)
			}
		}
		r.step()
		r.has(span(16, 25))
	})
}

// The embedded server's files are at their limit; then they get more space.
func TestFullStore(t *testing.T) {
	storetest.EachInFull(t, func(t *testing.T, db *store.DB) {
		dir := t.TempDir()
		small := running(t, broker.Options{Dir: dir, StoreLimitBytes: 8 << 10})
		r := newRig(t, db, small)
		r.upsert(100)
		n, err := r.b.Step(t.Context())
		if n == 0 || n == 100 || !errors.Is(err, broker.ErrFull) {
			t.Fatalf("published %d, %v", n, err)
		}
		must.OK(t, small.Close())
		r.stream.broker = openBroker(t, broker.Options{Dir: dir})
		r.drain()
		r.has(span(1, 100))
	})
}

// Files of the embedded server are damaged while it is down. Whatever the server makes of them,
// rows wait or are on the stream, in order, and a replica gets every change.
func TestDamagedFilesOfTheStream(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 3))
	damages := map[string]func(name string, data []byte) error{
		"cut": func(name string, data []byte) error { return os.Truncate(name, int64(len(data)/2)) },
		"end gone": func(name string, data []byte) error {
			return os.Truncate(name, int64(len(data)*19/20))
		},
		"emptied": func(name string, _ []byte) error { return os.Truncate(name, 0) },
		"gone":    func(name string, _ []byte) error { return os.Remove(name) },
		"flipped": func(name string, data []byte) error {
			at := random.IntN(len(data))
			// The server trusts a block's sequences: with one high bit set, it allocates memory for all
			// messages that seem to be missing. Bytes of text are no high bytes of a sequence.
			for strings.HasSuffix(name, ".blk") && (data[at] < ' ' || data[at] > '~') {
				at = random.IntN(len(data))
			}
			data[at] ^= 1 << random.IntN(8)
			return os.WriteFile(name, data, 0o600)
		},
		"zeroed in the middle": func(name string, data []byte) error {
			clear(data[len(data)/3 : len(data)/2])
			return os.WriteFile(name, data, 0o600)
		},
	}
	storetest.EachInFull(t, func(t *testing.T, db *store.DB) {
		good := t.TempDir()
		b := running(t, broker.Options{Dir: good})
		r := newRig(t, db, b)
		r.upsert(60)
		r.step()
		must.OK(t, b.Close())
		outcomes := map[string]int{}
		for _, file := range blocks(t, good) {
			for kind, damage := range damages {
				dir := copyOf(t, good)
				data := must.Get(os.ReadFile(filepath.Join(dir, file)))(t)
				must.OK(t, damage(filepath.Join(dir, file), data))
				b := running(t, broker.Options{Dir: dir})
				r.stream.broker = b
				outcomes[r.heals(kind+" "+filepath.Base(file))]++
				if err := b.Close(); err != nil {
					t.Error(err)
				}
			}
		}
		t.Logf("%v", outcomes)
	})
}

// blocks returns the files that hold the stream's messages and their index.
func blocks(t *testing.T, dir string) (files []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && strings.Contains(name, account.Stream()) &&
			filepath.Base(filepath.Dir(name)) == "msgs" {
			name, err = filepath.Rel(dir, name)
			files = append(files, name)
		}
		return err
	})
	if err != nil || len(files) == 0 {
		t.Fatalf("files %v, %v", files, err)
	}
	return files
}

// heals runs a publisher over a damaged stream. The stream must end with the last version and be in
// order. heals returns what was found.
func (r *rig) heals(what string) string {
	r.t.Helper()
	had := len(r.versions())
	r.fresh()
	r.drain()
	got := r.versions()
	if len(got) == 0 || got[len(got)-1] != uint64(r.n) || !slices.IsSorted(got) ||
		len(slices.Compact(slices.Clone(got))) != len(got) {
		r.t.Errorf("%s: the stream has %v of %d versions", what, got, r.n)
	}
	for _, row := range r.rows() {
		if !row.Published {
			r.t.Errorf("%s: version %d waits", what, row.Version)
		}
	}
	switch {
	case had == r.n:
		return "nothing lost"
	case len(got) == r.n:
		return "published again"
	}
	return "lost in the middle"
}

// The broker's return ends the wait for the next attempt, however long that wait is.
func TestBrokersReturnEndsTheWait(t *testing.T) {
	srv := brokertest.ExternalWith(t, brokertest.Config{Stopped: true})
	b := openBroker(t, broker.Options{URL: srv.URL()})
	r := newRig(t, storetest.Open(t, store.SQLite), b)
	r.upsert(3)
	r.b = New(Options{Source: account, DB: r.db, Stream: r.stream, Poll: 24 * time.Hour,
		Pause: 24 * time.Hour, Returned: b.Changed})
	var tries atomic.Int64
	r.b.o.Stream = &counted{r.stream, &tries}
	r.run()
	for range 3 {
		until(t, "it has tried", func() bool { return tries.Load() > 0 })
		srv.Restart()
		until(t, "published", func() bool {
			return r.b.Unpublished() == 0 && r.b.Published() == uint64(r.n)
		})
		srv.Stop()
		tries.Store(0)
		r.upsert(2)
		r.b.Wake()
	}
}

// counted is a stream that counts the attempts to reach it.
type counted struct {
	*natsStream
	tries *atomic.Int64
}

func (c *counted) Ensure(ctx context.Context) error {
	defer c.tries.Add(1)
	return c.natsStream.Ensure(ctx)
}
