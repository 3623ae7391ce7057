package journal

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"posttrade/ring/must"
)

var (
	powerCuts = flag.Int("powercuts", 300, "points at which the power is cut")
	faultSeed = flag.Uint64("faultseed", 1, "seed of the fault tests")
)

// scenario is one scripted run of a journal: commits of many sizes, a snapshot,
// a flush that turns the log over, a second opening. acked and submitted may be
// read at any moment.
type scenario struct {
	fs        vfs.FS
	mode      string
	tail      *fakeTail // modes withTail and withLog
	flow      flow
	submitted atomic.Uint64
	acked     atomic.Uint64
	synced    atomic.Uint64 // what the anchor has vouched for
	fatals    *fatals
}

func newScenario(fs vfs.FS, mode string, seed uint64) *scenario {
	return &scenario{fs: fs, mode: mode, flow: flow{seed: seed, idsEvery: 4}, fatals: newFatals()}
}

// Modes of these tests: with a tail.
const (
	withTail = "os with a tail"
	withLog  = "fsync with a tail"
)

func (s *scenario) options() Options {
	if s.tail != nil {
		o := Options{
			FS: s.fs, Durability: DurabilityOS, Tail: true, Fatal: s.fatals.fatal, boot: "boot-1",
			FlushInterval: time.Millisecond, tailShape: smallTail, mapTail: s.tail.open,
		}
		if s.mode == withLog {
			o.Durability = DurabilityFsync
		}
		return o
	}
	return Options{FS: s.fs, Durability: s.mode, Fatal: s.fatals.fatal, boot: "boot-1",
		FlushInterval: time.Millisecond}
}

// run is the script. It ends at the first error.
func (s *scenario) run() error {
	j, err := s.open()
	if err != nil {
		return err
	}
	if err := j.Create(testGenesis); err != nil {
		return errors.Join(err, j.Close())
	}
	if err := s.commits(j, []int{1, 3, 1, 40, 1, 1}); err != nil {
		return errors.Join(err, j.Close())
	}
	if _, err := j.WriteSnapshot(j.Durable(), s.image("state"), s.image("views")); err != nil {
		return errors.Join(err, j.Close())
	}
	if err := s.flush(j); err != nil {
		return errors.Join(err, j.Close())
	}
	if err := s.commits(j, []int{2, 300, 1, 7}); err != nil {
		return errors.Join(err, j.Close())
	}
	if err := j.Close(); err != nil {
		return err
	}
	if j, err = s.open(); err != nil {
		return err
	}
	if err := s.commits(j, []int{1, 1, 20}); err != nil {
		return errors.Join(err, j.Close())
	}
	if _, err := j.WriteSnapshot(j.Durable(), s.image("state"), nil); err != nil {
		return errors.Join(err, j.Close())
	}
	if err := s.commits(j, []int{5, 1}); err != nil {
		return errors.Join(err, j.Close())
	}
	return j.Close()
}

func (s *scenario) image(name string) func(io.Writer) error {
	return func(w io.Writer) error {
		_, err := fmt.Fprintf(w, "%s at %d", name, s.acked.Load())
		return err
	}
}

// flush makes the store write its tables, which rotates the log and edits the manifest.
func (s *scenario) flush(j *Journal) error {
	flushed, err := j.db.AsyncFlush()
	if err != nil {
		return err
	}
	select {
	case <-flushed:
	case <-j.latch.dead:
	}
	return j.Err()
}

// open opens the journal and listens to its answers.
func (s *scenario) open() (*Journal, error) {
	j, err := Open("j", s.options())
	if err == nil {
		j.OnDurable(func(inputSeq uint64) { s.acked.Store(inputSeq) }, func(error) {})
	}
	return j, err
}

func (s *scenario) commits(j *Journal, sizes []int) error {
	var b Block
	for _, n := range sizes {
		s.submitted.Store(s.flow.inputSeq + uint64(n))
		c, err := j.Append(s.flow.block(&b, n))
		if err != nil {
			return err
		}
		if n%2 == 1 { // every other one is pipelined with the next
			if err := c.Wait(); err != nil {
				return err
			}
			j.mu.Lock()
			a := j.anchor
			j.mu.Unlock()
			s.synced.Store(max(s.synced.Load(), a.syncedSeq()))
		}
	}
	return nil
}

// recovered opens what is left, checks that it is a history of whole commits from atLeast up to
// atMost of the same commands, and that the journal can be continued.
func recovered(fs vfs.FS, boot string, f flow, atLeast, atMost uint64) (uint64, error) {
	var fatal atomic.Int32
	o := Options{FS: fs, boot: boot, Fatal: func(error) { fatal.Add(1) }}
	j, err := Open("j", o)
	if err != nil {
		return 0, fmt.Errorf("reopen: %w", err)
	}
	if _, ok := j.Genesis(); !ok {
		if atLeast > 0 {
			return 0, fmt.Errorf("genesis lost, %d was acked", atLeast)
		}
		if err := j.Create(testGenesis); err != nil {
			return 0, err
		}
	}
	head, trades := j.Head()
	if head < atLeast || head > atMost {
		return 0, fmt.Errorf("head %d, want %d to %d", head, atLeast, atMost)
	}
	if err := compareHistory(j, &f, head); err != nil {
		return head, err
	}
	if _, err := j.Restore(func(error) {}, func(s Snapshot, state, views io.Reader) error {
		text, err := io.ReadAll(state)
		if err != nil || s.InputSeq > head || !strings.HasPrefix(string(text), "state at ") {
			return fmt.Errorf("snapshot %d: %q, %w", s.InputSeq, text, err)
		}
		return nil
	}); err != nil && !errors.Is(err, ErrNoSnapshot) {
		return head, err
	}
	f.inputSeq, f.tradeSeq = head, trades
	c, err := j.Append(f.block(&Block{}, 3))
	if err != nil {
		return head, err
	}
	if err := errors.Join(c.Wait(), compareHistory(j, &f, head+3), j.Close()); err != nil {
		return head, err
	}
	if n := fatal.Load(); n != 0 {
		return head, fmt.Errorf("%d fatal errors after recovery", n)
	}
	return head, nil
}

// finish waits for the script. When the store's own goroutine met the error and stopped for ever
// (in production the process has ended), it waits for the poison.
func (s *scenario) finish(done <-chan error) error {
	select {
	case err := <-done:
		return err
	case <-s.fatals.hit:
	}
	select {
	case err := <-done:
		return err
	case <-time.After(5 * time.Millisecond):
		return ErrPoisoned
	}
}

func TestNothingIsAckedAfterAnIOError(t *testing.T) {
	for _, tt := range []struct {
		mode   string
		cause  syscall.Errno
		sticky bool
	}{
		{DurabilityFsync, syscall.EIO, false},
		{DurabilityFsync, syscall.ENOSPC, true},
		{DurabilityOS, syscall.ENOSPC, false},
		{DurabilityOS, syscall.EIO, true},
		{withTail, syscall.EIO, false},
		{withTail, syscall.ENOSPC, true},
		{withLog, syscall.EIO, false},
		{withLog, syscall.ENOSPC, true},
	} {
		t.Run(fmt.Sprintf("%s %v sticky %v", tt.mode, tt.cause, tt.sticky), func(t *testing.T) {
			t.Parallel()
			everyIndex(t, tt.mode, tt.cause, tt.sticky)
		})
	}
}

// everyIndex fails the i-th writing operation (and all after it, if sticky), for
// every i; with -short for every tenth.
func everyIndex(t *testing.T, mode string, cause error, sticky bool) {
	injected, step := 0, int32(1)
	if testing.Short() {
		step = 10
	}
	for i := int32(0); ; i += step {
		mem := vfs.NewCrashableMem()
		var n, hits atomic.Int32
		inject := errorfs.InjectorFunc(func(op errorfs.Op) error {
			if op.Kind.ReadOrWrite() != errorfs.OpIsWrite {
				return nil
			}
			at := n.Add(1) - 1
			if at == i || sticky && at > i {
				hits.Add(1)
				return cause
			}
			return nil
		})
		s := newScenario(errorfs.Wrap(mem, inject), mode, uint64(i)+1)
		if mode == withTail || mode == withLog {
			s.tail = &fakeTail{fs: mem}
			s.tail.during = func([]byte, int64) error {
				return inject.MaybeError(errorfs.Op{Kind: errorfs.OpFileWrite, Path: "j/tail"})
			}
		}
		done := make(chan error, 1)
		go func() { done <- s.run() }()
		err := s.finish(done)
		acked, synced := s.acked.Load(), s.synced.Load()
		if hits.Load() == 0 {
			must.OK(t, err)
			if int(i) < 60 {
				t.Fatalf("only %d writing operations", i)
			}
			break
		}
		injected++
		if s.fatals.count() > 1 {
			t.Fatalf("operation %d: the Fatal hook was called %d times", i, s.fatals.count())
		}
		for _, unsynced := range []int{100, 0, 50} {
			clone := mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: unsynced,
				RNG: rand.New(rand.NewPCG(uint64(i), 7))})
			atLeast, boot, r := acked, "boot-1", rand.New(rand.NewPCG(uint64(i), 8))
			if unsynced < 100 {
				boot = "boot-2"
				if mode != DurabilityFsync && mode != withLog {
					atLeast = synced
				}
			}
			if s.tail != nil {
				s.tail.into(t, clone, func() bool { return r.IntN(100) < unsynced })
			}
			head, cloneErr := recovered(clone, boot, flow{seed: s.flow.seed, idsEvery: 4}, atLeast,
				s.submitted.Load())
			if cloneErr != nil {
				t.Fatalf("operation %d, %d%% of unsynced data kept, error was %v: %v", i, unsynced, err,
					cloneErr)
			}
			// What is acked after the failure was already there when it happened.
			if late := s.acked.Load(); unsynced == 100 && late > head {
				t.Fatalf("operation %d: %d acked after the error, which left %d", i, late, head)
			}
		}
	}
	t.Logf("%d operations failed", injected)
}

func TestBackgroundErrorPoisons(t *testing.T) {
	toggle := &errorfs.Toggle{Injector: errorfs.InjectorFunc(func(op errorfs.Op) error {
		if strings.HasSuffix(op.Path, ".sst") && op.Kind.ReadOrWrite() == errorfs.OpIsWrite {
			return syscall.ENOSPC
		}
		return nil
	})}
	fatals := newFatals()
	j := openNew(t, "j", Options{FS: errorfs.Wrap(vfs.NewMem(), toggle), Fatal: fatals.fatal})
	f := &flow{seed: 1}
	appendAll(t, j, f, 10)
	failed := make(chan error, 1)
	j.OnDurable(func(uint64) {}, func(err error) { failed <- err })
	toggle.On()
	_, err := j.db.AsyncFlush()
	must.OK(t, err)
	<-fatals.hit
	err = <-failed
	must.Be(t, err, ErrPoisoned)
	must.Be(t, err, syscall.ENOSPC)
	_, err = j.Append(f.block(&Block{}, 1))
	must.Be(t, err, ErrPoisoned)
	_, err = j.WriteSnapshot(1, func(io.Writer) error { return nil }, nil)
	must.Be(t, err, ErrPoisoned)
	if !j.Metrics().Poisoned {
		t.Error("metrics do not say poisoned")
	}
	must.OK(t, compareHistory(j, &flow{seed: 1}, 10)) // reads go on
	must.Be(t, j.Close(), ErrPoisoned)
}

func TestReadsGoOnWhenStorageIsFull(t *testing.T) {
	mem := vfs.NewMem()
	mem.TestingSetDiskUsage(vfs.DiskUsage{AvailBytes: 1 << 30})
	o := strict(t, mem)
	j := openNew(t, "j", o)
	f := &flow{seed: 1}
	appendAll(t, j, f, 10)
	if j.StorageFull() {
		t.Fatal("full with 1 GiB free")
	}
	mem.TestingSetDiskUsage(vfs.DiskUsage{AvailBytes: DefaultReserveBytes - 1})
	j.checkSpace()
	if !j.StorageFull() || !j.Metrics().StorageFull {
		t.Fatal("not full below the reserve")
	}
	appendAll(t, j, f, 5) // what is in flight still fits: the reserve is for that
	expectHistory(t, j, f, 15)
	mem.TestingSetDiskUsage(vfs.DiskUsage{AvailBytes: DefaultReserveBytes})
	j.checkSpace()
	if j.StorageFull() {
		t.Fatal("still full after space came back")
	}
	must.OK(t, j.Close())
}

// Without a reserve the journal is never full: with no byte left the next append fails.
func TestWithoutAReserveNothingIsFull(t *testing.T) {
	mem := vfs.NewMem()
	o := strict(t, mem)
	o.ReserveBytes = NoReserve
	j := openNew(t, "j", o)
	mem.TestingSetDiskUsage(vfs.DiskUsage{})
	j.checkSpace()
	if j.StorageFull() || j.ReserveBytes() != 0 {
		t.Errorf("full %v, with a reserve of %d", j.StorageFull(), j.ReserveBytes())
	}
	must.OK(t, j.Close())
}

func TestReplayOfAPoisonedContextEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	j := openNew(t, "j", strict(t, vfs.NewMem()))
	must.Be(t, j.Export(ctx, io.Discard, 1, 0), context.Canceled)
	must.OK(t, j.Close())
}

// TestCallThatIsGivenUpMeetsAClosedStore: after a failure a call is no longer waited for, and the
// store is closed before it comes to it. That ends the call alone.
func TestCallThatIsGivenUpMeetsAClosedStore(t *testing.T) {
	for name, run := range map[string]func(l *latch, call func() error) error{
		"the journal's store": (*latch).orPoison,
		"another store": func(l *latch, call func() error) error {
			return (&FailStop{latch: l}).await(call)
		},
	} {
		t.Run(name, func(t *testing.T) {
			l, ended := newLatch(func(error) {}), make(chan any, 1)
			db := must.Get(openStore("store", storeOptions(vfs.NewMem(), l, discardLogger{}), l))(t)
			begun, closed := make(chan struct{}), make(chan struct{})
			go func() {
				<-begun
				_ = l.Poison(syscall.EIO)
			}()
			err := run(l, func() error {
				defer func() {
					r := recover()
					ended <- r
					if r != nil {
						panic(r)
					}
				}()
				close(begun)
				<-closed
				return db.Set([]byte("k"), nil, pebble.Sync)
			})
			must.Be(t, err, syscall.EIO)
			must.OK(t, db.Close())
			close(closed)
			if r, _ := (<-ended).(error); !errors.Is(r, pebble.ErrClosed) {
				t.Fatalf("the store did not refuse the call: %v", r)
			}
		})
	}
}
