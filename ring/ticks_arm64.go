package ring

// ticksIn is how many ticks ns nanoseconds have.
func ticksIn(ns int64) int64 { return tickHz() * ns / 1_000_000_000 }

// tickHz is the frequency of the clock that ticks reads, at most 32 bits.
func tickHz() int64
