package ring

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"

	"posttrade/ring/must"
)

// The second process is this test binary again, with a role in childEnv.
const (
	childEnv      = "POSTTRADE_RING_CHILD"
	childMessages = "POSTTRADE_RING_MESSAGES"
	firstExtraFd  = 3
	procCapacity  = 64
)

func TestMain(m *testing.M) {
	role := os.Getenv(childEnv)
	if role == "" {
		os.Exit(m.Run())
	}
	n, err := strconv.Atoi(os.Getenv(childMessages))
	if err == nil {
		err = child(role, n)
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", role, err)
		os.Exit(1)
	}
}

func child(role string, n int) error {
	switch role {
	case "echo":
		return childEcho(n)
	case "late":
		return childLate(n)
	}
	return fmt.Errorf("unknown role %q", role)
}

// start runs this binary in a role; files become descriptors 3, 4 and so on.
func start(t *testing.T, role string, n int, regions ...*Region) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childEnv+"="+role, childMessages+"="+strconv.Itoa(n))
	cmd.Stderr = os.Stderr
	for _, r := range regions {
		f := os.NewFile(uintptr(dup(t, r.Fd())), "region")
		defer f.Close()
		cmd.ExtraFiles = append(cmd.ExtraFiles, f)
	}
	must.OK(t, cmd.Start())
	return cmd
}

// Every message crosses to the other process and back, and both sides park at once when there is
// none: each of the 2n hops needs its wake-up. A rescue by the backstop would be a lost wake-up.
func TestTwoProcessesLoseNoWakeUp(t *testing.T) {
	n := rounds(30_000)
	bytes := SPSCBytes[msg](procCapacity)
	var regions []*Region
	var rings []*SPSC[msg]
	for _, name := range []string{"there", "back"} {
		region := must.Get(Memfd(name, bytes))(t)
		defer region.Close()
		r := must.Get(NewSPSC[msg](region, procCapacity))(t)
		regions, rings = append(regions, region), append(rings, r)
	}
	cmd := start(t, "echo", n, regions...)
	there, back := rings[0], rings[1]
	idler := NewIdler(Park, back.Waiter())
	idler.Shared()
	for i := range n {
		there.Claim().fill(uint64(i))
		there.Publish()
		lo, hi := back.Ready(1)
		for lo == hi {
			idler.Idle(back)
			lo, hi = back.Ready(1)
		}
		if !back.At(lo).ok(uint64(i) + 1) {
			t.Fatalf("message %d came back as %v", i, *back.At(lo))
		}
		back.Release(hi)
	}
	must.OK(t, cmd.Wait())
	// On a stalled machine a sleep may run out at the moment of a wake-up.
	if got := idler.Stats(); got.Rescues > 2 {
		t.Errorf("stats %+v of %d messages", got, n)
	}
}

func childEcho(n int) error {
	bytes := SPSCBytes[msg](procCapacity)
	a, err1 := Attach(firstExtraFd, bytes)
	b, err2 := Attach(firstExtraFd+1, bytes)
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	in, err1 := OpenSPSC[msg](a)
	out, err2 := OpenSPSC[msg](b)
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	idler := NewIdler(Park, in.Waiter())
	idler.Shared()
	for i := range n {
		lo, hi := in.Ready(1)
		for lo == hi {
			idler.Idle(in)
			lo, hi = in.Ready(1)
		}
		if !in.At(lo).ok(uint64(i)) {
			return fmt.Errorf("message %d reads %v", i, *in.At(lo))
		}
		in.Release(hi)
		out.Claim().fill(uint64(i) + 1)
		out.Publish()
	}
	if got := idler.Stats(); got.Rescues > 2 {
		return fmt.Errorf("stats %+v of %d messages", got, n)
	}
	return nil
}

// The kernel keeps a read-only mapping from being written; this does not depend on the process.
func TestReadOnlyMappingHasNoWriteAccess(t *testing.T) {
	region := must.Get(Memfd("read-only", pageBytes))(t)
	defer region.Close()
	view := must.Get(AttachReadOnly(dup(t, region.Fd()), pageBytes))(t)
	defer view.Close()
	// Filling the view from a pipe is a write by the kernel: EFAULT instead of a signal.
	var pipe [2]int
	must.OK(t, unix.Pipe2(pipe[:], unix.O_CLOEXEC))
	defer unix.Close(pipe[0])
	defer unix.Close(pipe[1])
	unix.Write(pipe[1], []byte{1})
	if _, err := unix.Read(pipe[0], view.Bytes()[:1]); !errors.Is(err, unix.EFAULT) {
		t.Errorf("writing into the view: got %v, want EFAULT", err)
	}
}
