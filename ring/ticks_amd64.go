package ring

// ticksIn is how many ticks ns nanoseconds have, roughly: the clock of amd64 runs at
// the processor's nominal frequency, which is between 1.5 and 5 GHz.
func ticksIn(ns int64) int64 { return 2 * ns }
