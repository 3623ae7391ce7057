#include "textflag.h"

// func storeFence()
TEXT ·storeFence(SB), NOSPLIT, $0-0
	DMB $0xA
	RET

// func loadFence()
TEXT ·loadFence(SB), NOSPLIT, $0-0
	DMB $0x9
	RET

// func pause(n int)
TEXT ·pause(SB), NOSPLIT, $0-8
	MOVD n+0(FP), R0
next:
	CBZ  R0, done
	YIELD
	SUB  $1, R0, R0
	B    next
done:
	RET
