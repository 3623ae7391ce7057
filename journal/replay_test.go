package journal

import (
	"context"
	"fmt"
	"math"
	"runtime"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"posttrade/matcher"
	"posttrade/ring/must"
)

// A short replay reads on its caller's goroutine, a long one on a goroutine that reads ahead. Both
// give the same.
func TestShortAndLongReplaysAreAlike(t *testing.T) {
	j := openNew(t, "j", strict(t, vfs.NewMem()))
	f := &flow{seed: 11, idsEvery: 3}
	appendAll(t, j, f, 1, 7, 64, 1, 300, 20)
	head, _ := j.Head()
	for from := uint64(1); from <= head; from += 13 {
		for _, to := range []uint64{from, min(from+5, head), min(from+70, head), head} {
			here, ahead := &replayed{}, &replayed{}
			must.OK(t, j.replayHere(context.Background(), from, to, false, here.take))
			must.OK(t, replay(context.Background(), j.db, j.Seed(), from, to, false, ahead.take))
			if here.text != ahead.text || here.n != to-from+1 {
				t.Fatalf("replay %d..%d: %d commands here, %d ahead, or they differ", from, to, here.n, ahead.n)
			}
		}
	}
	must.OK(t, j.Close())
}

// replayed is what a replay gave.
type replayed struct {
	text string
	n    uint64
}

func (h *replayed) take(d *decoded) error {
	h.n += uint64(len(d.commands))
	for i := range d.commands {
		seq := d.commands[i].InputSeq
		h.text += fmt.Sprintf("%+v %q\n", d.commands[i], d.ids.Of(seq))
	}
	h.text += fmt.Sprintf("%+v\n", d.fills)
	return nil
}

// A replay within a replay has memory of its own.
func TestReplaysMayNest(t *testing.T) {
	j := openNew(t, "j", strict(t, vfs.NewMem()))
	appendAll(t, j, &flow{seed: 5}, 40, 40, 40)
	next := uint64(1)
	must.OK(t, j.Replay(context.Background(), 1, func(outer []matcher.Command, _ ClientIDs) error {
		must.OK(t, j.ReplayTo(context.Background(), 1, 120,
			func([]matcher.Command, ClientIDs) error { return nil }))
		for i := range outer {
			if outer[i].InputSeq != next {
				return fmt.Errorf("inputSeq=%d, want %d", outer[i].InputSeq, next)
			}
			next++
		}
		return nil
	}))
	if next != 121 {
		t.Fatalf("replay ends at %d, want 120", next-1)
	}
	must.OK(t, j.Close())
}

// A reader that follows the head uses the memory of its last replay again.
func TestShortReplaysKeepTheirMemory(t *testing.T) {
	j := openNew(t, "j", strict(t, vfs.NewMem()))
	appendAll(t, j, &flow{seed: 5}, 8_000)
	least := uint64(math.MaxUint64)
	var before, after runtime.MemStats
	for range 20 { // a collection may take the memory, and the race detector does at random
		runtime.ReadMemStats(&before)
		must.OK(t, j.Replay(context.Background(), 1, func([]matcher.Command, ClientIDs) error {
			return nil
		}))
		runtime.ReadMemStats(&after)
		least = min(least, after.TotalAlloc-before.TotalAlloc)
	}
	if commands := uint64(8_000 * recordBytes); least > commands/8 {
		t.Errorf("a replay of %d bytes of commands allocated %d", commands, least)
	}
	must.OK(t, j.Close())
}
