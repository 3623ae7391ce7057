package broker

import (
	"context"
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"posttrade/ring/must"
	"posttrade/sidecars/broker/brokertest"
)

func TestEmbeddedSyncsAlwaysAndListensNowhere(t *testing.T) {
	b := open(t, Options{Dir: t.TempDir()})
	if addr := b.embedded.now.Addr(); addr != nil {
		t.Errorf("the embedded server listens on %v", addr)
	}
	if c := b.embedded.now.JetStreamConfig(); !c.SyncAlways || c.MaxStore != DefaultStoreLimitBytes {
		t.Errorf("sync always is %v, limit %d", c.SyncAlways, c.MaxStore)
	}
}

func TestEmbeddedKeepsWhatItAcknowledgedOverARestart(t *testing.T) {
	dir := t.TempDir()
	ctx := patience(t)
	last := 0
	for range 5 {
		b := open(t, Options{Dir: dir})
		ensure(t, ctx, b, deltas())
		if _, _, err := b.PublishBatch(ctx, chained(last+1, last+150)); err != nil {
			t.Fatal(err)
		}
		last += 150
		must.OK(t, b.Close())
	}
	holds(t, ctx, open(t, Options{Dir: dir}), last)
}

// The files are copied while the server runs, without its knowledge, as a killed process leaves
// them. The copy holds everything that was acknowledged before it.
func TestEmbeddedKeepsWhatItAcknowledgedWhenKilled(t *testing.T) {
	dir, ctx := t.TempDir(), patience(t)
	b := open(t, Options{Dir: dir})
	ensure(t, ctx, b, deltas())
	for _, last := range []int{1, 2, 40, 41, 300} {
		info := must.Get(b.StreamInfo(ctx, deltas().Name))(t)
		if _, _, err := b.PublishBatch(ctx, chained(int(info.LastSeq)+1, last)); err != nil {
			t.Fatal(err)
		}
		left := t.TempDir()
		must.OK(t, os.CopyFS(left, os.DirFS(dir)))
		after := open(t, Options{Dir: left})
		holds(t, ctx, after, last)
		// The server has its message ids back too.
		if ack := put(t, ctx, after, last); !ack.Duplicate {
			t.Errorf("after the restart a second copy of %d is stored again: %+v", last, ack)
		}
	}
}

// Files are cut, flipped, emptied, replaced by folders and made of garbage. Open always returns,
// the process survives, and State reports the problem. Whatever the state of the store, calls end.
func TestEmbeddedSurvivesADamagedStore(t *testing.T) {
	good, ctx := t.TempDir(), patience(t)
	b := open(t, Options{Dir: good})
	ensure(t, ctx, b, deltas())
	if _, _, err := b.PublishBatch(ctx, chained(1, 50)); err != nil {
		t.Fatal(err)
	}
	must.OK(t, b.Close())
	var files []string
	err := filepath.WalkDir(good, func(name string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			name, err = filepath.Rel(good, name)
			files = append(files, name)
		}
		return err
	})
	if err != nil || len(files) < 3 {
		t.Fatalf("files %v, %v", files, err)
	}
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 5))
	damages := map[string]func(name string, data []byte) error{
		"cut":     func(name string, data []byte) error { return os.Truncate(name, int64(len(data)/2)) },
		"emptied": func(name string, _ []byte) error { return os.Truncate(name, 0) },
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
		"garbage": func(name string, data []byte) error {
			for i := range data {
				data[i] = byte(random.Uint32())
			}
			return os.WriteFile(name, data, 0o600)
		},
		"a folder": func(name string, _ []byte) error {
			return errors.Join(os.Remove(name), os.Mkdir(name, 0o700))
		},
		"gone": func(name string, _ []byte) error { return os.Remove(name) },
	}
	kept := 0
	for _, file := range files {
		for kind, damage := range damages {
			dir := t.TempDir()
			must.OK(t, os.CopyFS(dir, os.DirFS(good)))
			name := filepath.Join(dir, file)
			data, err := os.ReadFile(name)
			must.OK(t, err)
			if len(data) == 0 {
				continue
			}
			must.OK(t, damage(name, data))
			b, err := Open(Options{Dir: dir})
			if err != nil {
				t.Fatalf("%s %s: %v", file, kind, err)
			}
			var ready bool
			var detail string
			until(t, ctx, "the first start is over", func() bool {
				ready, detail = b.State()
				return detail != "embedded server is starting"
			})
			if !ready && !strings.Contains(detail, "embedded server") {
				t.Errorf("%s %s: not ready, and the detail is %q", file, kind, detail)
			}
			short, cancel := context.WithTimeout(t.Context(), time.Minute)
			info, err := b.StreamInfo(short, deltas().Name)
			if err == nil && info.LastSeq == 50 {
				kept++
			} else if err != nil && !errors.Is(err, ErrUnavailable) && !errors.Is(err, ErrNotFound) {
				t.Errorf("%s %s: %v", file, kind, err)
			}
			if err := b.EnsureStream(short, deltas()); err != nil && short.Err() != nil {
				t.Errorf("%s %s: ensure hangs: %v", file, kind, err)
			}
			cancel()
			if err := b.Close(); err != nil {
				t.Errorf("%s %s: close: %v", file, kind, err)
			}
		}
	}
	t.Logf("%d files x %d damages, all messages there after %d", len(files), len(damages), kept)
}

// A folder that cannot be used is reported, calls are answered, and the server starts by itself
// when the obstacle is gone.
func TestEmbeddedThatCannotStartSaysSoAndTriesAgain(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "nats")
	must.OK(t, os.WriteFile(dir, []byte("in the way"), 0o600))
	var log record
	b, ctx := opened(t, Options{Dir: dir, Logger: log.logger()}), patience(t)
	until(t, ctx, "State says why", func() bool {
		ready, detail := b.State()
		return !ready && strings.Contains(detail, "does not start")
	})
	err := b.EnsureStream(ctx, deltas())
	if !errors.Is(err, ErrUnavailable) || !strings.Contains(err.Error(), "does not start") {
		t.Errorf("a call meanwhile gives %v", err)
	}
	stopped, err := b.Subscribe("pricing.*", func(string, []byte) {})
	must.OK(t, err)
	defer stopped()
	must.OK(t, os.Remove(dir))
	until(t, ctx, "ready", func() bool { ready, _ := b.State(); return ready })
	until(t, ctx, "in use", func() bool { return b.EnsureStream(ctx, deltas()) == nil })
	put(t, ctx, b, 1)
	if n := strings.Count(log.String(), "broker not ready"); n != 1 {
		t.Errorf("the state is logged %d times, want once:\n%s", n, log.String())
	}
}

// JetStream shuts itself down when a disk is full, and only a restart of the server brings it back.
// The Broker restarts the server, without losing a message.
func TestEmbeddedRestartsJetStreamThatGaveUp(t *testing.T) {
	b := open(t, Options{Dir: t.TempDir()})
	ctx := patience(t)
	ensure(t, ctx, b, deltas())
	if _, _, err := b.PublishBatch(ctx, chained(1, 20)); err != nil {
		t.Fatal(err)
	}
	must.OK(t, b.embedded.now.ShutdownJetStream())
	_, err := b.Publish(ctx, deltaSubject, payload(21), PublishOptions{MsgID: id(21)})
	if err != nil && !errors.Is(err, ErrUnavailable) { // nil: it is back already
		t.Errorf("publish without JetStream gives %v, want ErrUnavailable", err)
	}
	until(t, ctx, "published again", func() bool {
		_, err := b.Publish(ctx, deltaSubject, payload(21), PublishOptions{MsgID: id(21)})
		return err == nil
	})
	holds(t, ctx, b, 21)
	if ready, detail := b.State(); !ready {
		t.Error(detail)
	}
}

// The limit is lowered below the stored size: stored messages stay readable, and new messages are
// refused.
func TestEmbeddedWithLessSpaceThanItHolds(t *testing.T) {
	dir, ctx := t.TempDir(), patience(t)
	b := open(t, Options{Dir: dir})
	ensure(t, ctx, b, deltas())
	if _, _, err := b.PublishBatch(ctx, chained(1, 1000)); err != nil {
		t.Fatal(err)
	}
	must.OK(t, b.Close())
	less := open(t, Options{Dir: dir, StoreLimitBytes: 10 << 10})
	_, err := less.Publish(ctx, deltaSubject, payload(1001), PublishOptions{MsgID: id(1001)})
	if !errors.Is(err, ErrFull) {
		t.Errorf("got %v, want ErrFull", err)
	}
	holds(t, ctx, less, 1000)
}

func TestEmbeddedFolderOfTheLibrarysOwnServerIsReadable(t *testing.T) {
	// The external test server has other settings; the files are the same.
	srv := brokertest.External(t)
	b := open(t, Options{URL: srv.URL()})
	ctx := patience(t)
	ensure(t, ctx, b, deltas())
	if _, _, err := b.PublishBatch(ctx, chained(1, 30)); err != nil {
		t.Fatal(err)
	}
	srv.Stop()
	holds(t, ctx, open(t, Options{Dir: srv.Dir()}), 30)
}
