package perf

import (
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
	write("10", line("x", "100", "20", "0")) // the usual priority: not counted
	write("11", line("x) S 1 (", "200", "5", "19"))
	before := readPolite(dir)
	if want := 2050 * time.Millisecond; len(before) != 1 || before["11"] != want {
		t.Fatalf("got %v, want thread 11 with %v", before, want)
	}
	write("11", line("x", "210", "10", "19"))
	write("12", line("x", "3", "0", "10"))     // new
	write("13", line("x", "3", "none", "19"))  // damaged
	write("14", line("x", "none", "3", "19"))  //
	write("15", line("x", "3", "3", "polite")) //
	write("16", "16 (short) S 1")
	if got, want := readPolite(dir).since(before), 180*time.Millisecond; got != want {
		t.Errorf("used %v, want %v", got, want)
	}
	// the thread has ended: its time is not known
	must.OK(t, os.RemoveAll(filepath.Join(dir, "11")))
	if got, want := readPolite(dir).since(before), 30*time.Millisecond; got != want {
		t.Errorf("used %v, want %v", got, want)
	}
	if n := len(readPolite(filepath.Join(dir, "nowhere"))); n != 0 {
		t.Errorf("%d threads of nobody", n)
	}
}
