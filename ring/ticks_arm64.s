#include "textflag.h"

// func ticks() int64
TEXT ·ticks(SB), NOSPLIT, $0-8
	MRS  CNTVCT_EL0, R0
	MOVD R0, ret+0(FP)
	RET

// func tickHz() int64
TEXT ·tickHz(SB), NOSPLIT, $0-8
	MRS  CNTFRQ_EL0, R0
	MOVWU R0, R0
	MOVD R0, ret+0(FP)
	RET
