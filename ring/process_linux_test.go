package ring

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"
)

// The second process is this test binary again, with a role in childEnv.
const (
	childEnv      = "POSTTRADE_RING_CHILD"
	childMessages = "POSTTRADE_RING_MESSAGES"
	childFile     = "POSTTRADE_RING_FILE"
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
	case "file-producer":
		return childFileProducer(n)
	case "free-reader":
		return childFreeReader(n)
	}
	return fmt.Errorf("unknown role %q", role)
}

// start runs this binary in a role; files become descriptors 3, 4 and so on.
func start(t *testing.T, role string, n int, env string, regions ...*Region) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childEnv+"="+role, childMessages+"="+strconv.Itoa(n), env)
	cmd.Stderr = os.Stderr
	for _, r := range regions {
		f := os.NewFile(uintptr(dup(t, r.Fd())), "region")
		defer f.Close()
		cmd.ExtraFiles = append(cmd.ExtraFiles, f)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
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
		region, err := Memfd(name, bytes)
		if err != nil {
			t.Fatal(err)
		}
		defer region.Close()
		r, err := NewSPSC[msg](region, procCapacity)
		if err != nil {
			t.Fatal(err)
		}
		regions, rings = append(regions, region), append(rings, r)
	}
	cmd := start(t, "echo", n, "", regions...)
	there, back := rings[0], rings[1]
	idler := NewIdler(Park, back.Waiter())
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
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
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

// Two processes produce into one many-producer ring in a named file.
func TestTwoProcessesShareAFile(t *testing.T) {
	n := rounds(100_000)
	path := filepath.Join(t.TempDir(), "ring")
	region, err := File(path, MPSCBytes[msg](procCapacity))
	if err != nil {
		t.Fatal(err)
	}
	defer region.Close()
	r, err := NewMPSC[msg](region, procCapacity)
	if err != nil {
		t.Fatal(err)
	}
	first := start(t, "file-producer", n, childFile+"="+path)
	second := start(t, "file-producer", n, childFile+"="+path)
	pids := []uint64{uint64(first.Process.Pid), uint64(second.Process.Pid)}
	next := map[uint64]uint64{pids[0]: 0, pids[1]: 0}
	idler := NewIdler(Adaptive, r.Waiter())
	for left := 2 * n; left > 0; {
		lo, hi := r.Ready(32)
		if lo == hi {
			idler.Idle(r)
			continue
		}
		idler.Reset()
		for pos := lo; pos < hi; pos++ {
			pid := r.At(pos).w[0] >> 32
			if want, known := next[pid]; !known || !r.At(pos).ok(pid<<32|want) {
				t.Fatalf("slot %d holds %v", pos, *r.At(pos))
			}
			next[pid]++
		}
		left -= int(hi - lo)
		r.Release(hi)
	}
	if err := errors.Join(first.Wait(), second.Wait()); err != nil {
		t.Fatal(err)
	}
	if next[pids[0]] != uint64(n) || next[pids[1]] != uint64(n) {
		t.Errorf("got %v, want %d each", next, n)
	}
}

func childFileProducer(n int) error {
	region, err := File(os.Getenv(childFile), MPSCBytes[msg](procCapacity))
	if err != nil {
		return err
	}
	r, err := OpenMPSC[msg](region)
	if err != nil {
		return err
	}
	pid := uint64(os.Getpid())
	for i := 0; i < n; {
		size := min(1+i%5, n-i)
		lo, ok := r.ClaimN(size)
		if !ok {
			YieldThread()
			continue
		}
		for k := range size {
			r.At(lo + int64(k)).fill(pid<<32 | uint64(i+k))
		}
		r.Publish(lo, size)
		i += size
	}
	return nil
}

// A reader in another process, on a mapping that it cannot write.
func TestFreeReaderInAnotherProcess(t *testing.T) {
	n := int64(rounds(100_000))
	region, err := Memfd("fanout", FanoutBytes[msg](procCapacity))
	if err != nil {
		t.Fatal(err)
	}
	defer region.Close()
	r, err := NewFanout[msg](region, procCapacity)
	if err != nil {
		t.Fatal(err)
	}
	cmd := start(t, "free-reader", int(n), "", region)
	for pos := int64(0); pos < n; {
		hi := min(pos+8, n, r.Limit())
		for ; pos < hi; pos++ {
			r.At(pos).fill(uint64(pos))
		}
		r.PublishTo(hi)
		_, hi = r.Ready(procCapacity)
		r.Release(hi)
		if pos%1024 == 0 {
			YieldThread()
		}
	}
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
}

func childFreeReader(n int) error {
	region, err := AttachReadOnly(firstExtraFd, FanoutBytes[msg](procCapacity))
	if err != nil {
		return err
	}
	if _, err := NewFanout[msg](region, procCapacity); !errors.Is(err, ErrReadOnly) {
		return fmt.Errorf("formatting a read-only region: %v", err)
	}
	r, err := OpenFanout[msg](region)
	if err != nil {
		return err
	}
	rd, dst := r.Reader(), make([]msg, 16)
	first, got := rd.Position(), int64(0)
	for rd.Position() < int64(n) {
		pos := rd.Position()
		k, err := rd.Next(dst)
		if err != nil && !errors.Is(err, ErrLapped) {
			return err
		}
		if k == 0 {
			YieldThread()
		}
		for i := range k {
			if !dst[i].ok(uint64(pos) + uint64(i)) {
				return fmt.Errorf("position %d copied as %v", pos+int64(i), dst[i])
			}
		}
		got += int64(k)
	}
	if first+got+rd.Missed() != int64(n) {
		return fmt.Errorf("from %d: %d read, %d missed, %d in all", first, got, rd.Missed(), n)
	}
	return nil
}

// The kernel keeps a read-only mapping from being written; this does not depend on the process.
func TestReadOnlyMappingHasNoWriteAccess(t *testing.T) {
	region, err := Memfd("read-only", pageBytes)
	if err != nil {
		t.Fatal(err)
	}
	defer region.Close()
	view, err := AttachReadOnly(dup(t, region.Fd()), pageBytes)
	if err != nil {
		t.Fatal(err)
	}
	defer view.Close()
	// Filling the view from a pipe is a write by the kernel: EFAULT instead of a signal.
	var pipe [2]int
	if err := unix.Pipe2(pipe[:], unix.O_CLOEXEC); err != nil {
		t.Fatal(err)
	}
	defer unix.Close(pipe[0])
	defer unix.Close(pipe[1])
	unix.Write(pipe[1], []byte{1})
	if _, err := unix.Read(pipe[0], view.Bytes()[:1]); !errors.Is(err, unix.EFAULT) {
		t.Errorf("writing into the view: got %v, want EFAULT", err)
	}
}
