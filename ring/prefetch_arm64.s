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

// func prefetchWrite(p unsafe.Pointer, bytes int64)
TEXT ·prefetchWrite(SB), NOSPLIT, $0-16
	LDP p+0(FP), (R0, R1)
next:
	SUBS $64, R1, R1
	BLT  done
	PRFM (R0), PSTL1KEEP
	ADD  $64, R0, R0
	B    next
done:
	RET
