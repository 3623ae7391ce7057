package journal

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"posttrade/ring/must"
)

func TestPowerCutsLoseNothingAcked(t *testing.T) {
	t.Logf("-args -powercuts=%d -faultseed=%d", *powerCuts, *faultSeed)
	points := *powerCuts
	if testing.Short() {
		points /= 5
	}
	for _, mode := range []string{DurabilityFsync, DurabilityOS, withLog} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			r := rand.New(rand.NewPCG(*faultSeed, uint64(len(mode))))
			shortened := 0
			for cut := 0; cut < points; {
				cuts, lost := cutPower(t, mode, r)
				cut += cuts
				shortened += lost
			}
			t.Logf("%d of %d cuts lost what was on its way", shortened, points)
		})
	}
}

// cutPower runs the script once and cuts the power a few times on the way, in
// the middle of operations. It returns how often, and how often something was lost.
func cutPower(t *testing.T, mode string, r *rand.Rand) (cuts, lost int) {
	type cut struct {
		fs                       *vfs.MemFS
		acked, synced, submitted func() uint64
		op                       int32
		percent                  int
	}
	var (
		mem  = vfs.NewCrashableMem()
		mu   sync.Mutex
		all  []cut
		n    atomic.Int32
		s    *scenario
		at   = map[int32]int{}
		seed = r.Uint64()
		fix  = func(v uint64) func() uint64 { return func() uint64 { return v } }
	)
	for range 6 {
		at[r.Int32N(220)] = []int{0, 0, 10, 50, 90, 100}[r.IntN(6)]
	}
	inject := errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind.ReadOrWrite() != errorfs.OpIsWrite {
			return nil
		}
		i := n.Add(1)
		percent, now := at[i]
		if !now {
			return nil
		}
		c := cut{op: i, percent: percent, acked: fix(s.acked.Load()), synced: fix(s.synced.Load())}
		clone := func() {
			c.fs = mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: percent,
				RNG: rand.New(rand.NewPCG(seed, uint64(i)))})
		}
		if s.tail == nil {
			clone()
		} else {
			s.tail.under(func(image *fakeTail) {
				clone()
				sectors := rand.New(rand.NewPCG(seed, uint64(i)+1))
				image.into(t, c.fs, func() bool { return sectors.IntN(100) < percent })
			})
		}
		c.submitted = fix(s.submitted.Load())
		mu.Lock()
		all = append(all, c)
		mu.Unlock()
		return nil
	})
	s = newScenario(errorfs.Wrap(mem, inject), mode, seed)
	if mode == withLog {
		s.tail = &fakeTail{fs: mem, syncing: func() { must.OK(t, inject.MaybeError(syncOfTail)) }}
		s.tail.during = func(_ []byte, at int64) error {
			for range at / tailSector * 7 % 11 { // writes end in any order
				runtime.Gosched()
			}
			return inject.MaybeError(errorfs.Op{Kind: errorfs.OpFileWrite, Path: "j/tail"})
		}
	}
	must.OK(t, s.run())
	mu.Lock()
	defer mu.Unlock()
	for _, c := range all {
		atLeast := c.acked()
		if mode == DurabilityOS {
			atLeast = c.synced()
		}
		if _, err := recovered(c.fs, "boot-2", flow{seed: seed, idsEvery: 4}, atLeast,
			c.submitted()); err != nil {
			t.Fatalf("seed %d, operation %d, %d%% of unsynced data kept: %v", seed, c.op, c.percent, err)
		}
		a, err := readAnchor(c.fs, "j", "boot-2")
		if err == nil && a.inputSeq < c.submitted()+3 {
			lost++
		}
	}
	return len(all), lost
}

func TestKilledProcessLosesNothing(t *testing.T) {
	for _, mode := range []string{DurabilityFsync, DurabilityOS} {
		t.Run(mode, func(t *testing.T) {
			mem := vfs.NewCrashableMem()
			s := newScenario(mem, mode, 5)
			j, err := s.open()
			must.OK(t, err)
			must.OK(t, j.Create(testGenesis))
			for range 20 {
				must.OK(t, s.commits(j, []int{1, 2, 3}))
				acked := s.acked.Load()
				clone := kill(mem)
				_, err = recovered(clone, "boot-1", flow{seed: 5, idsEvery: 4}, acked, s.submitted.Load())
				must.OK(t, err)
			}
			must.OK(t, j.Close())
		})
	}
}

// TestPowerCutInOSModeLeavesAPrefix cuts the power while much of the log has been handed to the
// system and is not synced: any of its pages may be on the disk. The journal cuts the log's end at
// a commit and never takes it for damage.
func TestPowerCutInOSModeLeavesAPrefix(t *testing.T) {
	mem := vfs.NewCrashableMem()
	f := &flow{seed: 3, idsEvery: 4}
	var heads []uint64
	o := Options{FS: mem, Durability: DurabilityOS, FlushInterval: time.Hour, boot: "boot-1",
		Fatal: func(err error) { t.Error(err) }}
	j := openNew(t, "j", o)
	blocks, clones := 150, 40
	if testing.Short() {
		blocks, clones = 60, 8
	}
	for range blocks {
		appendAll(t, j, f, 100)
	}
	must.OK(t, j.lazy.Flush())
	synced := f.inputSeq
	for range blocks {
		appendAll(t, j, f, 100)
	}
	for i := range clones {
		percent := []int{0, 30, 60, 95}[i%4]
		clone := mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: percent,
			RNG: rand.New(rand.NewPCG(*faultSeed, uint64(i)))})
		head, err := recovered(clone, "boot-2", flow{seed: 3, idsEvery: 4}, synced, f.inputSeq)
		if err != nil {
			t.Fatalf("clone %d, %d%% of unsynced data kept: %v", i, percent, err)
		}
		heads = append(heads, head)
	}
	t.Logf("synced %d, written %d, recovered %v", synced, f.inputSeq, heads)
	must.Get(recovered(kill(mem), "boot-1", flow{seed: 3, idsEvery: 4}, f.inputSeq, f.inputSeq))(t)
	must.OK(t, j.Close())
}

// TestLogsTurnOverWhileTheTickerSyncs closes logs as fast as it can while
// another goroutine syncs them: a sync must never meet a closed file.
func TestLogsTurnOverWhileTheTickerSyncs(t *testing.T) {
	dir := t.TempDir()
	lazy := newLazyFS(vfs.Default)
	stop, done := make(chan struct{}), make(chan error, 1)
	go func() {
		for {
			select {
			case <-stop:
				done <- nil
				return
			default:
			}
			if err := lazy.Flush(); err != nil {
				done <- err
				return
			}
		}
	}()
	for i := range 100 {
		f, err := lazy.Create(fmt.Sprintf("%s/%d.log", dir, i), writeCategory)
		must.OK(t, err)
		for range 5 {
			_, err = f.Write([]byte("x"))
			must.OK(t, err)
			must.OK(t, errors.Join(f.Sync(), f.SyncData()))
		}
		must.OK(t, f.Close())
	}
	close(stop)
	must.OK(t, <-done)
	if len(lazy.logs) != 0 {
		t.Errorf("%d logs left open", len(lazy.logs))
	}
}
