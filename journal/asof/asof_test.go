package asof

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"posttrade/journal"
	"posttrade/journal/asof/asoftest"
	"posttrade/matcher"
	"posttrade/ring/must"
)

// testGenesis has two accounts, two securities and small tables.
func testGenesis() *matcher.Genesis {
	return &matcher.Genesis{
		Format: matcher.GenesisFormat, TickPx: 1000,
		Accounts: []matcher.GenesisAccount{{ID: 1, Enabled: true}, {ID: 2, Enabled: true}},
		Securities: []matcher.GenesisSecurity{
			{Ticker: "AAA", Enabled: true}, {Ticker: "BBB", Enabled: true},
		},
		Limits: matcher.Limits{
			MaxOrderQty: 1000, MaxOrderNotional: 1e14, MaxPositionQty: 100_000,
			MaxConcentrationNotional: 1e15, CreditLimit: 1e15, PriceMaxAgeMillis: 30_000,
			PriceCollarBps: 5000, IdempotencyCapacity: 256, MaxAccounts: 16, MaxSecurities: 16,
			MaxContracts: 64, MaxOpenOrders: 4096, RetainedOrders: 4096,
		},
	}
}

// record writes a journal with n commands, a few to a block, and returns the state of the engine
// after each of them.
func record(t *testing.T, dir string, n int) (j *journal.Journal, states [][32]byte) {
	t.Helper()
	return recordWith(t, dir, n, journal.Options{})
}

// recordWith is record with options of the journal.
func recordWith(t *testing.T, dir string, n int, o journal.Options) (j *journal.Journal,
	states [][32]byte) {
	t.Helper()
	w := asoftest.NewWith(t, dir, testGenesis(), o)
	states = append(states, w.Engine.StateHash())
	rnd := rand.New(rand.NewPCG(1, 2))
	for i := range n {
		c := matcher.NewCommand(matcher.OrderNew)
		c.EventTimeMillis = int64(1000 + i)
		c.AccountID, c.SecurityID = 1+rnd.Uint32N(2), 1+rnd.Uint32N(2)
		c.Side, c.Qty = matcher.Side(rnd.IntN(2)), int32(1+rnd.IntN(20))
		c.LimitPx = int64(95+rnd.IntN(11)) * matcher.PriceScale
		if rnd.IntN(5) == 0 {
			c = matcher.NewCommand(matcher.OrderCancel)
			c.EventTimeMillis, c.AccountID = int64(1000+i), 1+rnd.Uint32N(2)
			c.OrderRef = 1 + rnd.Uint32N(uint32(i+1))
		}
		w.Do(c)
		states = append(states, w.Engine.StateHash())
	}
	w.Settle()
	return w.Journal, states
}

func open(t *testing.T, j *journal.Journal, o Options) *History {
	t.Helper()
	if o.Report == nil {
		o.Report = func(err error) { t.Error(err) }
	}
	h := must.Get(New(j, o))(t)
	t.Cleanup(func() {
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	})
	return h
}

// checking lets one check at a time walk an engine's ladders, which note where they have looked.
// The readers of a moment use its views.
var checking sync.Mutex

// check looks at one moment.
func check(t *testing.T, h *History, at uint64, states [][32]byte) {
	t.Helper()
	m, err := h.At(t.Context(), at)
	must.OK(t, err)
	defer m.Release()
	if m.InputSeq() != at || m.Engine().StateHash() != states[at] || m.Views().Applied() != at {
		t.Fatalf("the moment of %d is another one: views at %d", at, m.Views().Applied())
	}
	checking.Lock()
	err = m.Views().Check(m.Engine())
	checking.Unlock()
	must.OK(t, err)
}

// TestEveryMomentIsTheStateOfItsSequence goes forward in single steps, back, and anywhere, without
// and with checkpoints.
func TestEveryMomentIsTheStateOfItsSequence(t *testing.T) {
	const n = 400
	j, states := record(t, t.TempDir(), n)
	rnd := rand.New(rand.NewPCG(3, 4))
	for name, o := range map[string]Options{
		"alone": {}, "checkpoints": {Dir: filepath.Join(t.TempDir(), "asof"), Interval: 30},
	} {
		t.Run(name, func(t *testing.T) {
			h := open(t, j, o)
			must.OK(t, h.Checkpoint(t.Context()))
			for at := range uint64(n + 1) {
				check(t, h, at, states)
			}
			for at := uint64(n); at > n-50; at-- {
				check(t, h, at, states)
			}
			for range 100 {
				check(t, h, rnd.Uint64N(n+1), states)
			}
			if h.Warm() != MaxWarm || h.Bytes() == 0 {
				t.Errorf("%d shadows of %d bytes", h.Warm(), h.Bytes())
			}
			_, err := h.At(t.Context(), n+1)
			var beyond *BeyondError
			if !errors.As(err, &beyond) || beyond.Head != n {
				t.Errorf("beyond the head: %v", err)
			}
		})
	}
}

// TestCheckpointsFollowStableCommits: with a tail, commands are on stable storage before their
// commits are. A checkpoint waits for the commits, without an error.
func TestCheckpointsFollowStableCommits(t *testing.T) {
	const n = 400
	for range 5 {
		j, _ := recordWith(t, t.TempDir(), n, journal.Options{Tail: true})
		h := open(t, j, Options{Dir: t.TempDir(), Interval: 10})
		must.OK(t, h.Checkpoint(t.Context()))
		must.OK(t, j.WaitStableEnd(t.Context(), n))
		must.OK(t, h.Checkpoint(t.Context()))
		if got, _ := h.Checkpoints(); got != n/10 {
			t.Errorf("%d checkpoints, want %d", got, n/10)
		}
	}
}

// TestCheckpointsThinOut lets a history outgrow the number of checkpoints.
func TestCheckpointsThinOut(t *testing.T) {
	j, states := record(t, t.TempDir(), 400)
	dir := t.TempDir()
	for _, c := range []struct{ most, want int }{{40, 40}, {6, 5}, {6, 5}} {
		h := open(t, j, Options{Dir: dir, Interval: 10, Checkpoints: c.most})
		must.OK(t, h.Checkpoint(t.Context()))
		if n, bytes := h.Checkpoints(); n != c.want || bytes == 0 {
			t.Errorf("%d checkpoints of %d bytes, want %d", n, bytes, c.want)
		}
	}
	names, err := os.ReadDir(dir)
	if err != nil || len(names) != 15 {
		t.Errorf("%d files, %v", len(names), err)
	}
	check(t, open(t, j, Options{Dir: dir, Interval: 10, Checkpoints: 6}), 201, states)
}

// TestDamagedCheckpointsAreNotUsed flips every file of a checkpoint, and takes one of another
// history.
func TestDamagedCheckpointsAreNotUsed(t *testing.T) {
	j, states := record(t, t.TempDir(), 100)
	for _, suffix := range []string{".state.zst", ".views.zst", ".json"} {
		dir := t.TempDir()
		must.OK(t, open(t, j, Options{Dir: dir, Interval: 40}).Checkpoint(t.Context()))
		names, err := filepath.Glob(filepath.Join(dir, "*"+suffix))
		if err != nil || len(names) != 2 {
			t.Fatal(names, err)
		}
		for _, name := range names {
			text := must.Get(os.ReadFile(name))(t)
			if suffix == ".json" {
				text = bytes.Replace(text, []byte(`"chain":"`), []byte(`"chain":"0`), 1)
			} else {
				text[len(text)/2] ^= 1
			}
			must.OK(t, os.WriteFile(name, text, 0o644))
		}
		h := open(t, j, Options{Dir: dir, Interval: 40})
		check(t, h, 90, states)
		if n, _ := h.Checkpoints(); n != 0 && suffix != ".json" {
			t.Errorf("%s: %d damaged checkpoints are kept", suffix, n)
		}
		must.OK(t, os.WriteFile(filepath.Join(dir, names[0][len(dir)+1:]+".tmp"), nil, 0o644))
		must.OK(t, h.checkpoints.Clean())
		must.OK(t, h.Checkpoint(t.Context()))
		if n, _ := h.Checkpoints(); n != 2 {
			t.Errorf("%s: %d checkpoints were made again", suffix, n)
		}
		left, err := filepath.Glob(filepath.Join(dir, "*.tmp"))
		if err != nil || len(left) != 0 {
			t.Error(left, err)
		}
	}
}

// TestThirdMomentWaits holds two moments: a third gets ErrBusy, or its turn.
func TestThirdMomentWaits(t *testing.T) {
	j, states := record(t, t.TempDir(), 50)
	h := open(t, j, Options{Patience: 10 * time.Millisecond})
	first := must.Get(h.At(t.Context(), 10))(t)
	second := must.Get(h.At(t.Context(), 20))(t)
	if _, err := h.At(t.Context(), 30); !errors.Is(err, ErrBusy) {
		t.Errorf("a third moment: %v", err)
	}
	check(t, h, 10, states) // shares the first
	second.Release()
	check(t, h, 30, states)
	first.Release()
	check(t, h, 5, states)
}

// TestManyLookAtOnce lets many goroutines look at random moments, and rests meanwhile.
func TestManyLookAtOnce(t *testing.T) {
	const n = 300
	looks := 30
	if testing.Short() {
		looks = 8
	}
	j, states := record(t, t.TempDir(), n)
	h := open(t, j, Options{Dir: t.TempDir(), Interval: 50, Patience: time.Minute,
		Idle: time.Nanosecond})
	ctx, stop := context.WithCancel(t.Context())
	var loop, readers sync.WaitGroup
	loop.Go(func() { h.Run(ctx) })
	for k := range uint64(8) {
		readers.Go(func() {
			rnd := rand.New(rand.NewPCG(5, k))
			for range looks {
				check(t, h, rnd.Uint64N(n+1), states)
				h.Bytes()
				if _, _, err := h.closeUnused(time.Now()); err != nil {
					t.Error(err)
				}
			}
		})
	}
	readers.Wait()
	stop()
	loop.Wait()
}

// TestShadowOfOnesOwn follows from a moment on and gives the events behind it.
func TestShadowOfOnesOwn(t *testing.T) {
	j, states := record(t, t.TempDir(), 100)
	h := open(t, j, Options{Dir: t.TempDir(), Interval: 40})
	sh := must.Get(h.Shadow(t.Context(), 50))(t)
	defer sh.Close()
	next := uint64(51)
	for _, to := range []uint64{51, 52, 60, 100} {
		must.OK(t, sh.Follow(t.Context(), to, func(events []matcher.Event) error {
			for i := range events {
				if events[i].Flags&matcher.EventFirst != 0 {
					if events[i].InputSeq != next {
						t.Errorf("event of %d, want %d", events[i].InputSeq, next)
					}
					next++
				}
			}
			return nil
		}))
		if got := sh.Engine().(*matcher.Engine).StateHash(); got != states[to] {
			t.Errorf("another state at %d", to)
		}
	}
	if _, err := h.Shadow(t.Context(), 101); err == nil || !strings.Contains(err.Error(), "100") {
		t.Errorf("beyond the head: %v", err)
	}
}

// TestCloseWaitsForReaders closes a History while a moment is held.
func TestCloseWaitsForReaders(t *testing.T) {
	j, _ := record(t, t.TempDir(), 20)
	for range 200 {
		h := must.Get(New(j, Options{}))(t)
		m := must.Get(h.At(t.Context(), 10))(t)
		var closed sync.WaitGroup
		closed.Go(func() {
			if err := h.Close(); err != nil {
				t.Error(err)
			}
		})
		m.Release()
		closed.Wait()
		if _, err := h.At(t.Context(), 10); !errors.Is(err, ErrClosed) {
			t.Fatal(err)
		}
	}
}

// TestCheckpointsNeedAFolder: where none can be made, the report names it, and moments are shown
// all the same.
func TestCheckpointsNeedAFolder(t *testing.T) {
	j, states := record(t, t.TempDir(), 100)
	file := filepath.Join(t.TempDir(), "file")
	must.OK(t, os.WriteFile(file, nil, 0o644))
	for _, dir := range []string{filepath.Join(file, "asof"), file} {
		var reported error
		h := open(t, j, Options{Dir: dir, Interval: 40, Report: func(err error) { reported = err }})
		if err := h.Checkpoint(t.Context()); err != nil || reported == nil ||
			!strings.Contains(reported.Error(), file) {
			t.Errorf("checkpoints in %s: %v, reported %v", dir, err, reported)
		}
		check(t, h, 70, states)
	}
}
