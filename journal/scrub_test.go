package journal

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"posttrade/ring/must"
)

// scrubbed is a journal of many blocks, most of them in tables.
func scrubbed(t *testing.T) (im image, head uint64) {
	t.Helper()
	mem := vfs.NewMem()
	j := openNew(t, "j", strict(t, mem))
	f := flow{seed: 5, idsEvery: 3}
	for range 4 { // small ones: the store searches a damaged table for the flipped bit
		appendAll(t, j, &f, 4, 1, 3, 4, 1, 3, 4)
		must.OK(t, j.db.Flush())
	}
	appendAll(t, j, &f, 30, 2) // in the log
	head, _ = j.Head()
	must.OK(t, j.Close())
	return capture(t, mem, "j"), head
}

// quickScrub is a scrub that never rests.
func quickScrub(j *Journal, report func(Damage)) *Scrub {
	s := NewScrub(j, time.Hour, report)
	ready := make(chan time.Time)
	close(ready)
	s.rest = func(time.Duration) <-chan time.Time { return ready }
	return s
}

// reads reads the commit that holds a command.
func reads(j *Journal, seq uint64) error {
	w := newWalker(j.db, j.Seed())
	defer w.close()
	if err := w.seek(seq); err != nil {
		return err
	}
	w.adrift = true
	return w.walk(seq, func(*decoded) error { return nil })
}

func TestScrubOfAWholeJournalFindsNothing(t *testing.T) {
	im, head := scrubbed(t)
	j := must.Get(Open("j", strict(t, im.restore(t, "", nil))))(t)
	s := quickScrub(j, func(d Damage) { t.Errorf("found %+v", d) })
	must.OK(t, s.Pass(t.Context()))
	if got := s.State(); got.Completed.IsZero() || got.Next != 0 || len(got.Damaged) != 0 {
		t.Errorf("state %+v at %d", got, head)
	}
	must.OK(t, j.Close())
}

// TestScrubNamesWhatIsDamaged flips a bit in the middle of tables of each kind of block. The start
// succeeds all the same, and a pass names the file and a range that holds every command that cannot
// be read. Everything else has been read.
func TestScrubNamesWhatIsDamaged(t *testing.T) {
	im, head := scrubbed(t)
	tables := 0
	for _, name := range im.files() {
		if !strings.HasSuffix(name, ".sst") {
			continue
		}
		content := bytes.Clone(im[name])
		content[len(content)/3] ^= 0x10
		t.Run(name, func(t *testing.T) {
			fs := im.restore(t, name, content)
			o := strict(t, fs)
			// the store's own compaction may meet the damage first, and ends the journal
			o.Fatal = func(error) {}
			j, err := Open("j", o)
			if err != nil {
				return // the start finds it
			}
			var told []Damage
			s := quickScrub(j, func(d Damage) { told = append(told, d) })
			if err := s.Pass(t.Context()); errors.Is(err, ErrPoisoned) {
				return
			}
			state := s.State()
			if len(state.Damaged) != len(told) || state.Completed.IsZero() {
				t.Fatalf("told %+v, state %+v", told, state)
			}
			tables += len(told)
			for _, d := range told {
				if d.File != name || d.Why == "" || d.Key == "" || d.From > d.To || d.To > head {
					t.Errorf("found %+v, in %s", d, name)
				}
			}
			for seq := uint64(1); seq <= head; seq++ {
				known := slices.ContainsFunc(told, func(d Damage) bool { return d.From <= seq && seq <= d.To })
				if err := reads(j, seq); err != nil && !known && j.Err() == nil {
					t.Errorf("command %d: %v, told %+v", seq, err, told)
				}
			}
			again := NewScrub(j, time.Hour, nil).State()
			if fmt.Sprint(again.Damaged) != fmt.Sprint(state.Damaged) {
				t.Errorf("after a restart %+v, want %+v", again, state)
			}
			_ = j.Close()
		})
	}
	if tables == 0 {
		t.Error("no table was damaged")
	}
}

// TestScrubReadsWhatIsOnTheDisk flips a bit in each table while the journal is open and has just
// read all of it: what the store's cache still has does not hide the damage. Recheck sees it too,
// and sees that it is mended.
func TestScrubReadsWhatIsOnTheDisk(t *testing.T) {
	im, _ := scrubbed(t)
	fs := im.restore(t, "", nil)
	o := strict(t, fs)
	o.Fatal = func(error) {}
	j := must.Get(Open("j", o))(t)
	must.OK(t, quickScrub(j, func(d Damage) { t.Errorf("found %+v", d) }).Pass(t.Context()))
	flip := func(name string, at int64) {
		f := must.Get(fs.OpenReadWrite(name, writeCategory))(t)
		b := make([]byte, 1)
		must.Get(f.ReadAt(b, at))(t)
		b[0] ^= 0x10
		must.Get(f.WriteAt(b, at))(t)
		must.OK(t, f.Close())
	}
	tables := 0
	for _, name := range im.files() {
		if !isTable(name) || bytes.Contains(im[name], testGenesis) {
			continue // a scrub reads the blocks of commands, fills and ids
		}
		if _, err := fs.Stat(name); err != nil {
			continue // the store has compacted it meanwhile
		}
		tables++
		s := quickScrub(j, func(Damage) {})
		must.OK(t, s.Pass(t.Context()))
		flip(name, 40) // in its first block
		must.OK(t, s.Pass(t.Context()))
		if found := s.State().Damaged; len(found) == 0 || found[0].File != name {
			t.Errorf("%s: found %+v", name, found)
		}
		if still := s.Recheck(); len(still) == 0 {
			t.Errorf("%s: read again, it holds", name)
		}
		flip(name, 40)
		if still := s.Recheck(); len(still) != 0 {
			t.Errorf("%s is mended, and %+v", name, still)
		}
	}
	if tables == 0 {
		t.Error("no table was damaged")
	}
	must.OK(t, j.Close())
}

// A missing block, and a block replaced by another one, are damage that no file's checksum shows.
// The pass after the repair removes the finding.
func TestScrubFindsAHoleAndForgetsItWhenMended(t *testing.T) {
	im, head := scrubbed(t)
	j, err := Open("j", strict(t, im.restore(t, "", nil)))
	must.OK(t, err)
	key := newKey(keyCommands, 5) // the second block
	value, closer, err := j.db.Get(key)
	must.OK(t, err)
	value = bytes.Clone(value)
	must.OK(t, closer.Close())
	for name, spoil := range map[string]func() error{
		"a hole":         func() error { return j.db.Delete(key, pebble.Sync) },
		"another record": func() error { return j.db.Set(key, value[:len(value)-1], pebble.Sync) },
	} {
		t.Run(name, func(t *testing.T) {
			must.OK(t, spoil())
			s := quickScrub(j, func(Damage) {})
			must.OK(t, s.Pass(t.Context()))
			if got := s.State().Damaged; len(got) != 1 || got[0].From != 5 || got[0].To != 5 {
				t.Errorf("found %+v of %d", got, head)
			}
			must.OK(t, j.db.Set(key, value, pebble.Sync))
			must.OK(t, s.Pass(t.Context()))
			if got := s.State().Damaged; len(got) != 0 {
				t.Errorf("mended, but %+v", got)
			}
		})
	}
	must.OK(t, j.Close())
}

// A pass that is cut short continues where it was, in another process as well.
func TestScrubGoesOnWhereItWas(t *testing.T) {
	im, _ := scrubbed(t)
	fs := im.restore(t, "", nil)
	j, err := Open("j", strict(t, fs))
	must.OK(t, err)
	s := quickScrub(j, func(d Damage) { t.Errorf("found %+v", d) })
	ctx, cancel := context.WithCancel(t.Context())
	rests := 0
	pause := s.rest
	s.rest = func(d time.Duration) <-chan time.Time {
		if rests++; rests == 2 {
			cancel()
		}
		return pause(d)
	}
	s.piece = 256
	must.OK(t, s.Pass(ctx))
	at := s.State().Next
	if at <= 1 {
		t.Fatalf("stopped at %d", at)
	}
	must.OK(t, j.Close())
	if j, err = Open("j", strict(t, fs)); err != nil {
		t.Fatal(err)
	}
	s = quickScrub(j, func(d Damage) { t.Errorf("found %+v", d) })
	if got := s.State().Next; got != at {
		t.Errorf("goes on at %d, want %d", got, at)
	}
	must.OK(t, s.Pass(t.Context()))
	if got := s.State(); got.Next != 0 || got.Completed.IsZero() {
		t.Errorf("state %+v", got)
	}
	must.OK(t, j.Close())
}

// TestFindingsThatStandTwiceInTheFileAreOne: an older build may have written one damage twice, and
// two metrics of one name and its labels are none.
func TestFindingsThatStandTwiceInTheFileAreOne(t *testing.T) {
	im, _ := scrubbed(t)
	j := must.Get(Open("j", strict(t, im.restore(t, "", nil))))(t)
	s := quickScrub(j, nil)
	a, b := Damage{Key: "a", From: 5, To: 6}, Damage{Key: "b", From: 9, To: 9}
	s.state.Damaged = []Damage{a, b, a, b}
	s.keep()
	got := quickScrub(j, nil).State().Damaged
	if !slices.Equal(got, []Damage{a, b}) {
		t.Errorf("found %+v", got)
	}
	must.OK(t, j.Close())
}

// TestFindingsThatCannotBeWritten: whichever operation on their file fails, the pass is complete,
// its findings are known, and Unkept says why a restart will not know them. The next pass tries
// again.
func TestFindingsThatCannotBeWritten(t *testing.T) {
	im, _ := scrubbed(t)
	for _, kind := range []errorfs.OpKind{errorfs.OpCreate, errorfs.OpFileWrite, errorfs.OpRename} {
		disk, hits := findingsFail(kind)
		j := must.Get(Open("j", strict(t, errorfs.Wrap(im.restore(t, "", nil), disk))))(t)
		key := newKey(keyCommands, 5)
		must.OK(t, j.db.Delete(key, pebble.Sync))
		s := quickScrub(j, func(Damage) {})
		disk.On()
		must.OK(t, s.Pass(t.Context()))
		if state := s.State(); state.Completed.IsZero() || len(state.Damaged) != 1 || *hits != 2 {
			t.Errorf("operation %d failed %d times: state %+v", kind, *hits, state)
		}
		must.Be(t, s.Unkept(), syscall.ENOSPC)
		if known := NewScrub(j, time.Hour, nil).State(); len(known.Damaged) != 0 {
			t.Errorf("operation %d: a restart knows %+v", kind, known)
		}
		disk.Off()
		must.OK(t, s.Pass(t.Context()))
		must.OK(t, s.Unkept())
		if known := NewScrub(j, time.Hour, nil).State(); len(known.Damaged) != 1 {
			t.Errorf("operation %d: then a restart knows %+v", kind, known)
		}
		must.OK(t, j.Close())
	}
}

// TestAScrubGoesOnWithoutItsFile: Run does not end when findings cannot be written.
func TestAScrubGoesOnWithoutItsFile(t *testing.T) {
	im, _ := scrubbed(t)
	disk, hits := findingsFail(errorfs.OpCreate)
	j := must.Get(Open("j", strict(t, errorfs.Wrap(im.restore(t, "", nil), disk))))(t)
	disk.On()
	s := quickScrub(j, func(Damage) {})
	ctx, cancel := context.WithCancel(t.Context())
	looks := 0
	s.interval = 0
	s.now = func() time.Time { // each pass looks at it
		if looks++; looks > 100 {
			cancel()
		}
		return time.Now()
	}
	must.OK(t, s.Run(ctx))
	if s.Unkept() == nil || *hits < 3 {
		t.Errorf("%v after %d failures", s.Unkept(), *hits)
	}
	must.OK(t, j.Close())
}

// findingsFail fails an operation on the file with the findings while it is on, and counts.
func findingsFail(kind errorfs.OpKind) (disk *errorfs.Toggle, hits *int) {
	hits = new(int)
	return &errorfs.Toggle{Injector: errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind == kind && strings.HasPrefix(op.Path, "j/"+scrubName) {
			*hits++
			return syscall.ENOSPC
		}
		return nil
	})}, hits
}
