package perf

import (
	"maps"
	"os"
	"path/filepath"
	"testing"
	"time"

	"posttrade/ring/must"
)

func TestTimeOfPoliteThreads(t *testing.T) {
	dir := t.TempDir()
	write := func(thread, stat string) {
		t.Helper()
		must.OK(t, os.MkdirAll(filepath.Join(dir, thread), 0o755))
		must.OK(t, os.WriteFile(filepath.Join(dir, thread, "stat"), []byte(stat), 0o644))
	}
	line := func(name, user, system, nice string) string {
		return "7 (" + name + ") S 1 2 3 4 5 6 7 8 9 10 " + user + " " + system + " 0 0 20 " + nice +
			" 9 0\n"
	}
	write("10", line("x", "100", "20", "0")) // the usual priority
	write("11", line("x) S 1 (", "200", "5", "19"))
	before := readThreads(dir)
	want := threadTimes{"10": {1200 * time.Millisecond, false}, "11": {2050 * time.Millisecond, true}}
	if !maps.Equal(before, want) {
		t.Fatalf("got %v, want %v", before, want)
	}
	write("10", line("x", "101", "20", "19")) // polite from here on: 10 ms
	write("11", line("x", "210", "10", "19"))
	write("12", line("x", "3", "0", "10"))     // new
	write("13", line("x", "3", "none", "19"))  // damaged
	write("14", line("x", "none", "3", "19"))  //
	write("15", line("x", "3", "3", "polite")) //
	write("16", "16 (short) S 1")
	if got, want := readThreads(dir).since(before), 190*time.Millisecond; got != want {
		t.Errorf("used %v, want %v", got, want)
	}
	// the thread has ended: its time is not known
	must.OK(t, os.RemoveAll(filepath.Join(dir, "11")))
	if got, want := readThreads(dir).since(before), 40*time.Millisecond; got != want {
		t.Errorf("used %v, want %v", got, want)
	}
	if n := len(readThreads(filepath.Join(dir, "nowhere"))); n != 0 {
		t.Errorf("%d threads of a folder that does not exist", n)
	}
}
