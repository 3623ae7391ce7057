package perf

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"posttrade/app/apptest"
	"posttrade/ring/must"
)

func ms(n int) time.Time { return time.Unix(1_800_000_000, int64(n)*1e6) }

// TestStallsWithoutStandstills: what the machine took of a stall does not count, wherever in the
// stall it was, and what it took beside it does.
func TestStallsWithoutStandstills(t *testing.T) {
	still := standstills{{ms(0), ms(12)}, {ms(30), ms(35)}, {ms(36), ms(37)}, {ms(58), ms(90)}}
	if got := still.longest(); got != 32*time.Millisecond {
		t.Errorf("the longest is %v", got)
	}
	var s stalls
	s.durable(ms(2), ms(15))  // 10 of 13 ms
	s.durable(ms(28), ms(40)) // 6 of 12 ms
	s.durable(ms(50), ms(60)) // 2 of 10 ms
	s.durable(ms(100), ms(104))
	if got := s.longestWithout(still); got != 8*time.Millisecond {
		t.Errorf("the longest stall without standstills is %v", got)
	}
	if got := s.longestWithout(nil); got != 13*time.Millisecond || s.longest != got {
		t.Errorf("the longest stall is %v and %v", got, s.longest)
	}
	if got := still.metrics(ms(0), ms(100))[0].value; got != 50 {
		t.Errorf("%v %% of the time", got)
	}
}

// TestLooksFindStandstills: a time without a look on any core, once, whatever the order in which
// the looks arrive.
func TestLooksFindStandstills(t *testing.T) {
	l := looks{start: ms(0)}
	for _, at := range []int{5, 6, 8, 11, 12, 9, 32, 13, 33, 35} { // 9 and 13 come late
		l.look(time.Duration(at) * time.Millisecond)
	}
	if want := (standstills{{ms(8), ms(11)}, {ms(12), ms(32)}}); !slices.Equal(l.found, want) {
		t.Errorf("%v, want %v", l.found, want)
	}
}

func TestReadingOfStandstills(t *testing.T) {
	list, err := readStandstills(strings.NewReader("30 40\n5 8\n"))
	if err != nil || len(list) != 2 || list[0].from.UnixNano() != 5 || list[1].to.UnixNano() != 40 {
		t.Errorf("%v, %v", list, err)
	}
	for _, text := range []string{"30\n", "30 29\n", "x 1\n", "\n"} {
		if _, err := readStandstills(strings.NewReader(text)); err == nil ||
			!strings.Contains(err.Error(), "want two moments") {
			t.Errorf("%q: %v", text, err)
		}
	}
	broken := iotest.ErrReader(os.ErrClosed)
	_, err = readStandstills(broken)
	must.Be(t, err, os.ErrClosed)
}

// TestWatcherOfStandstills runs the real one for a moment. A system that gives it no real-time
// priority is told of in the results, and the row is measured all the same.
func TestWatcherOfStandstills(t *testing.T) {
	var shown bytes.Buffer
	r := &Run{o: Options{Stdout: &shown, Binary: apptest.Program(t)}}
	w := must.Get(r.watchStandstills())(t)
	refused := strings.Contains(shown.String(), "# standstills are not watched: ") &&
		strings.Contains(shown.String(), "real-time priority")
	if (w == nil) != refused {
		t.Errorf("a watcher: %v, results: %s", w != nil, &shown)
	}
	_ = must.Get(w.end())(t)

	r.o.Binary = filepath.Join(t.TempDir(), "absent")
	_, err := r.watchStandstills()
	must.Be(t, err, os.ErrNotExist)
	if list := must.Get((*watcher)(nil).end())(t); list != nil {
		t.Errorf("%v", list)
	}
}

// TestFoldersAreRemovedByTheNextRow: not while their own row measures.
func TestFoldersAreRemovedByTheNextRow(t *testing.T) {
	r := &Run{o: Options{Dir: t.TempDir()}}
	dir := filepath.Join(r.o.Dir, "engine")
	for range 2 { // the name is free again
		must.OK(t, os.Mkdir(dir, 0o700))
		must.OK(t, r.leave(dir))
	}
	if list := must.Get(os.ReadDir(r.o.Dir))(t); len(list) != 2 {
		t.Errorf("%v is left", list)
	}
	must.Be(t, r.leave(dir), os.ErrNotExist)
	must.OK(t, r.settle())
	if list := must.Get(os.ReadDir(r.o.Dir))(t); len(list) != 0 {
		t.Errorf("%v is left", list)
	}
	r.o.Dir = filepath.Join(r.o.Dir, "absent")
	must.Be(t, r.settle(), os.ErrNotExist)
}
