//go:build !race

#include "textflag.h"

// func storeRelease(p *int64, v int64)
TEXT ·storeRelease(SB), NOSPLIT, $0-16
	MOVQ p+0(FP), AX
	MOVQ v+8(FP), CX
	MOVQ CX, (AX)
	RET

// func publish(p *int64, v int64, parked *uint32)
// wakeParked has the same arguments, so the slow path is a jump.
TEXT ·publish(SB), NOSPLIT, $0-24
	MOVQ p+0(FP), AX
	MOVQ v+8(FP), CX
	MOVQ parked+16(FP), DX
	MOVQ CX, (AX)
	CMPL (DX), $0
	JNE  parked
	RET
parked:
	JMP ·wakeParked(SB)

// func markLaps(p *uint32, n int, lap uint32)
TEXT ·markLaps(SB), NOSPLIT, $0-20
	MOVQ p+0(FP), AX
	MOVQ n+8(FP), CX
	MOVL lap+16(FP), DX
	TESTQ CX, CX
	JLE  done
next:
	MOVL DX, (AX)
	ADDQ $4, AX
	DECQ CX
	JNZ  next
done:
	RET
