//go:build !amd64 && !arm64 && !js

package ring

// pause does nothing where Go's assembler has no such hint.
func pause(int) {}
