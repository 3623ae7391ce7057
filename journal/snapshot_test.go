package journal

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"golang.org/x/sys/unix"

	"posttrade/matcher"
	"posttrade/ring"
	"posttrade/ring/must"
)

func text(s string) func(io.Writer) error {
	return func(w io.Writer) error {
		_, err := io.WriteString(w, s)
		return err
	}
}

// restored is what Restore offers: the state's text, the views' text, and what was reported.
func restored(t *testing.T, j *Journal) (state, views string, reports []string) {
	t.Helper()
	_, err := j.Restore(func(err error) { reports = append(reports, err.Error()) },
		func(s Snapshot, stateR, viewsR io.Reader) error {
			b, err := io.ReadAll(stateR)
			must.OK(t, err)
			state = string(b)
			if viewsR != nil {
				b, err = io.ReadAll(viewsR)
				must.OK(t, err)
				views = string(b)
			}
			return nil
		})
	if err != nil && !errors.Is(err, ErrNoSnapshot) {
		t.Fatal(err)
	}
	return state, views, reports
}

func TestSnapshotsKeepTheNewestThree(t *testing.T) {
	fs := vfs.NewMem()
	j := openNew(t, "j", strict(t, fs))
	f := &flow{seed: 1}
	if state, _, _ := restored(t, j); state != "" {
		t.Fatalf("restored %q of nothing", state)
	}
	for i := range 5 {
		appendAll(t, j, f, 10)
		s := must.Get(j.WriteSnapshot(j.Durable(), text(fmt.Sprint("state ", i)),
			text(fmt.Sprint("views ", i))))(t)
		if s.InputSeq != uint64(10*(i+1)) || s.Views == nil {
			t.Fatalf("manifest %+v", s)
		}
	}
	for range 2 {
		list, err := j.Snapshots()
		must.OK(t, err)
		var seqs []uint64
		for _, s := range list {
			seqs = append(seqs, s.InputSeq)
		}
		if !slices.Equal(seqs, []uint64{50, 40, 30}) {
			t.Fatalf("snapshots %v", seqs)
		}
		names, err := fs.List("j/snapshots")
		must.OK(t, err)
		if len(names) != 6 {
			t.Fatalf("files %v", names)
		}
		if state, views, reports := restored(t, j); state != "state 4" || views != "views 4" ||
			reports != nil {
			t.Fatalf("restored %q %q %v", state, views, reports)
		}
		must.OK(t, j.Close())
		j, err = Open("j", strict(t, fs))
		must.OK(t, err)
	}
	_, err := j.WriteSnapshot(51, text(""), nil)
	must.Be(t, err, ErrSnapshot)
	must.OK(t, j.Close())
}

func TestDamagedSnapshotsAreSkippedWithTheReason(t *testing.T) {
	fs := vfs.NewMem()
	j := openNew(t, "j", strict(t, fs))
	f := &flow{seed: 1}
	var list []Snapshot
	for i := range 3 {
		appendAll(t, j, f, 10)
		s := must.Get(j.WriteSnapshot(j.Durable(), text(fmt.Sprint("state ", i)),
			text(fmt.Sprint("views ", i))))(t)
		list = append(list, s)
	}
	damage := func(s SnapshotFile) {
		b := must.Get(fs.UnsafeGetFileDataBuffer("j/" + s.Path))(t)
		b[len(b)/2] ^= 4
	}
	expect := func(state, views string, reports int, about string) {
		t.Helper()
		gotState, gotViews, got := restored(t, j)
		if gotState != state || gotViews != views || len(got) != reports ||
			!strings.Contains(strings.Join(got, "\n"), about) {
			t.Fatalf("restored %q %q, reports %q", gotState, gotViews, got)
		}
	}
	expect("state 2", "views 2", 0, "")
	damage(*list[2].Views)
	expect("state 2", "", 1, list[2].Views.Path)
	damage(list[2].State)
	expect("state 1", "views 1", 1, list[2].State.Path)
	must.OK(t, fs.Remove("j/"+list[1].State.Path))
	expect("state 0", "views 0", 2, list[1].State.Path)
	must.OK(t, j.db.Set(newKey(keySnapshot, 10), []byte("nonsense"), pebble.Sync))
	expect("", "", 3, "s/10")
	_, err := j.Snapshots()
	must.Be(t, err, ErrCorrupt)
	must.OK(t, j.Close())
}

func TestRefusedSnapshotFallsBack(t *testing.T) {
	j := openNew(t, "j", strict(t, vfs.NewMem()))
	f := &flow{seed: 1}
	for range 2 {
		appendAll(t, j, f, 10)
		must.Get(j.WriteSnapshot(j.Durable(), text("x"), nil))(t)
	}
	var tried []uint64
	reports := 0
	s := must.Get(j.Restore(func(error) { reports++ }, func(s Snapshot, _, _ io.Reader) error {
		if tried = append(tried, s.InputSeq); len(tried) == 1 {
			return errToy
		}
		return nil
	}))(t)
	if s.InputSeq != 10 || reports != 1 || !slices.Equal(tried, []uint64{20, 10}) {
		t.Fatalf("restored %d after %v, %d reports", s.InputSeq, tried, reports)
	}
	must.OK(t, j.Close())
}

func TestFailedSnapshotLeavesTheJournalUsable(t *testing.T) {
	for _, kind := range []errorfs.OpKind{errorfs.OpCreate, errorfs.OpFileWrite, errorfs.OpFileSync,
		errorfs.OpRename, errorfs.OpFileClose} {
		toggle := &errorfs.Toggle{Injector: errorfs.InjectorFunc(func(op errorfs.Op) error {
			if op.Kind == kind && strings.Contains(op.Path, "snapshots/") {
				return syscall.ENOSPC
			}
			return nil
		})}
		j := openNew(t, "j", strict(t, errorfs.Wrap(vfs.NewMem(), toggle)))
		f := &flow{seed: 1}
		appendAll(t, j, f, 10)
		_, err := j.WriteSnapshot(10, text("good"), nil)
		must.OK(t, err)
		appendAll(t, j, f, 10)
		toggle.On()
		_, err = j.WriteSnapshot(20, text("bad"), nil)
		if kind != errorfs.OpFileClose { // closing is not an operation that errorfs fails
			must.Be(t, err, syscall.ENOSPC)
		}
		toggle.Off()
		_, err = j.WriteSnapshot(10, func(io.Writer) error { return errToy }, nil)
		must.Be(t, err, errToy)
		appendAll(t, j, f, 10)
		_, err = j.WriteSnapshot(30, text("better"), nil)
		must.OK(t, err)
		if state, _, reports := restored(t, j); state != "better" || reports != nil {
			t.Fatalf("restored %q, %v", state, reports)
		}
		expectHistory(t, j, f, 30)
		must.OK(t, j.Close())
	}
}

// toys makes shadows of toy engines and tallies.
func toys(f flow, closed *int) Rebuild {
	return Rebuild{
		Engine: func(state io.Reader) (Engine, error) {
			if state == nil {
				return &toy{flow: f, closed: closed}, nil
			}
			e, err := readToy(f, state)
			if err == nil {
				e.closed = closed
			}
			return e, err
		},
		Views: func(image io.Reader) (Views, error) {
			if image == nil {
				return &tally{}, nil
			}
			return readTally(image)
		},
	}
}

// content is what a shadow of the whole history would write.
func content(t *testing.T, f flow, n uint64) (state, views string) {
	t.Helper()
	e, v := &toy{flow: f}, &tally{}
	var id []byte
	out := matcher.NewOutlet(16, func(events []matcher.Event) {
		for i := range events {
			v.Observe(&events[i], id)
		}
	})
	for seq := uint64(1); seq <= n; seq++ {
		c := f.command(seq)
		id = f.clientID(seq)
		must.OK(t, e.Replay(&c, out))
		out.Flush()
	}
	var s, w strings.Builder
	must.OK(t, errors.Join(e.WriteSnapshot(&s), v.Write(&w)))
	return s.String(), w.String()
}

func TestShadowWritesWhatTheWholeHistoryGives(t *testing.T) {
	fs := vfs.NewMem()
	j := openNew(t, "j", strict(t, fs))
	f := &flow{seed: 1, idsEvery: 5}
	closed := 0
	s, err := NewSnapshotter(j, toys(*f, &closed), 0)
	must.OK(t, err)
	for i, n := range []int{100, 1, 500, 50} {
		appendAll(t, j, f, n)
		snap := must.Get(s.Take(context.Background()))(t)
		if snap.InputSeq != f.inputSeq || s.Last() != f.inputSeq || closed != i+1 {
			t.Fatalf("snapshot %+v, last %d, %d engines closed", snap, s.Last(), closed)
		}
		state, views, reports := restored(t, j)
		wantState, wantViews := content(t, *f, f.inputSeq)
		if state != wantState || views != wantViews || reports != nil {
			t.Fatalf("at %d: %q, want %q; views %q, want %q; %v", f.inputSeq, state, wantState, views,
				wantViews, reports)
		}
	}
	again, err := s.Take(context.Background()) // nothing new
	must.OK(t, err)
	if list, err := j.Snapshots(); err != nil || len(list) != 3 || list[0].State != again.State {
		t.Fatalf("snapshots %v %v", list, err)
	}
	// With a damaged views image the shadow cannot start there, and starts at the snapshot before.
	b, err := fs.UnsafeGetFileDataBuffer("j/" + again.Views.Path)
	must.OK(t, err)
	b[len(b)/2] ^= 1
	appendAll(t, j, f, 10)
	_, err = s.Take(context.Background())
	must.OK(t, err)
	state, views, _ := restored(t, j)
	if wantState, wantViews := content(t, *f, f.inputSeq); state != wantState || views != wantViews {
		t.Fatal("the shadow from an older snapshot differs")
	}
	must.OK(t, j.Close())
}

func TestShadowReportsAnEngineThatRefuses(t *testing.T) {
	j := openNew(t, "j", strict(t, vfs.NewMem()))
	f := &flow{seed: 1}
	appendAll(t, j, f, 10)
	rebuild := toys(*f, nil)
	rebuild.Engine = func(io.Reader) (Engine, error) { return &toy{applied: 3}, nil }
	s, err := NewSnapshotter(j, rebuild, 1)
	must.OK(t, err)
	if _, err = s.Take(context.Background()); err != nil {
		t.Fatal(err) // it went on at 4, as an engine restored at 3 would
	}
	rebuild.Engine = func(io.Reader) (Engine, error) { return nil, errToy }
	s.rebuild = rebuild
	_, err = s.Take(context.Background())
	must.Be(t, err, errToy)
	must.OK(t, j.Close())
}

func TestSnapshotterTakesThemAsTheyFallDue(t *testing.T) {
	j := openNew(t, "j", strict(t, vfs.NewMem()))
	f := &flow{seed: 1}
	s := must.Get(NewSnapshotter(j, toys(*f, nil), 100))(t)
	appendAll(t, j, f, 150)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { s.Run(ctx); close(done) }()
	until(t, "snapshot", func() bool { return s.Last() == 150 })
	cancel()
	<-done
	off := must.Get(NewSnapshotter(j, toys(*f, nil), 0))(t)
	if off.Last() != 150 {
		t.Fatalf("a new snapshotter starts at %d", off.Last())
	}
	off.Run(ctx) // returns when ctx has ended
	must.OK(t, j.Close())
}

func TestPolitelyLowersOnlyItsOwnThread(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	before := must.Get(unix.Getpriority(unix.PRIO_PROCESS, 0))(t)
	var inside int
	cause := errors.New("planted")
	if err := Politely(Bulk, func() (err error) {
		if inside, err = unix.Getpriority(unix.PRIO_PROCESS, 0); err == nil {
			err = cause
		}
		return err
	}); !errors.Is(err, cause) {
		t.Errorf("got %v, want what the function returned", err)
	}
	// The system call gives 20 minus the nice value.
	if inside != 20-Bulk {
		t.Errorf("the function ran at nice %d, want %d", 20-inside, Bulk)
	}
	if after, _ := unix.Getpriority(unix.PRIO_PROCESS, 0); after != before {
		t.Errorf("the caller's thread went from nice %d to %d", 20-before, 20-after)
	}
}

// TestAPoliteWriteIsNoBurden: every goroutine behind a write in the store's queue waits for that
// write.
func TestAPoliteWriteIsNoBurden(t *testing.T) {
	j := openNew(t, "j", strict(t, vfs.NewMem()))
	usual := ring.Niceness()
	for _, nice := range []int{usual, Bulk} {
		at := -1
		err := Politely(nice, func() error {
			return j.latch.write(func() error { at = ring.Niceness(); return nil })
		})
		if err != nil || at != usual {
			t.Errorf("for a caller at nice %d a write ran at %d, want %d: %v", nice, at, usual, err)
		}
	}
	must.OK(t, j.Close())
}

// TestHelpersAreAsPoliteAsTheirCaller: a goroutine that reads ahead for a polite replay must not
// take the processor at full priority.
func TestHelpersAreAsPoliteAsTheirCaller(t *testing.T) {
	nice := func() int {
		at := make(chan int, 1)
		alike(func() { at <- ring.Niceness() })
		return <-at
	}
	own := ring.Niceness()
	if own < Background { // as it is, unless the whole test runs at a low priority
		if got := nice(); got != own {
			t.Errorf("the helper of a caller at nice %d runs at %d", own, got)
		}
	}
	for _, want := range []int{Background, Bulk} {
		must.OK(t, Politely(want, func() error {
			if got := nice(); got != want {
				t.Errorf("the helper of a caller at nice %d runs at %d", want, got)
			}
			return nil
		}))
	}
}
