package journal

import "testing"

// TestHolderInTheListOfLocks: a process of another namespace has a lock and no number here.
func TestHolderInTheListOfLocks(t *testing.T) {
	const other = "1: POSIX  ADVISORY  WRITE 17 08:01:6 0 EOF\n" +
		"2: FLOCK  ADVISORY  WRITE 18 08:01:5 0 EOF\n"
	for _, tt := range []struct {
		locks string
		pid   int
		err   error
	}{
		{"", 0, nil},
		{other, 0, nil},
		{other + "3: POSIX  ADVISORY  WRITE 4711 08:01:5 0 EOF\n", 4711, nil},
		{other + "3: POSIX  ADVISORY  WRITE 0 08:01:5 0 EOF\n", 0, errHiddenHolder},
		{other + "3: POSIX  ADVISORY  WRITE -1 08:01:5 0 EOF\n4: cut", 0, errHiddenHolder},
	} {
		if pid, err := holderIn(tt.locks, "08:01:5"); pid != tt.pid || err != tt.err {
			t.Errorf("%q: %d, %v", tt.locks, pid, err)
		}
	}
}
