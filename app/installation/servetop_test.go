package installation

import (
	"strings"
	"testing"

	"posttrade/app/settings"
)

// TestServerShowsItselfToTop looks at a server while it runs and afterwards.
func TestServerShowsItselfToTop(t *testing.T) {
	dir := t.TempDir()
	s := startServer(t, dir)
	if status, body := call(t, "POST", s.url+"/orders", sellOrder); status != 201 {
		t.Fatalf("order: %d %s", status, body)
	}
	code, stdout, stderr := topOn(dir, "--once", "--interval=100ms")
	if code != settings.ExitOK || !strings.Contains(stdout, "  ready  over ") ||
		!strings.Contains(stdout, "seeds only") {
		t.Errorf("exit %d, %s%s", code, stdout, stderr)
	}
	s.stop(t)
	if code, _, stderr := topOn(dir, "--once"); code != settings.ExitFailed ||
		!strings.Contains(stderr, "stopped in order") {
		t.Errorf("after the end: exit %d, %s", code, stderr)
	}
}
