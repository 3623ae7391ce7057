package journal

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"runtime/debug"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"posttrade/ring/must"
)

// waiting starts a WaitStable that has to wait, and returns its answer.
func waiting(t *testing.T, ctx context.Context, j *Journal, inputSeq uint64) <-chan error {
	t.Helper()
	answer := make(chan error, 1)
	go func() { answer <- j.WaitStable(ctx, inputSeq) }()
	until(t, "a goroutine waits", func() bool {
		j.mu.Lock()
		defer j.mu.Unlock()
		return j.moved != nil
	})
	return answer
}

// stableMode gives the options of a journal, and what a power cut leaves of it.
func stableMode(t testing.TB, mode string, mem *vfs.MemFS) (o Options, cut func() vfs.FS) {
	o, cut = strict(t, mem), func() vfs.FS { return powerCut(mem) }
	o.Durability = mode
	if mode == withLog {
		var fake *fakeTail
		o, fake = logged(t, mem)
		o.tailShape.bytes = 64 << 10
		cut = func() (fs vfs.FS) {
			fake.under(func(c *fakeTail) {
				fs = powerCut(mem)
				c.into(t, fs, func() bool { return false })
			})
			return fs
		}
	}
	o.FlushInterval = time.Hour
	return o, cut
}

// powerCut is what a power cut at this moment leaves.
func powerCut(fs *vfs.MemFS) *vfs.MemFS {
	return fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 0, RNG: rand.New(rand.NewPCG(1, 1))})
}

func TestStableSurvivesAPowerCut(t *testing.T) {
	for _, mode := range []string{DurabilityFsync, DurabilityOS, withLog} {
		t.Run(mode, func(t *testing.T) {
			mem := vfs.NewCrashableMem()
			o, cut := stableMode(t, mode, mem)
			f := flow{seed: 1, idsEvery: 4}
			j, made := openNew(t, "j", o), f
			for _, n := range []int{1, 30, 2} {
				appendAll(t, j, &made, n)
				if before := j.Stable(); mode == DurabilityOS && before >= made.inputSeq {
					t.Errorf("stable %d before anything was synced", before)
				}
				must.OK(t, j.WaitStable(context.Background(), made.inputSeq))
				if got := j.Stable(); got != made.inputSeq {
					t.Errorf("stable %d, want %d", got, made.inputSeq)
				}
				must.Get(recovered(cut(), "boot-2", f, made.inputSeq, made.inputSeq))(t)
			}
			must.OK(t, j.Close())
			must.OK(t, j.WaitStable(context.Background(), made.inputSeq)) // still true
			must.Be(t, j.WaitStable(context.Background(), made.inputSeq+1), ErrClosed)
			j = must.Get(Open("j", o))(t)
			if got := j.Stable(); got != made.inputSeq {
				t.Errorf("stable %d after opening, want %d", got, made.inputSeq)
			}
			must.OK(t, j.Close())
		})
	}
}

func TestCloseLeavesEverythingStable(t *testing.T) {
	o := strict(t, vfs.NewMem())
	o.Durability, o.FlushInterval = DurabilityOS, time.Hour
	j, made := openNew(t, "j", o), flow{seed: 1}
	appendAll(t, j, &made, 5)
	must.OK(t, j.Close())
	if got := j.Stable(); got != 5 {
		t.Errorf("stable %d, want 5", got)
	}
}

func TestWaitStableWaitsForCommitsToCome(t *testing.T) {
	for _, mode := range []string{DurabilityFsync, DurabilityOS} {
		t.Run(mode, func(t *testing.T) {
			o := strict(t, vfs.NewMem())
			o.Durability, o.FlushInterval = mode, time.Hour
			j, made := openNew(t, "j", o), flow{seed: 1}
			answer := waiting(t, context.Background(), j, 12)
			appendAll(t, j, &made, 5, 5)
			again := waiting(t, context.Background(), j, 11)
			select {
			case err := <-answer:
				t.Fatalf("answered at %d: %v", made.inputSeq, err)
			default:
			}
			appendAll(t, j, &made, 5)
			must.OK(t, errors.Join(<-answer, <-again))
			if got := j.Stable(); got < 12 {
				t.Errorf("stable %d, want 12", got)
			}
			must.OK(t, j.Close())
		})
	}
}

func TestWaitStableEndsWithItsContext(t *testing.T) {
	j := openNew(t, "j", strict(t, vfs.NewMem()))
	ctx, cancel := context.WithCancel(context.Background())
	answer := waiting(t, ctx, j, 1)
	cancel()
	must.Be(t, <-answer, context.Canceled)
	must.OK(t, j.Close())
}

func TestWaitStableEndsWithTheJournal(t *testing.T) {
	j := openNew(t, "j", strict(t, vfs.NewMem()))
	answer := waiting(t, context.Background(), j, 1)
	must.OK(t, j.Close())
	must.Be(t, <-answer, ErrClosed)
}

// TestWaitStableEndSyncsTheStore: with a log, what is stable by the log alone is not the end of a
// stable commit. WaitStable does not wait for the store, also when its syncs fail; WaitStableEnd
// syncs it at once. Its errors are those of WaitStable.
func TestWaitStableEndSyncsTheStore(t *testing.T) {
	n := 0
	toggle := failingSyncs(&n)
	o, _ := logged(t, errorfs.Wrap(vfs.NewMem(), toggle))
	o.Fatal = func(error) {}
	j, made := openNew(t, "j", o), flow{seed: 1}
	appendAll(t, j, &made, 5)
	must.OK(t, j.WaitStableEnd(t.Context(), 5))
	if got := j.StableEnd(); got != 5 {
		t.Errorf("stable commits end at %d, want 5", got)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	must.Be(t, j.WaitStableEnd(ctx, 6), context.Canceled)
	toggle.On()
	appendAll(t, j, &made, 5)
	must.OK(t, j.WaitStable(t.Context(), 10))
	must.Be(t, j.WaitStableEnd(t.Context(), 10), syscall.EIO)
	must.OK(t, j.WaitStable(t.Context(), 10))
	must.OK(t, j.WaitStableEnd(t.Context(), 5))
	must.Be(t, j.WaitStableEnd(t.Context(), 10), ErrPoisoned)
	if got := j.StableEnd(); got != 5 || n != 1 {
		t.Errorf("stable commits end at %d after %d failed syncs", got, n)
	}
	must.Be(t, j.Close(), ErrPoisoned)

	j = openNew(t, "j", strict(t, vfs.NewMem()))
	must.OK(t, j.Close())
	must.Be(t, j.WaitStableEnd(t.Context(), 1), ErrClosed)
}

// failingSyncs fails the syncs of logs while it is on, and counts them.
func failingSyncs(n *int) *errorfs.Toggle {
	return &errorfs.Toggle{Injector: errorfs.InjectorFunc(func(op errorfs.Op) error {
		switch op.Kind {
		case errorfs.OpFileSync, errorfs.OpFileSyncData, errorfs.OpFileSyncTo:
			if strings.HasSuffix(op.Path, ".log") {
				*n++
				return syscall.EIO
			}
		}
		return nil
	})}
}

func TestAFailedSyncIsNeverTriedAgain(t *testing.T) {
	n := 0
	toggle, fatals := failingSyncs(&n), newFatals()
	o := Options{FS: errorfs.Wrap(vfs.NewMem(), toggle), Fatal: fatals.fatal, Durability: DurabilityOS,
		FlushInterval: time.Hour}
	j, made := openNew(t, "j", o), flow{seed: 1}
	appendAll(t, j, &made, 5)
	must.OK(t, j.WaitStable(context.Background(), 5))
	appendAll(t, j, &made, 5)
	late := waiting(t, context.Background(), j, 11)
	toggle.On()
	err := j.WaitStable(context.Background(), 10)
	must.Be(t, err, ErrPoisoned)
	must.Be(t, err, syscall.EIO)
	must.Be(t, <-late, ErrPoisoned)
	toggle.Off()
	must.Be(t, j.WaitStable(context.Background(), 10), ErrPoisoned)
	must.OK(t, j.WaitStable(context.Background(), 5))
	if got := j.Stable(); got != 5 || n != 1 || fatals.count() != 1 {
		t.Errorf("stable %d, %d failed syncs, %d fatal errors", got, n, fatals.count())
	}
	must.Be(t, j.Close(), ErrPoisoned)
}

// TestAFailedSyncWhenASegmentBegins: the store's log is synced then, without a caller that waits
// and beside the ticker, and its failure ends the journal.
func TestAFailedSyncWhenASegmentBegins(t *testing.T) {
	n := 0
	failing := failingSyncs(&n)
	failing.On()
	turned := errorfs.InjectorFunc(func(op errorfs.Op) error {
		if !bytes.Contains(debug.Stack(), []byte(").flushTurned(")) {
			return nil
		}
		return failing.MaybeError(op)
	})
	fatals := newFatals()
	o, _ := logged(t, errorfs.Wrap(vfs.NewMem(), turned))
	o.Fatal, o.FlushInterval, o.tailShape.bytes = fatals.fatal, time.Hour, 64<<10
	j, made := openNew(t, "j", o), flow{seed: 1}
	for j.Err() == nil {
		b := &Block{}
		made.grow(b, 50)
		c, err := j.Append(b)
		if err == nil {
			err = c.Wait()
		}
		if err != nil {
			must.Be(t, err, ErrPoisoned)
		}
	}
	<-fatals.hit
	must.Be(t, j.Err(), syscall.EIO)
	if n != 1 || !strings.Contains(j.Err().Error(), "sync log inputSeq=") {
		t.Errorf("%d failed syncs, %v", n, j.Err())
	}
	must.Be(t, j.Close(), ErrPoisoned)
}

func TestALogThatCouldNotBeClosedIsNotSynced(t *testing.T) {
	n := 0
	toggle := failingSyncs(&n)
	lazy := newLazyFS(errorfs.Wrap(vfs.NewMem(), toggle))
	f, err := lazy.Create("1.log", writeCategory)
	must.OK(t, err)
	_, err = f.Write([]byte("x"))
	must.OK(t, err)
	toggle.On()
	must.Be(t, f.Close(), syscall.EIO)
	toggle.Off()
	must.Be(t, lazy.Flush(), syscall.EIO)
}

func TestManyWaitForStableWhileCommitsCome(t *testing.T) {
	for _, mode := range []string{DurabilityFsync, DurabilityOS} {
		t.Run(mode, func(t *testing.T) {
			o := strict(t, vfs.NewMem())
			o.Durability, o.FlushInterval = mode, time.Millisecond
			j, made := openNew(t, "j", o), flow{seed: 1}
			const last = 300
			var all sync.WaitGroup
			for i := range 8 {
				all.Go(func() {
					for seq := uint64(i + 1); seq <= last; seq += 8 {
						if err := j.WaitStable(context.Background(), seq); err != nil || j.Stable() < seq {
							t.Errorf("seq %d: stable %d, %v", seq, j.Stable(), err)
						}
					}
				})
			}
			for range last {
				appendAll(t, j, &made, 1)
			}
			all.Wait()
			must.OK(t, j.Close())
		})
	}
}

// TestStableHeadIsWhatAPowerCutLeaves cuts the power after every few commits. What a follower was
// told to be stable just before is there afterwards, trades included. In mode "os" a follower was
// told less than there was.
func TestStableHeadIsWhatAPowerCutLeaves(t *testing.T) {
	for _, mode := range []string{DurabilityFsync, DurabilityOS, withLog} {
		t.Run(mode, func(t *testing.T) {
			mem := vfs.NewCrashableMem()
			o, cut := stableMode(t, mode, mem)
			f := flow{seed: 4}
			j, made := openNew(t, "j", o), f
			behind := false
			for i, n := range []int{3, 30, 2, 9, 1, 1, 40} {
				appendAll(t, j, &made, n)
				if i%3 == 1 {
					must.OK(t, j.WaitStable(context.Background(), made.inputSeq))
					if in, trade := j.StableHead(); in != made.inputSeq || trade != made.tradeSeq {
						t.Errorf("stable are sequence %d, trade %d, want %d, %d", in, trade, made.inputSeq,
							made.tradeSeq)
					}
				}
				inputSeq, tradeSeq := j.StableHead()
				behind = behind || inputSeq < made.inputSeq
				left := must.Get(Open("j", Options{FS: cut(), boot: "boot-2", Fatal: func(error) {}}))(t)
				if in, trade := left.Head(); in < inputSeq || trade < tradeSeq {
					t.Errorf("stable were sequence %d, trade %d; left are %d, %d", inputSeq, tradeSeq, in, trade)
				}
				if in, trade := left.StableHead(); in == 0 && inputSeq > 0 {
					t.Errorf("of what is left only %d, %d is stable", in, trade)
				}
				must.OK(t, left.Close())
			}
			if behind != (mode == DurabilityOS) {
				t.Errorf("the stable head was behind: %v", behind)
			}
			must.OK(t, j.Close())
		})
	}
}
