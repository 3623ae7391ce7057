package console

import (
	"os"
	"strings"
	"testing"

	"posttrade/ring/must"
)

// TestPlainPath: the services have the same test over the same file, because a path must mean the
// same to both.
func TestPlainPath(t *testing.T) {
	text := string(must.Get(os.ReadFile("../testdata/plainpaths.txt"))(t))
	for line := range strings.Lines(text) {
		want, path, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		if plainPath(path) != (want == "yes") {
			t.Errorf("%q: want %s", path, want)
		}
	}
}
