package journal

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"unsafe"

	"github.com/cockroachdb/pebble/v2/vfs"

	"posttrade/matcher"
	"posttrade/ring/must"
)

// farsighted checks that it is shown events at their distances, in a flow of commands with one
// event each.
type farsighted struct {
	ahead, close, seen int
	bad                error
}

func (f *farsighted) AheadOf(ev *matcher.Event) {
	f.check("ahead", ev, f.ahead, fieldsAhead)
	f.ahead++
}

func (f *farsighted) CloseTo(ev *matcher.Event) {
	f.check("close", ev, f.close, rowsAhead)
	f.close++
}

func (f *farsighted) Observe(ev *matcher.Event, _ []byte) {
	f.check("observed", ev, f.seen, 0)
	f.seen++
}

func (f *farsighted) check(what string, ev *matcher.Event, number, distance int) {
	if f.bad == nil && (number != f.seen || ev.InputSeq != uint64(number+distance+1)) {
		f.bad = fmt.Errorf("inputSeq=%d is %s as number %d, when %d were observed", ev.InputSeq, what,
			number, f.seen)
	}
}

// onlyOrders publishes n commands of one event each, all at once.
func onlyOrders(r *rig, n int) {
	r.outlet.Limit = r.out.Limit()
	for range n {
		r.toy.applied++
		ev := r.toy.slot(&r.outlet)
		*ev = matcher.Event{
			Kind: matcher.EventAccepted, Flags: matcher.EventFirst | matcher.EventLast,
			InputSeq: r.toy.applied, OrderRef: uint32(r.toy.applied),
		}
		*ev.Cmd() = matcher.NewCommand(matcher.OrderNew)
		ev.Cmd().InputSeq = r.toy.applied
	}
	r.out.PublishTo(r.outlet.Next)
}

// In a flow of n events every event is shown ahead of its turn, at fixed distances, up to the last
// that is published and never beyond. Rounds of 50 do not interrupt that.
func TestRecorderLooksAheadOfAFlow(t *testing.T) {
	tests := []struct{ events, ahead, close int }{
		{1, 0, 0},
		{rowsAhead, 0, 0},
		{rowsAhead + 1, 0, 1},
		{fieldsAhead, 0, fieldsAhead - rowsAhead},
		{fieldsAhead + 1, 1, fieldsAhead + 1 - rowsAhead},
		{500, 500 - fieldsAhead, 500 - rowsAhead},
	}
	for _, tt := range tests {
		t.Run(fmt.Sprint(tt.events), func(t *testing.T) {
			j := openNew(t, "j", strict(t, vfs.NewMem()))
			f := &farsighted{}
			r := newRig(t, j, 2048, flow{seed: 5}, RecorderOptions{}, &tally{}, f)
			onlyOrders(r, tt.events)
			for r.rec.take(50) {
			}
			if f.bad != nil || f.seen != tt.events || f.close != tt.close || f.ahead != tt.ahead {
				t.Errorf("%v; %d observed, %d close, %d ahead, want %+v", f.bad, f.seen, f.close, f.ahead, tt)
			}
		})
	}
}

// A block writes a fill straight from its event, into memory that held others.
func TestBlockWritesTheFillThatAnEventStates(t *testing.T) {
	const seed = 17
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 1))
	var want, got Block
	for range 3 {
		want.Reset()
		got.Reset()
		for i := range got.fills[:cap(got.fills)] {
			got.fills[:cap(got.fills)][i] = 0xff
		}
		for range 100 {
			var ev matcher.Event
			for _, line := range []*matcher.Command{(*matcher.Command)(unsafe.Pointer(&ev)), ev.Cmd()} {
				for i := range line.Bytes() {
					line.Bytes()[i] = byte(rng.Uint32())
				}
			}
			fill := ev.Fill()
			want.Fill(&fill)
			got.executed(&ev)
		}
		if !bytes.Equal(got.fills, want.fills) || got.fillCount != want.fillCount {
			t.Fatal("the fills differ from what their events state")
		}
	}
}

// Blocks are smaller and larger than the size from which they are hashed on another goroutine, with
// fills and client ids: replay verifies every chain.
func TestChainsHoldWhereverTheyAreHashed(t *testing.T) {
	j := openNew(t, "j", strict(t, vfs.NewMem()))
	f := &flow{seed: 23, idsEvery: 3}
	var block Block
	for _, n := range []int{1, hashApart - 1, hashApart, hashApart + 1, 3 * hashApart, 2, hashApart} {
		f.block(&block, n)
		if block.idCount == 0 && n > 2 || block.fillCount == 0 && n > 2 {
			t.Fatalf("a block of %d commands has %d ids and %d fills", n, block.idCount, block.fillCount)
		}
		c := must.Get(j.Append(&block))(t)
		must.OK(t, c.Wait())
	}
	next := uint64(1)
	must.OK(t, j.Replay(context.Background(), 1, func(cmds []matcher.Command, _ ClientIDs) error {
		for i := range cmds {
			if want := f.command(next); cmds[i] != want {
				return fmt.Errorf("command %d is %+v, want %+v", next, cmds[i], want)
			}
			next++
		}
		return nil
	}))
	if next != f.inputSeq+1 {
		t.Errorf("replayed up to %d of %d", next-1, f.inputSeq)
	}
}
