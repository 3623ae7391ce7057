package journal

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"posttrade/ring/must"
)

// agedParts is a journal to be archived, in memory of which only what was synced counts.
type agedParts struct {
	mem    *vfs.MemFS
	flow   flow
	before Report
}

func newAgedParts(t *testing.T) agedParts {
	t.Helper()
	a := agedParts{mem: vfs.NewCrashableMem()}
	a.flow, _ = agedJournal(t, a.mem)
	a.before = must.Get(verifyToy(t, a.mem, a.flow, ""))(t)
	return a
}

// archiveInto archives into a folder whose parents are missing, with a Fatal hook that returns.
func archiveInto(t *testing.T, fs vfs.FS) error {
	_, err := Archive(t.Context(), "j", deepArchives, tomorrow,
		Options{FS: fs, boot: "boot-1", Fatal: func(error) {}}, nil)
	return err
}

const deepArchives = "cold/storage/archives"

// whole checks that a journal, with its archives, has every command that it had before, and that
// archiving goes on from there. where says what was done to it.
func (a *agedParts) whole(t *testing.T, fs vfs.FS, where string) {
	t.Helper()
	for _, step := range []string{"afterwards", "when the archive was made again"} {
		r, err := verifyToy(t, fs, a.flow, deepArchives)
		if err != nil || r.Chain != a.before.Chain || r.InputSeq != a.before.InputSeq ||
			r.Fills != a.before.Fills || r.ClientIDs != a.before.ClientIDs {
			t.Fatalf("%s, %s: %d of %d commands, %v", where, step, r.InputSeq, a.before.InputSeq, err)
		}
		if err := archiveInto(t, fs); err != nil && !errors.Is(err, ErrNothingOld) {
			t.Fatalf("%s, %s: %v", where, step, err)
		}
	}
}

// TestArchiveMeetsAFullOrFailingDisk fails the i-th operation of an archiving, or it and all after
// it, for every i that writes, and for some that read; with -short for fewer. What is left, whether
// the process is killed or the power is cut then, is a whole journal, and archiving goes on.
func TestArchiveMeetsAFullOrFailingDisk(t *testing.T) {
	writes := func(op errorfs.Op) bool { return op.Kind.ReadOrWrite() == errorfs.OpIsWrite }
	for _, tt := range []struct {
		name   string
		cause  syscall.Errno
		sticky bool
		step   int32
		counts func(errorfs.Op) bool
	}{
		{"a write", syscall.EIO, false, 1, writes},
		{"every write from there", syscall.ENOSPC, true, 1, writes},
		{"a read or a write", syscall.EIO, false, 5, func(errorfs.Op) bool { return true }},
	} {
		t.Run(fmt.Sprintf("%s is %v", tt.name, tt.cause), func(t *testing.T) {
			t.Parallel()
			aged, step, refused := newAgedParts(t), tt.step, 0
			if testing.Short() {
				step *= 13
			}
			i := int32(0)
			for ; ; i += step {
				mem := kill(aged.mem)
				var n, hits atomic.Int32
				err := archiveInto(t, errorfs.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
					if !tt.counts(op) {
						return nil
					}
					if at := n.Add(1) - 1; at != i && (at < i || !tt.sticky) {
						return nil
					}
					hits.Add(1)
					return tt.cause
				})))
				if hits.Load() == 0 {
					must.OK(t, err)
					break
				}
				if err != nil {
					refused++
				}
				for _, unsynced := range []int{100, 0, 50} {
					r := rand.New(rand.NewPCG(*faultSeed, uint64(i)))
					clone := mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: unsynced, RNG: r})
					aged.whole(t, clone, fmt.Sprintf("operation %d, %d%% of unsynced data kept, error was %v",
						i, unsynced, err))
				}
			}
			if i < 50 || refused == 0 {
				t.Errorf("%d operations, %d archivings have failed", i, refused)
			}
			t.Logf("%d operations, %d archivings have failed", i, refused)
		})
	}
}

// TestPowerCutsWhileArchiving cuts the power before every operation that writes. Either the journal
// has the commands or the archive has them.
func TestPowerCutsWhileArchiving(t *testing.T) {
	t.Logf("-args -faultseed=%d", *faultSeed)
	aged := newAgedParts(t)
	type cut struct {
		at, percent int
		fs          *vfs.MemFS
	}
	var (
		mem  = kill(aged.mem)
		mu   sync.Mutex
		cuts []cut
	)
	take := func(at int) {
		for _, percent := range []int{0, 50, 100} {
			r := rand.New(rand.NewPCG(*faultSeed, uint64(at)))
			cuts = append(cuts, cut{at, percent, mem.CrashClone(vfs.CrashCloneCfg{
				UnsyncedDataPercent: percent, RNG: r})})
		}
	}
	must.OK(t, archiveInto(t, errorfs.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind.ReadOrWrite() != errorfs.OpIsWrite {
			return nil
		}
		mu.Lock()
		defer mu.Unlock()
		take(len(cuts) / 3)
		return nil
	}))))
	take(len(cuts) / 3) // when it has returned
	if len(cuts) < 150 {
		t.Fatalf("%d cuts", len(cuts))
	}
	archived, step := 0, 1
	if testing.Short() {
		step = 23
	}
	for n := 0; n < len(cuts); n += step {
		c := cuts[n]
		if _, err := verifyToy(t, c.fs, aged.flow, ""); errors.Is(err, ErrArchived) {
			archived++
		}
		aged.whole(t, c.fs, fmt.Sprintf("cut at %d, %d%% of unsynced data kept", c.at, c.percent))
	}
	if archived == 0 || archived == len(cuts) {
		t.Errorf("%d of %d cuts leave an archive", archived, len(cuts))
	}
	t.Logf("%d of %d cuts leave an archive", archived, len(cuts))
}
