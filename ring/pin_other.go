//go:build !linux

package ring

import "fmt"

// PinThread binds threads only on Linux; -1 asks for nothing.
func PinThread(cpu int) error {
	if cpu == -1 {
		return nil
	}
	return fmt.Errorf("ring: pin cpu=%d: %w", cpu, ErrUnsupported)
}

// Niceness is 0 where it is not known.
func Niceness() int { return 0 }
