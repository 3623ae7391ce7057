package twin

import "golang.org/x/sys/cpu"

// fast: the processor has the instructions that blocks2 uses. One with AVX has the others that are
// older than SHA.
var fast = cpu.X86.HasAVX && shaBit() == 1

// shaBit is the processor's bit for the instructions of SHA-256.
func shaBit() uint32

// blocks2 adds blocks of the messages p and q to a state.
//
//go:noescape
func blocks2(s *lanes, p, q *byte, blocks int)
