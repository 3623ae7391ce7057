//go:build !amd64 && !arm64

package ring

// ticks and ticksIn are 0: without a clock that is cheap to read, looks keep no distance.
func ticks() int64        { return 0 }
func ticksIn(int64) int64 { return 0 }
