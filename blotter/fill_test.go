package blotter

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"unsafe"

	"posttrade/matcher"
)

// The blotter writes a fill directly from its event: it must be the fill that the event states,
// also in a slot that held another fill.
func TestBlotterWritesTheFillThatAnEventStates(t *testing.T) {
	const seed = 93
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 1))
	b := newTestBlotter(t, 3)
	for tradeSeq := uint64(1); tradeSeq <= 50; tradeSeq++ {
		var ev matcher.Event
		for _, line := range []*matcher.Command{(*matcher.Command)(unsafe.Pointer(&ev)), ev.Cmd()} {
			for i := range line.Bytes() {
				line.Bytes()[i] = byte(rng.Uint32())
			}
		}
		ev.Kind, ev.TradeSeq = matcher.EventFilled, tradeSeq
		b.Observe(&ev, nil)
		want := ev.Fill()
		if got, ok := b.ByTradeSeq(tradeSeq); !ok || got != want || *got.Bytes() != *want.Bytes() {
			t.Fatalf("fill %d: %+v %v, want %+v", tradeSeq, got, ok, want)
		}
		again := ev
		again.Px++
		b.Observe(&again, nil) // this fill is there already
		if got, _ := b.ByTradeSeq(tradeSeq); got != want {
			t.Fatalf("fill %d is written twice: %+v", tradeSeq, got)
		}
	}
}

func TestRowsOfAccountsLieAnOddNumberOfLinesApart(t *testing.T) {
	const line = 64
	for _, securities := range []int{1, 2, 3, 4, 5, 6, 63, 64, 4095, 4096, 1<<24 - 1} {
		t.Run(fmt.Sprint(securities), func(t *testing.T) {
			stride := strideOf(securities)
			bytes := stride * int(unsafe.Sizeof(positionSlot{}))
			if stride < securities || stride > securities+4 || bytes%line != 0 || bytes/line%2 != 1 {
				t.Errorf("stride %d, %d bytes", stride, bytes)
			}
		})
	}
}

// No two pairs of account and security share a slot, up to the last account and security. There is
// no position in a security beyond the last.
func TestPositionsOfAllAccountsAndSecuritiesAreApart(t *testing.T) {
	g := smallGenesis()
	g.Limits.MaxAccounts, g.Limits.MaxSecurities = 5, 3
	v := newTestViews(t, g)
	for id := uint32(20); id < 22; id++ {
		v.accounts.control(id, 1, false, 1)
	}
	for account := range 5 {
		for security := uint32(1); security <= 3; security++ {
			v.positions.at(account, security).set(int64(account)*100+int64(security), 1)
		}
	}
	for account, id := range []uint32{7, 3, 900_001, 20, 21} {
		for security := uint32(1); security <= 3; security++ {
			if p, ok := v.Position(id, security); !ok || p.Qty != int64(account)*100+int64(security) {
				t.Errorf("account %d security %d: %+v %v", id, security, p, ok)
			}
		}
		for _, security := range []uint32{0, 4, 5, 6, 7, 1 << 31} {
			if p, ok := v.Position(id, security); ok {
				t.Errorf("account %d has %+v in security %d", id, p, security)
			}
		}
	}
}
