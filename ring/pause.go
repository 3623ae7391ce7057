//go:build amd64 || arm64

package ring

// pause tells the core, n times, that this thread spins: it saves power and
// leaves the execution units to the sibling thread.
//
//go:noescape
func pause(n int)
