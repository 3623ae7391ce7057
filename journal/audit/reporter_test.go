package audit

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"

	"posttrade/journal"
	"posttrade/journal/audit/lines"
	"posttrade/matcher"
	"posttrade/ring/must"
)

// diff names the first line that differs.
func diff(t testing.TB, what string, got, want []byte) {
	t.Helper()
	if bytes.Equal(got, want) {
		return
	}
	g, w := bytes.Split(got, []byte("\n")), bytes.Split(want, []byte("\n"))
	for i := range min(len(g), len(w)) {
		if !bytes.Equal(g[i], w[i]) {
			t.Fatalf("%s: line %d\n got %s\nwant %s", what, i+1, g[i], w[i])
		}
	}
	t.Fatalf("%s: %d lines, want %d", what, len(g), len(w))
}

// TestReportIsWhatTheNaiveRendererWrites compares whole reports of random histories with those of
// the naive renderer, and cuts them at random places: every part equals the naive renderer's part,
// and the parts together equal the whole.
func TestReportIsWhatTheNaiveRendererWrites(t *testing.T) {
	for range 3 {
		f := newFlow(t, rand.Uint64())
		v := newVenue(t, smallGenesis())
		const n = 6000
		v.trade(f, n)
		whole := v.report(1, n)
		diff(t, "whole", whole, v.expected(1, n))
		for range 8 {
			from := 1 + f.rng.Uint64N(n)
			to := from + f.rng.Uint64N(n+1-from)
			cut := from + f.rng.Uint64N(to+1-from)
			part := v.report(from, to)
			diff(t, fmt.Sprintf("%d..%d", from, to), part, v.expected(from, to))
			diff(t, fmt.Sprintf("%d..%d, then to %d", from, cut, to),
				append(v.report(from, cut), v.report(cut+1, to)...), part)
		}
	}
}

// TestReportsAreTheSameFromEverySnapshotAndAfterRestart asks for the same ranges
// with no snapshot, with more and more of them, while the history grows under
// control changes, and after the journal was closed and opened again.
func TestReportsAreTheSameFromEverySnapshotAndAfterRestart(t *testing.T) {
	f := newFlow(t, rand.Uint64())
	v := newVenue(t, smallGenesis())
	type asked struct {
		from, to uint64
		bytes    []byte
	}
	var before []asked
	for round := range 6 {
		v.trade(f, 1000)
		for range 3 {
			from := 1 + f.rng.Uint64N(v.head())
			to := from + f.rng.Uint64N(v.head()+1-from)
			before = append(before, asked{from, to, v.report(from, to)})
		}
		before = append(before, asked{1, v.head(), v.report(1, v.head())})
		switch round % 3 {
		case 0:
			v.snapshot()
		case 1:
			v.reopen()
		}
		for _, a := range before {
			diff(t, fmt.Sprintf("round %d, %d..%d", round, a.from, a.to), v.report(a.from, a.to), a.bytes)
		}
	}
	list, err := v.j.Snapshots()
	if err != nil || len(list) < 2 {
		t.Fatalf("snapshots %v: %v", list, err)
	}
	// Exactly at a snapshot, and around it, where the first command is not replayed in silence.
	for _, s := range list {
		for from := s.InputSeq - 1; from <= s.InputSeq+2; from++ {
			diff(t, fmt.Sprintf("from %d", from), v.report(from, from+100), v.expected(from, from+100))
		}
	}
}

// TestEveryCommandIsAccountedFor counts the records of every sequence.
func TestEveryCommandIsAccountedFor(t *testing.T) {
	f := newFlow(t, rand.Uint64())
	v := newVenue(t, smallGenesis())
	const n = 8000
	v.trade(f, n)
	kinds := map[uint64]map[string]int{}
	seen := map[string]int{}
	last := uint64(0)
	for line := range bytes.Lines(v.report(1, n)) {
		var r struct {
			Kind     string
			Sequence uint64
		}
		must.OK(t, json.Unmarshal(line, &r))
		if r.Sequence < last {
			t.Fatalf("sequence %d after %d", r.Sequence, last)
		}
		last = r.Sequence
		if kinds[r.Sequence] == nil {
			kinds[r.Sequence] = map[string]int{}
		}
		kinds[r.Sequence][r.Kind]++
		seen[r.Kind]++
	}
	for _, kind := range []string{"accept", "reject", "partial-fill", "fill", "cancel",
		"trade-booked"} {
		if seen[kind] == 0 {
			t.Errorf("no %s in this history", kind)
		}
	}
	contracts := 0
	for i := range v.events {
		ev := &v.events[i]
		if ev.Flags&matcher.EventFirst == 0 {
			continue
		}
		if ev.Kind == matcher.EventContract {
			contracts++
		}
		c, got := ev.Cmd(), kinds[ev.InputSeq]
		silent := c.TemplateID != matcher.TemplateCommand
		switch c.Type {
		case matcher.PriceTick, matcher.SnapshotMark, matcher.AccountControl, matcher.SecurityControl,
			matcher.PolicyControl:
			silent = true
		case matcher.RestrictionControl:
			if len(got) == 1 && got["cancel"] > 0 {
				continue // of the orders that it cancelled
			}
			silent = true
		}
		switch {
		case silent && len(got) != 0:
			t.Fatalf("inputSeq=%d of type %d gives %v", ev.InputSeq, c.Type, got)
		case !silent && len(got) == 0:
			t.Fatalf("inputSeq=%d of type %d gives nothing", ev.InputSeq, c.Type)
		case !silent && (ev.Kind == matcher.EventRejected) != (got["reject"] == 1):
			t.Fatalf("inputSeq=%d of type %d: %v", ev.InputSeq, c.Type, got)
		}
	}
	if contracts != v.engine.Counts().Contracts || contracts == 0 {
		t.Errorf("%d bookings are in this history, the engine holds %d", contracts,
			v.engine.Counts().Contracts)
	}
}

func TestClip(t *testing.T) {
	v := newVenue(t, smallGenesis())
	if first, last, err := v.reporter().Clip(0, 0); first != 1 || last != 0 || err != nil {
		t.Errorf("of an empty history: %d..%d, %v", first, last, err)
	}
	v.trade(newFlow(t, 1), 100)
	tests := []struct {
		name                  string
		from, to, first, last uint64
		want                  error
	}{
		{"all", 0, 0, 1, 100, nil},
		{"both", 5, 10, 5, 10, nil},
		{"one", 7, 7, 7, 7, nil},
		{"from the first", 1, 0, 1, 100, nil},
		{"to absent", 40, 0, 40, 100, nil},
		{"from absent", 0, 40, 1, 40, nil},
		{"to beyond the head", 3, 101, 3, 100, nil},
		{"to far beyond the head", 3, math.MaxUint64, 3, 100, nil},
		{"from beyond the head", 101, 0, 0, 0, ErrRange},
		{"both beyond the head", 200, 300, 0, 0, ErrRange},
		{"backwards", 10, 9, 0, 0, ErrRange},
		{"backwards beyond the head", 300, 200, 0, 0, ErrRange},
		{"backwards across the head", 300, 5, 0, 0, ErrRange},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			first, last, err := v.reporter().Clip(tt.from, tt.to)
			if first != tt.first || last != tt.last || !errors.Is(err, tt.want) {
				t.Fatalf("got %d..%d %v, want %d..%d %v", first, last, err, tt.first, tt.last, tt.want)
			}
			if err == nil {
				diff(t, "report", v.report(first, last), v.expected(first, last))
			}
		})
	}
	diff(t, "beyond the head, unclipped", v.report(90, 500), v.report(90, 100))
	diff(t, "from 0", v.report(0, 5), v.report(1, 5))
	if genesis, _ := v.j.Genesis(); !bytes.Equal(v.reporter().Genesis(), genesis) ||
		len(genesis) == 0 {
		t.Errorf("seed %s", v.reporter().Genesis())
	}
}

// TestReportsWhileOrdersFlow makes the same reports again and again while another goroutine trades.
func TestReportsWhileOrdersFlow(t *testing.T) {
	f := newFlow(t, rand.Uint64())
	v := newVenue(t, smallGenesis())
	v.trade(f, 3000)
	v.snapshot()
	v.trade(f, 500)
	wants := [][]byte{v.report(1, 3500), v.report(2990, 3499)}
	v.forget = true
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-stop:
				return
			default:
				v.trade(f, 200)
			}
		}
	}()
	r := v.reporter()
	ask := func(from, to uint64, want []byte) error {
		var got []byte
		_, err := r.Write(context.Background(), from, to, func(records []byte, _ int) error {
			got = append(got, records...)
			return nil
		})
		if err == nil && !bytes.Equal(got, want) {
			err = fmt.Errorf("%d..%d differs", from, to)
		}
		return err
	}
	for range 5 {
		other := make(chan error)
		go func() { other <- ask(1, 3500, wants[0]) }()
		if err := errors.Join(ask(2990, 3499, wants[1]), <-other); err != nil {
			t.Error(err)
		}
	}
	close(stop)
	<-done
}

func TestReportThatFails(t *testing.T) {
	v := newVenue(t, smallGenesis())
	v.trade(newFlow(t, 5), 5000)
	cause := errors.New("planted")
	closed := 0
	counting := func(state io.Reader) (journal.Engine, error) {
		e, err := v.rebuild(state)
		return &countedEngine{e.(*matcher.Engine), &closed}, err
	}
	r := New(v.j, counting, Options{MaxConcurrent: 1})
	ignore := func([]byte, int) error { return nil }
	total, err := r.Write(context.Background(), 1, 5000, func([]byte, int) error { return cause })
	if !errors.Is(err, cause) || total != (Total{}) || closed != 1 {
		t.Errorf("a sink that fails: %v, %+v, %d closed", err, total, closed)
	}
	ctx, cancel := context.WithCancel(context.Background())
	chunks := 0
	_, err = r.Write(ctx, 1, 5000, func([]byte, int) error { chunks++; cancel(); return nil })
	if !errors.Is(err, context.Canceled) || chunks > 2 || closed != 2 {
		t.Errorf("canceled under way: %v after %d chunks, %d closed", err, chunks, closed)
	}
	if _, err = r.Write(ctx, 1, 5000, ignore); !errors.Is(err, context.Canceled) || closed != 2 {
		t.Errorf("canceled before: %v", err)
	}
	if _, err := New(v.j, func(io.Reader) (journal.Engine, error) { return nil, cause }, Options{}).
		Write(context.Background(), 1, 10, ignore); !errors.Is(err, cause) {
		t.Errorf("an engine that cannot be made: %v", err)
	}
	mute := func(state io.Reader) (journal.Engine, error) {
		e, err := v.rebuild(state)
		return struct{ journal.Engine }{e}, err
	}
	if _, err := New(v.j, mute, Options{}).Write(context.Background(), 1, 10,
		ignore); !errors.Is(err, ErrEngine) {
		t.Errorf("an engine without tickers: %v", err)
	}
	// None of these calls keeps a place: one report at a time is still possible, and only one.
	_, err = r.Write(context.Background(), 1, 5000, func([]byte, int) error {
		if _, err := r.Write(context.Background(), 1, 10, ignore); !errors.Is(err, ErrBusy) {
			t.Errorf("a second report at a time: %v", err)
		}
		return nil
	})
	if err != nil || closed != 3 {
		t.Errorf("the report itself: %v, %d closed", err, closed)
	}
}

// countedEngine counts how often it is closed.
type countedEngine struct {
	*matcher.Engine
	closed *int
}

func (e *countedEngine) Close() error { *e.closed++; return e.Engine.Close() }

func TestReportsAreMadeAtTheLowestPriority(t *testing.T) {
	v := newVenue(t, smallGenesis())
	v.trade(newFlow(t, 7), 10)
	nice := 0
	_, err := v.reporter().Write(context.Background(), 1, 10, func([]byte, int) (err error) {
		nice, err = unix.Getpriority(unix.PRIO_PROCESS, 0)
		return err
	})
	if err != nil || nice != 20-19 { // the system call gives 20 minus the nice value
		t.Errorf("made at nice %d: %v", 20-nice, err)
	}
}

// TestReportMemoryDoesNotGrowWithTheRange compares the bytes that are allocated for a range with
// the bytes that are allocated for a range twenty times as long.
func TestReportMemoryDoesNotGrowWithTheRange(t *testing.T) {
	f := newFlow(t, 11)
	v := newVenue(t, smallGenesis())
	v.forget = true
	v.trade(f, 60_000)
	r := v.reporter()
	allocated := func(to uint64) uint64 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		must.Get(r.Write(context.Background(), 1, to, func([]byte, int) error { return nil }))(t)
		runtime.ReadMemStats(&after)
		return after.TotalAlloc - before.TotalAlloc
	}
	allocated(60_000)
	short, long := allocated(3000), allocated(60_000)
	t.Logf("%d bytes for 3000 commands, %d for 60000", short, long)
	if long > short+4<<20 {
		t.Errorf("%d bytes for 3000 commands, %d for 60000", short, long)
	}
}

func TestRenderingDoesNotAllocate(t *testing.T) {
	f := newFlow(t, 3)
	v := newVenue(t, smallGenesis())
	v.trade(f, 2000)
	p := lines.NewPrinter(func([]byte, int) error { return nil })
	p.Know(v.engine)
	at := 0
	if n := testing.AllocsPerRun(len(v.events)-1, func() {
		if err := p.Print(v.events[at : at+1]); err != nil {
			t.Error(err)
		}
		at++
	}); n != 0 {
		t.Errorf("an event takes %v allocations", n)
	}
}
