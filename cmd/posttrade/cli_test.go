package main

import (
	"io"
	"strings"
	"syscall"
	"testing"

	"posttrade/app/settings"
)

// fullDisk is a standard output that takes nothing.
type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, syscall.ENOSPC }

// A script that keeps what a command prints sees by the exit code that it got nothing. What the
// command has found wrong counts before that.
func TestLostOutputIsAFailure(t *testing.T) {
	data := "--data.dir=" + t.TempDir()
	for _, line := range []string{"version", "-h", "help", "config --json " + data, "completion bash",
		"token --subject=a " + data, "journal -h"} {
		args := strings.Fields(line)
		var errs strings.Builder
		if code := dispatch(commands(), args, io.Discard, &errs); code != settings.ExitOK {
			t.Errorf("%s: exit %d: %s", line, code, &errs)
		}
		code := dispatch(commands(), args, fullDisk{}, &errs)
		if code != settings.ExitFailed || !strings.Contains(errs.String(), syscall.ENOSPC.Error()) {
			t.Errorf("%s on a full disk: exit %d, %q", line, code, &errs)
		}
	}
	var errs strings.Builder
	mismatch := []command{{name: "check", run: func(_ []string, out, _ io.Writer) int {
		_, _ = out.Write([]byte("x"))
		return settings.ExitMismatch
	}}}
	code := dispatch(mismatch, []string{"check"}, fullDisk{}, &errs)
	if code != settings.ExitMismatch {
		t.Errorf("exit %d instead of the verdict", code)
	}
}
