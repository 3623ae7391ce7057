package installation

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"posttrade/app/apptest"
	"posttrade/ring/must"
	"posttrade/ring/waittest"
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
	// A server of an older build has the journal's lock alone.
	must.OK(t, os.Remove(filepath.Join(data, "lock")))
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

// TestStopEndsAMemberThatWaits: a member that waits for the others has no journal open. `stop` ends
// it all the same, and a second server does not take its place.
func TestStopEndsAMemberThatWaits(t *testing.T) {
	binary, m := apptest.Program(t), newThree(t).members[0]
	log := &waittest.Log{}
	flags := []string{"serve", "--data.dir=" + m.data, "--admin.listen=127.0.0.1:0"}
	for i := 0; i < len(m.settings); i += 2 {
		flags = append(flags, "--"+m.settings[i]+"="+m.settings[i+1])
	}
	server := exec.Command(binary, flags...)
	server.Stderr = log
	must.OK(t, server.Start())
	exited := make(chan error, 1)
	go func() { exited <- server.Wait() }()
	t.Cleanup(func() { server.Process.Kill() })
	waittest.Until(t, "the member waits", func() (bool, any) {
		return log.Count("not part of it yet") > 0, log.String()
	})
	second, err := exec.Command(binary, flags...).CombinedOutput()
	if err == nil || !strings.Contains(string(second), "JOURNAL_IN_USE") {
		t.Errorf("a second server: %v %s", err, second)
	}
	out, err := exec.Command(binary, "stop", "--data.dir="+m.data).CombinedOutput()
	if want := fmt.Sprintf("stopped process %d", server.Process.Pid); err != nil ||
		!strings.Contains(string(out), want) {
		t.Fatalf("stop: %v %s, want %s", err, out, want)
	}
	if err := <-exited; err != nil {
		t.Errorf("the member: %v\n%s", err, log)
	}
}
