package journal

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"posttrade/matcher"
	"posttrade/ring"
	"posttrade/ring/must"
	"posttrade/ring/ringtest"
)

// heard is a logger that keeps its errors.
type heard struct{ lines []string }

func (h *heard) Infof(string, ...any) {}

func (h *heard) Errorf(format string, args ...any) {
	h.lines = append(h.lines, fmt.Sprintf(format, args...))
}

// eventsOf gives the events of a toy that decides everything up to n in one run.
func eventsOf(t *testing.T, f flow, n uint64) (all []matcher.Event) {
	t.Helper()
	e := &toy{flow: f}
	out := matcher.NewOutlet(16, func(events []matcher.Event) { all = append(all, events...) })
	for seq := uint64(1); seq <= n; seq++ {
		c := f.command(seq)
		must.OK(t, e.Replay(&c, out))
		out.Flush()
	}
	return all
}

// follow follows to a sequence and returns the events, which must come as whole commands.
func follow(t *testing.T, sh *Shadow, to uint64) (all []matcher.Event) {
	t.Helper()
	must.OK(t, sh.Follow(context.Background(), to, func(events []matcher.Event) error {
		if len(events) == 0 || events[0].Flags&matcher.EventFirst == 0 ||
			events[len(events)-1].Flags&matcher.EventLast == 0 {
			t.Errorf("%d events that are not whole commands", len(events))
		}
		all = append(all, events...)
		return nil
	}))
	return all
}

// since is the events after a sequence.
func since(events []matcher.Event, inputSeq uint64) []matcher.Event {
	at := slices.IndexFunc(events, func(ev matcher.Event) bool { return ev.InputSeq > inputSeq })
	if at < 0 {
		return nil
	}
	return events[at:]
}

func TestShadowStartsAtTheNewestUsableSnapshotBefore(t *testing.T) {
	fs := vfs.NewMem()
	log := &heard{}
	o := strict(t, fs)
	o.Logger = log
	j := openNew(t, "j", o)
	f := &flow{seed: 3}
	var list []Snapshot
	for range 3 {
		appendAll(t, j, f, 60, 40)
		snapshots := must.Get(NewSnapshotter(j, toys(*f, nil), 0))(t)
		s := must.Get(snapshots.Take(context.Background()))(t)
		list = append(list, s)
	}
	appendAll(t, j, f, 50)
	all := eventsOf(t, *f, 350)
	expect := func(before, at uint64, reports int) {
		t.Helper()
		log.lines = nil
		closed := 0
		sh := must.Get(NewShadow(j, toys(*f, &closed).Engine, before))(t)
		if sh.Applied() != at || len(log.lines) != reports {
			t.Fatalf("before %d: starts at %d, want %d; %d reports, want %d: %q",
				before, sh.Applied(), at, len(log.lines), reports, log.lines)
		}
		if got := follow(t, sh, math.MaxUint64); !slices.Equal(got, since(all, at)) ||
			sh.Applied() != 350 {
			t.Fatalf("before %d: %d events up to %d", before, len(got), sh.Applied())
		}
		if must.OK(t, sh.Close()); closed != 1 {
			t.Fatalf("%d engines closed", closed)
		}
	}
	damage := func(s SnapshotFile) {
		b := must.Get(fs.UnsafeGetFileDataBuffer("j/" + s.Path))(t)
		b[len(b)/2] ^= 4
	}
	for _, before := range []uint64{0, 99, 100, 199, 200, 299, 300, 320, math.MaxUint64} {
		expect(before, min(before/100*100, 300), 0)
	}
	damage(*list[2].Views) // not read
	expect(300, 300, 0)
	damage(list[2].State)
	expect(300, 200, 1)
	expect(299, 200, 0)
	must.OK(t, fs.Remove("j/"+list[1].State.Path))
	expect(300, 100, 2)
	damage(list[0].State)
	expect(math.MaxUint64, 0, 3)

	_, err := NewShadow(j, func(io.Reader) (Engine, error) { return nil, errToy }, 0)
	must.Be(t, err, errToy)
	must.OK(t, j.Close())
}

// TestSnapshotsThatNewerOnesReplaceAreNoDamage removes the next older snapshot while the newest is
// being tried.
func TestSnapshotsThatNewerOnesReplaceAreNoDamage(t *testing.T) {
	for _, forgotten := range []bool{true, false} {
		fs := vfs.NewMem()
		log := &heard{}
		o := strict(t, fs)
		o.Logger = log
		j := openNew(t, "j", o)
		f := &flow{seed: 3}
		var older Snapshot
		for range 2 {
			appendAll(t, j, f, 10)
			snapshots := must.Get(NewSnapshotter(j, toys(*f, nil), 0))(t)
			s := must.Get(snapshots.Take(context.Background()))(t)
			if older.InputSeq == 0 {
				older = s
			}
		}
		log.lines = nil
		sh := must.Get(NewShadow(j, func(state io.Reader) (Engine, error) {
			if state == nil {
				return &toy{flow: *f}, nil
			}
			must.OK(t, fs.Remove("j/"+older.State.Path))
			if forgotten {
				must.OK(t, j.db.Delete(newKey(keySnapshot, older.InputSeq), pebble.Sync))
			}
			return nil, errToy
		}, math.MaxUint64))(t)
		want := 2
		if forgotten {
			want = 1 // only the engine's refusal
		}
		if sh.Applied() != 0 || len(log.lines) != want {
			t.Errorf("forgotten %v: starts at %d, reports %q", forgotten, sh.Applied(), log.lines)
		}
		must.OK(t, errors.Join(sh.Close(), j.Close()))
	}
}

func TestFollowGoesOnWhereItStopped(t *testing.T) {
	j := openNew(t, "j", strict(t, vfs.NewMem()))
	f := &flow{seed: *faultSeed}
	t.Logf("-args -faultseed=%d", *faultSeed)
	appendAll(t, j, f, 1, 700, 3000, 5, 1294)
	all := eventsOf(t, *f, 5000)
	sh := must.Get(NewShadow(j, toys(*f, nil).Engine, 0))(t)
	rng := rand.New(rand.NewPCG(*faultSeed, 4))
	var got []matcher.Event
	for to := uint64(0); to < 5000; {
		to = min(to+rng.Uint64N(900), 5000)
		part := follow(t, sh, to)
		if sh.Applied() != to {
			t.Fatalf("at %d, want %d", sh.Applied(), to)
		}
		if rng.IntN(4) == 0 { // looking back gives nothing
			if again := follow(t, sh, to/2); again != nil || sh.Applied() != to {
				t.Fatalf("%d events of the past", len(again))
			}
		}
		got = append(got, part...)
	}
	if !slices.Equal(got, all) {
		t.Fatalf("%d events, want %d", len(got), len(all))
	}
	silent := must.Get(NewShadow(j, toys(*f, nil).Engine, 0))(t)
	must.OK(t, silent.Follow(context.Background(), 4321, nil))
	if got := follow(t, silent, 5000); !slices.Equal(got, since(all, 4321)) {
		t.Fatal("other events after a silent replay")
	}
	if silent.engine.(*toy).sum != sh.engine.(*toy).sum {
		t.Fatal("a silent replay gives another state")
	}
	must.OK(t, errors.Join(sh.Close(), silent.Close(), j.Close()))
}

// A shadow on a polite thread yields again and again; one at full priority does not.
func TestAPoliteShadowBreathes(t *testing.T) {
	j := openNew(t, "j", strict(t, vfs.NewMem()))
	f := &flow{seed: *faultSeed}
	appendAll(t, j, f, 700, 3000)
	breaths := func() (shadow, reader int) {
		sh := must.Get(NewShadow(j, toys(*f, nil).Engine, 0))(t)
		must.OK(t, sh.Follow(context.Background(), 3700, func(events []matcher.Event) error {
			if len(events) > shadowEvents {
				t.Errorf("%d events in one go, want %d at most", len(events), shadowEvents)
			}
			return nil
		}))
		w := j.borrowWalker()
		must.OK(t, w.walk(0, func(*decoded) error { return nil }))
		shadow, reader = sh.breath.Breaths(), w.breath.Breaths()
		j.returnWalker(w)
		must.OK(t, sh.Close())
		return shadow, reader
	}
	if ring.Niceness() <= 0 { // as it is, unless the whole test runs at a low priority
		if shadow, reader := breaths(); shadow != 0 || reader != 0 {
			t.Errorf("at the usual priority a shadow took %d breaths, its reader %d", shadow, reader)
		}
	}
	ringtest.Politely(t, func() {
		if shadow, reader := breaths(); shadow == 0 || reader == 0 {
			t.Errorf("a polite shadow took %d breaths, its reader %d", shadow, reader)
		}
		h := &hashing{w: io.Discard, sum: sha256.New(), breath: ring.NewBreather()}
		if _, err := h.Write(make([]byte, 100)); err != nil || h.breath.Breaths() == 0 {
			t.Errorf("a snapshot's writer took %d breaths, %v", h.breath.Breaths(), err)
		}
	})
	must.OK(t, j.Close())
}

// chatty is a toy with many events for some commands.
type chatty struct {
	toy
	many int
}

func (e *chatty) ReplayBatch(batch []matcher.Command, out *matcher.Outlet) (int, error) {
	for i := range batch {
		n := 1
		switch e.applied = batch[i].InputSeq; e.applied {
		case 10, 11:
			n = e.many
		case 12:
			n = shadowEvents
		}
		for k := range n {
			ev := e.slot(out)
			*ev = matcher.Event{Kind: matcher.EventApplied, InputSeq: e.applied, Qty: int32(k)}
			if k == 0 {
				ev.Flags |= matcher.EventFirst
			}
			if k == n-1 {
				ev.Flags |= matcher.EventLast
			}
		}
	}
	return len(batch), nil
}

func TestFollowGivesACommandOfManyEventsWhole(t *testing.T) {
	j := openNew(t, "j", strict(t, vfs.NewMem()))
	appendAll(t, j, &flow{seed: 1}, 30)
	const many = 20*shadowEvents + 1
	engine := func(io.Reader) (Engine, error) { return &chatty{many: many}, nil }
	sh := must.Get(NewShadow(j, engine, 0))(t)
	var counts [31]int
	for _, ev := range follow(t, sh, 30) {
		if int(ev.Qty) != counts[ev.InputSeq] {
			t.Fatalf("inputSeq=%d: event %d, want %d", ev.InputSeq, ev.Qty, counts[ev.InputSeq])
		}
		counts[ev.InputSeq]++
	}
	want := [31]int{10: many, 11: many, 12: shadowEvents}
	for seq := 1; seq <= 30; seq++ {
		if counts[seq] != max(want[seq], 1) {
			t.Errorf("inputSeq=%d: %d events, want %d", seq, counts[seq], max(want[seq], 1))
		}
	}
	if len(sh.out.Slots) != shadowEvents {
		t.Errorf("the window has %d slots afterwards", len(sh.out.Slots))
	}
	must.OK(t, errors.Join(sh.Close(), j.Close()))
}

func TestFollowThatFails(t *testing.T) {
	j := openNew(t, "j", strict(t, vfs.NewMem()))
	f := &flow{seed: 1}
	appendAll(t, j, f, 100, 100, 100)
	all := eventsOf(t, *f, 300)
	sh, err := NewShadow(j, toys(*f, nil).Engine, 0)
	must.OK(t, err)

	// After its context has ended the shadow continues without a hole.
	ctx, cancel := context.WithCancel(context.Background())
	var got []matcher.Event
	must.Be(t, sh.Follow(ctx, 300, func(events []matcher.Event) error {
		got = append(got, events...)
		cancel()
		return nil
	}), context.Canceled)
	if sh.Applied() == 0 || sh.Applied() == 300 {
		t.Fatalf("stopped at %d", sh.Applied())
	}
	must.Be(t, sh.Follow(ctx, 0, nil), context.Canceled)
	if got = append(got, follow(t, sh, 250)...); !slices.Equal(got,
		all[:len(all)-len(since(all, 250))]) {
		t.Fatalf("%d events up to 250", len(got))
	}

	// After an error of its reader the shadow does not continue.
	cause, calls := errors.New("planted"), 0
	fail := func([]matcher.Event) error { calls++; return cause }
	must.Be(t, sh.Follow(context.Background(), 300, fail), cause)
	must.Be(t, sh.Follow(context.Background(), 300, fail), cause)
	if calls != 1 {
		t.Fatalf("the reader was called %d times", calls)
	}
	must.OK(t, sh.Close())

	// After an error of its engine it does not continue either.
	sh, err = NewShadow(j, func(io.Reader) (Engine, error) { return &refusing{}, nil }, 0)
	must.OK(t, err)
	for range 2 {
		must.Be(t, sh.Follow(context.Background(), 20, fail), errToy)
	}
	must.OK(t, errors.Join(sh.Close(), j.Close()))
}

// refusing refuses its first command.
type refusing struct{ toy }

func (*refusing) ReplayBatch([]matcher.Command, *matcher.Outlet) (int, error) { return 0, errToy }
