package ring

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// PinThread binds the calling thread to one core; -1 leaves it where it is. The caller has called
// runtime.LockOSThread; otherwise the binding affects other goroutines.
func PinThread(cpu int) error {
	if cpu == -1 {
		return nil
	}
	var set unix.CPUSet
	if cpu < 0 || cpu >= len(set)*64 {
		return fmt.Errorf("ring: pin cpu=%d: %w", cpu, unix.EINVAL)
	}
	set.Set(cpu)
	if err := unix.SchedSetaffinity(0, &set); err != nil {
		return fmt.Errorf("ring: pin cpu=%d: %w", cpu, err)
	}
	return nil
}

// Niceness is the nice value of the calling thread. The system call returns 20 minus that value.
func Niceness() int {
	p, err := unix.Getpriority(unix.PRIO_PROCESS, 0)
	if err != nil {
		return 0
	}
	return 20 - p
}
