#include "textflag.h"

// func Prefetch(a, b, c, d unsafe.Pointer)
TEXT ·Prefetch(SB), NOSPLIT, $0-32
	LDP a+0(FP), (R0, R1)
	LDP c+16(FP), (R2, R3)
	PRFM (R0), PLDL1KEEP
	PRFM (R1), PLDL1KEEP
	PRFM (R2), PLDL1KEEP
	PRFM (R3), PLDL1KEEP
	RET
