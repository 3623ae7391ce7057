package installation

import (
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"posttrade/app/apptest"
	"posttrade/ring/must"
)

// TestStopEndsTheServer: `posttrade stop` ends the server of a data directory in order, and says so
// when none is left or when it does not end. The folder of the session socket is made by the start.
func TestStopEndsTheServer(t *testing.T) {
	binary, data := apptest.Program(t), t.TempDir()
	socket := filepath.Join(data, "run", "deep", "s")
	server := startForCrash(t, binary, data, "--sidecars.enabled=false", "--session.socket="+socket)
	stop := func(args ...string) (string, error) {
		out, err := exec.Command(binary, append([]string{"stop", "--data.dir=" + data}, args...)...).
			CombinedOutput()
		return string(out), err
	}
	must.OK(t, server.cmd.Process.Signal(syscall.SIGSTOP))
	if out, err := stop("--timeout=50ms"); err == nil ||
		!strings.Contains(out, "has not ended after 50ms") {
		t.Errorf("of a process that hangs: %v %s", err, out)
	}
	must.OK(t, server.cmd.Process.Signal(syscall.SIGCONT))
	if out, err := stop(); err != nil {
		t.Errorf("stop: %v %s", err, out)
	}
	if err := <-server.exited; err != nil {
		t.Errorf("the server: %v\n%s", err, server.log)
	}
	if out, err := stop(); err != nil || !strings.Contains(out, "no server runs") {
		t.Errorf("again: %v %s", err, out)
	}
	// Whether a server runs must be known before that is said.
	file := filepath.Join(data, "ports.json")
	for dir, want := range map[string]string{
		file:                     "a server runs: journal: find the holder",
		filepath.Join(data, "x"): "a server runs: no such file",
	} {
		if out, err := stop("--data.dir=" + dir); err == nil || !strings.Contains(out, want) {
			t.Errorf("on %s: %v %s", dir, err, out)
		}
	}
}
