#include "textflag.h"

// func Prefetch(a, b, c, d unsafe.Pointer)
TEXT ·Prefetch(SB), NOSPLIT, $0-32
	MOVQ a+0(FP), AX
	MOVQ b+8(FP), BX
	MOVQ c+16(FP), CX
	MOVQ d+24(FP), DX
	PREFETCHT0 (AX)
	PREFETCHT0 (BX)
	PREFETCHT0 (CX)
	PREFETCHT0 (DX)
	RET

// func prefetchWrite(p unsafe.Pointer, bytes int64)
TEXT ·prefetchWrite(SB), NOSPLIT, $0-16
	MOVQ p+0(FP), AX
	MOVQ bytes+8(FP), CX
next:
	SUBQ $64, CX
	JLT  done
	BYTE $0x0F; BYTE $0x0D; BYTE $0x08 // PREFETCHW (AX), which Go's assembler does not know
	ADDQ $64, AX
	JMP  next
done:
	RET
