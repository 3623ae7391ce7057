package quorum

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/hashicorp/raft"

	"posttrade/journal"
	"posttrade/ring/must"
)

// logState is what the log holds after a step of the script.
type logState struct {
	first, last uint64
	terms       map[uint64]uint64 // of every entry that was ever there and not replaced
	vote        uint64
}

// logStep is one call of the script and what it leads to.
type logStep struct {
	run   func(s *logStore) error // nil: close and open again
	after logState
}

// logScript is a scripted life of a log: terms and votes, batches of many sizes,
// compaction, another leader's entries, an installed snapshot, a flush that turns
// the store's log over, a second opening.
func logScript() []logStep {
	state, steps := logState{terms: map[uint64]uint64{}}, []logStep(nil)
	step := func(run func(s *logStore) error) {
		after := state
		after.terms = make(map[uint64]uint64, len(state.terms))
		for i, n := range state.terms {
			after.terms[i] = n
		}
		steps = append(steps, logStep{run, after})
	}
	vote := func(term uint64) {
		state.vote = term
		step(func(s *logStore) error { return s.SetUint64([]byte("vote"), term) })
	}
	store := func(first, n, term uint64) {
		if first != state.last+1 || state.last == 0 {
			state.first, state.terms = first, map[uint64]uint64{}
		}
		state.last = first + n - 1
		for i := first; i <= state.last; i++ {
			state.terms[i] = term
		}
		step(func(s *logStore) error {
			return errors.Join(s.StoreLogs(logEntries(first, first+n-1, term)), s.AwaitSynced(first+n-1))
		})
	}
	remove := func(lo, hi uint64) {
		if hi == state.last {
			state.last = lo - 1
			for i := lo; i <= hi; i++ {
				delete(state.terms, i)
			}
		} else {
			state.first = hi + 1
		}
		step(func(s *logStore) error { return s.DeleteRange(lo, hi) })
	}
	vote(1)
	store(1, 1, 1)
	store(2, 3, 1)
	store(5, 40, 1)
	remove(1, 20)
	step((*logStore).flush)
	store(45, 1, 1)
	vote(2)
	remove(40, 45) // another leader's entries come instead
	store(40, 3, 2)
	step(nil)
	store(43, 300, 2)
	remove(21, 200)
	store(1000, 2, 3) // behind an installed snapshot
	step((*logStore).flush)
	store(1002, 7, 3)
	vote(4)
	return steps
}

// flush makes the store write its tables.
func (s *logStore) flush() error { return s.stop.Write(s.db.Flush) }

// logRun is the script on one file system. done is how many steps have returned nil.
type logRun struct {
	fs     vfs.FS
	steps  []logStep
	done   atomic.Int32
	fatals atomic.Int32
	leads  bool // entries are stored ahead of the disk
	log    *logStore
}

func (r *logRun) open() (err error) {
	r.log, err = openLogStore("raft", logStoreOptions{FS: r.fs,
		Fatal: func(error) { r.fatals.Add(1) }})
	if err == nil {
		r.log.Lead(func() bool { return r.leads })
	}
	return err
}

func (r *logRun) run() error {
	if err := r.open(); err != nil {
		return err
	}
	for _, step := range r.steps {
		if step.run != nil {
			if err := step.run(r.log); err != nil {
				return err
			}
		} else if err := errors.Join(r.log.Close()); err != nil {
			return err
		} else if err := r.open(); err != nil {
			return err
		}
		r.done.Add(1)
	}
	return r.log.Close()
}

// logLeft opens what is left and compares it with the state after done steps, and with the state
// after one more step, which was under way.
func logLeft(fs vfs.FS, steps []logStep, done int32) (err error) {
	s, err := openLogStore("raft", logStoreOptions{FS: fs, Fatal: func(error) {}})
	if err != nil {
		return fmt.Errorf("reopen: %w", err)
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	var wrong []error
	for i := done - 1; i <= done; i++ {
		want := logState{}
		if i >= 0 && int(i) < len(steps) {
			want = steps[i].after
		}
		err := want.matches(s)
		if err == nil {
			return s.StoreLog(logEntry(s.reach().last+1, 9)) // and it goes on
		}
		wrong = append(wrong, fmt.Errorf("after step %d: %w", i, err))
	}
	return errors.Join(wrong...)
}

// matches compares entry by entry. The log may have more entries at the front: a lost compaction is
// done again.
func (want *logState) matches(s *logStore) error {
	got := s.reach()
	if got.last != want.last || got.first > want.first {
		return fmt.Errorf("log %d..%d, want %d..%d", got.first, got.last, want.first, want.last)
	}
	for i := got.first; i <= got.last && i > 0; i++ {
		var l raft.Log
		if err := s.GetLog(i, &l); err != nil {
			return err
		}
		if l.Term != want.terms[i] || string(l.Data) != string(logEntry(i, l.Term).Data) {
			return fmt.Errorf("entry %d: term %d, %q, want term %d", i, l.Term, l.Data, want.terms[i])
		}
	}
	if vote, err := s.GetUint64([]byte("vote")); vote != want.vote || err != nil && want.vote != 0 {
		return fmt.Errorf("vote %d, want %d, %v", vote, want.vote, err)
	}
	return nil
}

// isWrite reports an operation that changes the disk.
func isWrite(op errorfs.Op) bool { return op.Kind.ReadOrWrite() == errorfs.OpIsWrite }

// TestLogLosesNothingInAPowerCut cuts the power before every operation of the
// script, with all, half and nothing kept of what was not synced.
func TestLogLosesNothingInAPowerCut(t *testing.T) {
	for _, leads := range []bool{false, true} {
		t.Run(fmt.Sprintf("leads %v", leads), func(t *testing.T) {
			t.Parallel()
			cutLogEverywhere(t, leads)
		})
	}
}

func cutLogEverywhere(t *testing.T, leads bool) {
	t.Helper()
	type cut struct {
		fs      *vfs.MemFS
		done    int32
		op      int32
		percent int
	}
	var (
		cuts []cut
		mu   sync.Mutex
		n    int32
		mem  = vfs.NewCrashableMem()
		r    = &logRun{steps: logScript(), leads: leads}
	)
	r.fs = errorfs.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if !isWrite(op) {
			return nil
		}
		mu.Lock()
		defer mu.Unlock()
		n++
		for _, percent := range []int{0, 50, 100} {
			done := r.done.Load()
			rng := rand.New(rand.NewPCG(uint64(n), uint64(percent)))
			clone := mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: percent, RNG: rng})
			cuts = append(cuts, cut{clone, done, n, percent})
		}
		return nil
	}))
	must.OK(t, r.run())
	mu.Lock()
	defer mu.Unlock()
	step := 1
	if testing.Short() {
		step = 7
	}
	for i := 0; i < len(cuts); i += step {
		c := cuts[i]
		if err := logLeft(c.fs, r.steps, c.done); err != nil {
			t.Fatalf("operation %d, %d%% of unsynced data kept: %v", c.op, c.percent, err)
		}
	}
	if len(cuts) < 300 {
		t.Errorf("only %d cuts", len(cuts))
	}
	t.Logf("%d cuts", len(cuts))
}

// TestLogStopsAtTheFirstFailure fails the i-th operation that changes the disk, for
// every i: no call succeeds after it, the hook is called once, and nothing that
// was acknowledged is lost.
func TestLogStopsAtTheFirstFailure(t *testing.T) {
	for _, tt := range []struct {
		cause         syscall.Errno
		sticky, leads bool
	}{{syscall.EIO, false, false}, {syscall.ENOSPC, true, false}, {syscall.EIO, false, true}} {
		t.Run(fmt.Sprintf("%v sticky %v leads %v", tt.cause, tt.sticky, tt.leads), func(t *testing.T) {
			t.Parallel()
			i, step, failed := int32(0), int32(1), 0
			if testing.Short() {
				step = 7
			}
			for ; failLogAt(t, i, tt.cause, tt.sticky, tt.leads); i += step {
				failed++
			}
			if i < 80 {
				t.Errorf("only %d operations", i)
			}
			t.Logf("%d operations failed", failed)
		})
	}
}

// failLogAt fails operation i, and every later one if sticky. It returns false
// when the script has ended before.
func failLogAt(t *testing.T, i int32, cause error, sticky, leads bool) bool {
	t.Helper()
	var n, hits atomic.Int32
	mem := vfs.NewCrashableMem()
	r := &logRun{steps: logScript(), leads: leads}
	r.fs = errorfs.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if !isWrite(op) {
			return nil
		}
		if at := n.Add(1) - 1; at == i || sticky && at > i {
			hits.Add(1)
			return cause
		}
		return nil
	}))
	err := r.run()
	if hits.Load() == 0 {
		must.OK(t, err)
		return false
	}
	if err == nil {
		t.Fatalf("operation %d failed and nobody was told", i)
	}
	must.Be(t, err, cause)
	if r.log != nil { // the hook may be called on another goroutine than the one that is told
		await(t, "the hook to be called", func() bool { return r.fatals.Load() > 0 })
	}
	checkPoisoned(t, r, i)
	for _, percent := range []int{0, 50, 100} {
		rng := rand.New(rand.NewPCG(uint64(i), uint64(percent)))
		clone := mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: percent, RNG: rng})
		if left := logLeft(clone, r.steps, r.done.Load()); left != nil {
			t.Fatalf("operation %d, %d%% of unsynced data kept, error was %v: %v", i, percent, err, left)
		}
	}
	return true
}

// checkPoisoned asks the log again, unless opening it has failed.
func checkPoisoned(t *testing.T, r *logRun, i int32) {
	t.Helper()
	if n := r.fatals.Load(); n > 1 || n == 0 && r.log != nil {
		t.Fatalf("operation %d: the hook was called %d times", i, n)
	}
	if r.log == nil {
		return
	}
	for name, err := range logCalls(r.log) {
		if !errors.Is(err, journal.ErrPoisoned) {
			t.Fatalf("operation %d: %s afterwards: %v", i, name, err)
		}
	}
}

// TestFailureInTheBackgroundEndsTheLog makes the writing of a table fail, for which no caller
// waits.
func TestFailureInTheBackgroundEndsTheLog(t *testing.T) {
	toggle := &errorfs.Toggle{Injector: errorfs.InjectorFunc(func(op errorfs.Op) error {
		if strings.HasSuffix(op.Path, ".sst") && isWrite(op) {
			return syscall.ENOSPC
		}
		return nil
	})}
	fatal := make(chan error, 2)
	s, err := openLogStore("raft", logStoreOptions{FS: errorfs.Wrap(vfs.NewMem(), toggle),
		Fatal: func(err error) { fatal <- err }})
	must.OK(t, err)
	must.OK(t, s.StoreLogs(logEntries(1, 10, 1)))
	toggle.On()
	_, err = s.db.AsyncFlush()
	must.OK(t, err)
	must.Be(t, <-fatal, syscall.ENOSPC)
	for name, err := range logCalls(s) {
		t.Run(name, func(t *testing.T) { must.Be(t, err, syscall.ENOSPC) })
	}
	err = s.Close()
	must.Be(t, err, journal.ErrPoisoned)
	must.Be(t, err, syscall.ENOSPC)
	if len(fatal) != 0 {
		t.Error("the hook was called again")
	}
}
