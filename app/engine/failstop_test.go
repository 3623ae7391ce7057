package engine

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"testing"
)

// A panic in the driver of the engine ends the process, though its caller recovers.
func TestDriversPanicEndsTheProcess(t *testing.T) {
	const child = "POSTTRADE_TEST_DRIVER_PANICS"
	if os.Getenv(child) != "" {
		defer func() { _ = recover() }()
		failStop(func() { panic("planted") })()
		return
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestDriversPanicEndsTheProcess$")
	cmd.Env = append(os.Environ(), child+"=1")
	out, err := cmd.CombinedOutput()
	var ended *exec.ExitError
	if !errors.As(err, &ended) || ended.ExitCode() != 2 {
		t.Fatalf("the process ended with %v, want exit code 2:\n%s", err, out)
	}
	for _, want := range []string{"driver: planted", "failstop_test.go"} {
		if !bytes.Contains(out, []byte(want)) {
			t.Errorf("it says nothing of %q:\n%s", want, out)
		}
	}
}

// A drive without a panic returns as usual.
func TestFailStopDrives(t *testing.T) {
	drove := 0
	drive := failStop(func() { drove++ })
	if allocs := testing.AllocsPerRun(100, drive); allocs != 0 {
		t.Errorf("%v allocations", allocs)
	}
	if drove != 101 {
		t.Errorf("drove %d times, want 101", drove)
	}
}
