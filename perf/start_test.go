package perf

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"posttrade/ring/must"
	"posttrade/ring/waittest"
)

// family is the environment variable that makes this test binary a parent of that many generations.
const family = "PERF_TEST_FAMILY"

// TestChildrenEndWithTheirParent kills a process with -9 that has started a child, which has
// started another: all end.
func TestChildrenEndWithTheirParent(t *testing.T) {
	if generations := os.Getenv(family); generations != "" {
		beFamily(generations)
		return
	}
	oldest := member(3)
	out := must.Get(oldest.StdoutPipe())(t)
	must.OK(t, start(oldest))
	var pids []int
	for lines := bufio.NewScanner(out); len(pids) < 3 && lines.Scan(); {
		if text, ours := strings.CutPrefix(lines.Text(), "pid "); ours {
			pid := must.Get(strconv.Atoi(text))(t)
			pids = append(pids, pid)
		}
	}
	if len(pids) != 3 {
		t.Fatalf("the family is %v", pids)
	}
	must.OK(t, oldest.Process.Kill())
	_ = oldest.Wait() // it was killed
	for _, pid := range pids {
		waittest.Until(t, "the family ends", func() (bool, any) { return !runs(pid), pid })
	}
}

// runs reports whether a process exists and is not a zombie, which only waits to be reaped.
func runs(pid int) bool {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && !strings.Contains(string(text), ") Z ")
}

// member is this test binary as the parent of that many generations, including itself.
func member(generations int) *exec.Cmd {
	cmd := exec.Command(os.Args[0], "-test.run=^TestChildrenEndWithTheirParent$")
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%d", family, generations))
	return cmd
}

// beFamily prints its own process id, starts the next generation and waits without end.
func beFamily(generations string) {
	fmt.Println("pid", os.Getpid())
	if n, _ := strconv.Atoi(generations); n > 1 {
		next := member(n - 1)
		next.Stdout = os.Stdout
		if err := start(next); err != nil {
			panic(err)
		}
		_ = next.Wait() // killed
	}
	<-time.After(10 * time.Minute) // killed long before, unless the test is broken
}
