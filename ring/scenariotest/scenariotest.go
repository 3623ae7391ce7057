package scenariotest

import (
	"iter"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"posttrade/ring/must"
)

// Run plays every scenario whose name matches pattern, each as a test of its own.
func Run(t *testing.T, pattern string, play func(t *testing.T, script string) string) {
	t.Helper()
	Each(t, pattern, func(t *testing.T, script, want string) {
		t.Helper()
		if got := play(t, script); got != want {
			t.Errorf("got\n%swant\n%s", got, want)
		}
	})
}

// Each calls test with the two parts of every scenario whose name matches pattern.
func Each(t *testing.T, pattern string, test func(t *testing.T, script, want string)) {
	t.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		t.Fatalf("no scenario found: %v", err)
	}
	for _, name := range files {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".scn"), func(t *testing.T) {
			t.Helper()
			text := must.Get(os.ReadFile(name))(t)
			script, want, found := strings.Cut(string(text), "\n----\n")
			if !found {
				t.Fatal("no line of dashes")
			}
			test(t, script, want)
		})
	}
}

// Lines are the lines of a script that are not empty and no remarks, by their numbers.
func Lines(script string) iter.Seq2[int, string] {
	return func(yield func(int, string) bool) {
		number := 0
		for line := range strings.Lines(script) {
			number++
			if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "#") {
				continue
			}
			if !yield(number, line) {
				return
			}
		}
	}
}
