package ring

import (
	"runtime"
	"testing"
)

func TestHotCallsDoNotAllocate(t *testing.T) {
	spsc, mpsc, fanout := newTestSPSC(t, 8), newTestMPSC(t, 8), newTestFanout(t, 8)
	reader, late := fanout.Reader(), fanout.Reader()
	dst := make([]msg, 8)
	idlers := []*Idler{NewIdler(Spin, nil), NewIdler(Yield, nil), NewIdler(Park, spsc.Waiter())}
	idlers[2].napNs = 1
	if runtime.GOOS != "linux" {
		idlers = idlers[:2] // a sleep makes a channel there
	}
	var sequence Sequence
	var lock SeqLock
	row, src := make([]uint64, 8), make([]uint64, 8)
	calls := map[string]func(){
		"spsc single": func() {
			spsc.Claim().fill(1)
			spsc.Publish()
			_, hi := spsc.Ready(1)
			spsc.Release(hi)
		},
		"spsc some": func() {
			lo, hi := spsc.ClaimSome(4)
			spsc.At(lo).fill(1)
			spsc.PublishTo(hi)
			_, hi = spsc.Ready(8)
			spsc.Release(hi)
		},
		"mpsc": func() {
			lo, _ := mpsc.ClaimN(3)
			mpsc.At(lo).fill(1)
			mpsc.Publish(lo, 3)
			_, hi := mpsc.Ready(8)
			mpsc.Release(hi)
		},
		"fanout": func() {
			pos := fanout.Published()
			fanout.Limit()
			fanout.Slots()[pos&fanout.Mask()].fill(1)
			fanout.PublishTo(pos + 1)
			_, hi := fanout.Ready(8)
			fanout.Release(hi)
		},
		"reader":        func() { reader.Next(dst) },
		"lapped reader": func() { late.pos = 0; late.Next(dst) },
		"idle": func() {
			for _, i := range idlers {
				i.Reset()
				i.Idle(spsc)
			}
		},
		"wake":     func() { spsc.Waiter().Wake(); spsc.Waiter().Notify() },
		"sequence": func() { sequence.Release(sequence.Load() + 1); sequence.Store(2) },
		"seqlock": func() {
			lock.Begin()
			CopyIn(row, src)
			lock.End()
			stamp, _ := lock.Read()
			CopyOut(src, row)
			lock.Retry(stamp)
		},
	}
	for name, call := range calls {
		t.Run(name, func(t *testing.T) {
			if n := testing.AllocsPerRun(200, call); n != 0 {
				t.Errorf("%v allocations, want 0", n)
			}
		})
	}
}
