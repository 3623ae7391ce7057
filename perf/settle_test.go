package perf

import (
	"bytes"
	"io"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"posttrade/ring/must"
)

func TestRowsThatAreAskedFor(t *testing.T) {
	names := func(rows []row) (text string) {
		for _, row := range rows {
			text += row.name + " "
		}
		return text
	}
	all, err := rowsOf("")
	if err != nil || len(all) != len(rows()) {
		t.Errorf("%d rows, %v", len(all), err)
	}
	for only, want := range map[string]string{
		"heap": "heap ", "cut,heap": "heap cut ", "feed": "feeds feed-replay ",
		"journal,jour": "journal ",
	} {
		if chosen, err := rowsOf(only); err != nil || names(chosen) != want {
			t.Errorf("%s: %s, %v", only, names(chosen), err)
		}
	}
	for only, word := range map[string]string{"nothing": `"nothing"`, "heap,nothing": `"nothing"`,
		"heap,": `""`, ",": `""`, " heap": `" heap"`} {
		_, err := rowsOf(only)
		if err == nil ||
			!strings.Contains(err.Error(), "no row's name contains "+word+"; there are jitter, ring, ") {
			t.Errorf("%q: %v", only, err)
		}
		if again := Measure(Options{Only: only, Smoke: true, Dir: filepath.Join(t.TempDir(), "absent"),
			Stdout: io.Discard}); again == nil || again.Error() != err.Error() {
			t.Errorf("%q is measured: %v", only, again)
		}
	}
}

func TestARowBeginsWithTheProcessorsOfTheRun(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	procs := runtime.GOMAXPROCS(0)
	var shown bytes.Buffer
	r := &Run{o: Options{Stdout: &shown, Smoke: true}, env: Environment{Procs: procs}}
	careless := row{"careless", func(*Run) error { runtime.GOMAXPROCS(procs + 3); return nil }, nil}
	careful := row{"careful", func(r *Run) error {
		if got := runtime.GOMAXPROCS(0); got != procs {
			t.Errorf("gomaxprocs %d, want %d", got, procs)
		}
		if r.farReadNs <= 0 {
			t.Error("nothing is known of the memory")
		}
		return io.EOF
	}, nil}
	must.OK(t, r.measure(careless))
	if err := r.measure(careful); err != io.EOF {
		t.Errorf("got %v", err)
	}
	text := shown.String()
	for _, want := range []string{"# row careless took ", " ns; stolen from the machine during it ",
		"# a row before has left gomaxprocs at "} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in %s", want, text)
		}
	}
	if strings.Contains(text, "row careful took") {
		t.Error("a row that failed has a time")
	}
}

// TestFarTableIsOneRound visits every line once before the first one comes again.
func TestFarTableIsOneRound(t *testing.T) {
	for _, lines := range []int{1, 2, 1000} {
		table := farTable(lines, 3)
		at, seen := uint32(0), map[uint32]bool{}
		for !seen[at] {
			seen[at] = true
			at, _ = walk(table, at, 1)
		}
		if len(seen) != lines || at != 0 {
			t.Errorf("%d of %d lines, then %d", len(seen), lines, at)
		}
	}
}
