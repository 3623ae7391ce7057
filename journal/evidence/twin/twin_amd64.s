#include "textflag.h"

// Both lanes do the same, four rounds at a time by turns. A lane has two registers for its state and
// four for the sixteen words of the schedule that come next. X0 holds what the instructions add in
// the rounds, X13 is free, X14 is the order of bytes.

// QUAD does four rounds: k is where their constants stand, W their words.
#define QUAD(k, W, ABEF, CDGH) \
	VPADDD      k(AX), W, X0   \
	SHA256RNDS2 X0, ABEF, CDGH \
	PSHUFD      $0x0E, X0, X0  \
	SHA256RNDS2 X0, CDGH, ABEF

// LOAD reads four words of a block.
#define LOAD(at, P, W)    \
	VMOVDQU at(P), W      \
	PSHUFB  X14, W

// NEXT ends the schedule of the words Z, which come behind W. V stands before W.
#define NEXT(V, W, Z)         \
	VPALIGNR   $4, V, W, X13  \
	PADDD      X13, Z         \
	SHA256MSG2 W, Z

// func blocks2(s *lanes, p, q *byte, blocks int)
TEXT ·blocks2(SB), NOSPLIT, $64-32
	MOVQ    s+0(FP), DI
	MOVQ    p+8(FP), SI
	MOVQ    q+16(FP), DX
	MOVQ    blocks+24(FP), CX
	LEAQ    rounds<>(SB), AX
	VMOVDQU flip<>(SB), X14
	VMOVDQU (DI), X1
	VMOVDQU 16(DI), X2
	VMOVDQU 32(DI), X7
	VMOVDQU 48(DI), X8

next:
	TESTQ   CX, CX
	JZ      done
	VMOVDQU X1, (SP)
	VMOVDQU X2, 16(SP)
	VMOVDQU X7, 32(SP)
	VMOVDQU X8, 48(SP)
	LOAD(0, SI, X3)
	QUAD(0, X3, X1, X2)
	LOAD(0, DX, X9)
	QUAD(0, X9, X7, X8)
	LOAD(16, SI, X4)
	QUAD(16, X4, X1, X2)
	SHA256MSG1 X4, X3
	LOAD(16, DX, X10)
	QUAD(16, X10, X7, X8)
	SHA256MSG1 X10, X9
	LOAD(32, SI, X5)
	QUAD(32, X5, X1, X2)
	SHA256MSG1 X5, X4
	LOAD(32, DX, X11)
	QUAD(32, X11, X7, X8)
	SHA256MSG1 X11, X10
	LOAD(48, SI, X6)
	QUAD(48, X6, X1, X2)
	NEXT(X5, X6, X3)
	SHA256MSG1 X6, X5
	LOAD(48, DX, X12)
	QUAD(48, X12, X7, X8)
	NEXT(X11, X12, X9)
	SHA256MSG1 X12, X11
	QUAD(64, X3, X1, X2)
	NEXT(X6, X3, X4)
	SHA256MSG1 X3, X6
	QUAD(64, X9, X7, X8)
	NEXT(X12, X9, X10)
	SHA256MSG1 X9, X12
	QUAD(80, X4, X1, X2)
	NEXT(X3, X4, X5)
	SHA256MSG1 X4, X3
	QUAD(80, X10, X7, X8)
	NEXT(X9, X10, X11)
	SHA256MSG1 X10, X9
	QUAD(96, X5, X1, X2)
	NEXT(X4, X5, X6)
	SHA256MSG1 X5, X4
	QUAD(96, X11, X7, X8)
	NEXT(X10, X11, X12)
	SHA256MSG1 X11, X10
	QUAD(112, X6, X1, X2)
	NEXT(X5, X6, X3)
	SHA256MSG1 X6, X5
	QUAD(112, X12, X7, X8)
	NEXT(X11, X12, X9)
	SHA256MSG1 X12, X11
	QUAD(128, X3, X1, X2)
	NEXT(X6, X3, X4)
	SHA256MSG1 X3, X6
	QUAD(128, X9, X7, X8)
	NEXT(X12, X9, X10)
	SHA256MSG1 X9, X12
	QUAD(144, X4, X1, X2)
	NEXT(X3, X4, X5)
	SHA256MSG1 X4, X3
	QUAD(144, X10, X7, X8)
	NEXT(X9, X10, X11)
	SHA256MSG1 X10, X9
	QUAD(160, X5, X1, X2)
	NEXT(X4, X5, X6)
	SHA256MSG1 X5, X4
	QUAD(160, X11, X7, X8)
	NEXT(X10, X11, X12)
	SHA256MSG1 X11, X10
	QUAD(176, X6, X1, X2)
	NEXT(X5, X6, X3)
	SHA256MSG1 X6, X5
	QUAD(176, X12, X7, X8)
	NEXT(X11, X12, X9)
	SHA256MSG1 X12, X11
	QUAD(192, X3, X1, X2)
	NEXT(X6, X3, X4)
	SHA256MSG1 X3, X6
	QUAD(192, X9, X7, X8)
	NEXT(X12, X9, X10)
	SHA256MSG1 X9, X12
	QUAD(208, X4, X1, X2)
	NEXT(X3, X4, X5)
	QUAD(208, X10, X7, X8)
	NEXT(X9, X10, X11)
	QUAD(224, X5, X1, X2)
	NEXT(X4, X5, X6)
	QUAD(224, X11, X7, X8)
	NEXT(X10, X11, X12)
	QUAD(240, X6, X1, X2)
	QUAD(240, X12, X7, X8)
	VPADDD  (SP), X1, X1
	VPADDD  16(SP), X2, X2
	VPADDD  32(SP), X7, X7
	VPADDD  48(SP), X8, X8
	ADDQ    $64, SI
	ADDQ    $64, DX
	DECQ    CX
	JMP     next

done:
	VMOVDQU X1, (DI)
	VMOVDQU X2, 16(DI)
	VMOVDQU X7, 32(DI)
	VMOVDQU X8, 48(DI)
	RET

// func shaBit() uint32
TEXT ·shaBit(SB), NOSPLIT, $0-4
	MOVL $7, AX
	XORL CX, CX
	CPUID
	SHRL $29, BX
	ANDL $1, BX
	MOVL BX, ret+0(FP)
	RET

// The bytes of each word the other way round.
DATA flip<>+0(SB)/8, $0x0405060700010203
DATA flip<>+8(SB)/8, $0x0c0d0e0f08090a0b
GLOBL flip<>(SB), RODATA|NOPTR, $16

// The constants of the 64 rounds, FIPS 180-4.
DATA rounds<>+0(SB)/8, $0x71374491428a2f98
DATA rounds<>+8(SB)/8, $0xe9b5dba5b5c0fbcf
DATA rounds<>+16(SB)/8, $0x59f111f13956c25b
DATA rounds<>+24(SB)/8, $0xab1c5ed5923f82a4
DATA rounds<>+32(SB)/8, $0x12835b01d807aa98
DATA rounds<>+40(SB)/8, $0x550c7dc3243185be
DATA rounds<>+48(SB)/8, $0x80deb1fe72be5d74
DATA rounds<>+56(SB)/8, $0xc19bf1749bdc06a7
DATA rounds<>+64(SB)/8, $0xefbe4786e49b69c1
DATA rounds<>+72(SB)/8, $0x240ca1cc0fc19dc6
DATA rounds<>+80(SB)/8, $0x4a7484aa2de92c6f
DATA rounds<>+88(SB)/8, $0x76f988da5cb0a9dc
DATA rounds<>+96(SB)/8, $0xa831c66d983e5152
DATA rounds<>+104(SB)/8, $0xbf597fc7b00327c8
DATA rounds<>+112(SB)/8, $0xd5a79147c6e00bf3
DATA rounds<>+120(SB)/8, $0x1429296706ca6351
DATA rounds<>+128(SB)/8, $0x2e1b213827b70a85
DATA rounds<>+136(SB)/8, $0x53380d134d2c6dfc
DATA rounds<>+144(SB)/8, $0x766a0abb650a7354
DATA rounds<>+152(SB)/8, $0x92722c8581c2c92e
DATA rounds<>+160(SB)/8, $0xa81a664ba2bfe8a1
DATA rounds<>+168(SB)/8, $0xc76c51a3c24b8b70
DATA rounds<>+176(SB)/8, $0xd6990624d192e819
DATA rounds<>+184(SB)/8, $0x106aa070f40e3585
DATA rounds<>+192(SB)/8, $0x1e376c0819a4c116
DATA rounds<>+200(SB)/8, $0x34b0bcb52748774c
DATA rounds<>+208(SB)/8, $0x4ed8aa4a391c0cb3
DATA rounds<>+216(SB)/8, $0x682e6ff35b9cca4f
DATA rounds<>+224(SB)/8, $0x78a5636f748f82ee
DATA rounds<>+232(SB)/8, $0x8cc7020884c87814
DATA rounds<>+240(SB)/8, $0xa4506ceb90befffa
DATA rounds<>+248(SB)/8, $0xc67178f2bef9a3f7
GLOBL rounds<>(SB), RODATA|NOPTR, $256
