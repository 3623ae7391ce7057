package journal

import (
	"bytes"
	"context"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"posttrade/matcher"
	"posttrade/ring/must"
)

// sweep adds a command that causes n fills to b, behind what the block holds.
func sweep(b *Block, inputSeq, tradeSeq uint64, n int) {
	c := matcher.NewCommand(matcher.OrderNew)
	c.InputSeq, c.EventTimeMillis, c.Qty = inputSeq, 1_772_445_600_000, 1
	b.Command(&c)
	fill := matcher.Fill{InputSeq: inputSeq, TimeMillis: c.EventTimeMillis, Px: 100_000_000, Qty: 1}
	for i := range n {
		fill.TradeSeq, fill.OrderRef = tradeSeq+uint64(i), uint32(i)
		b.Fill(&fill)
	}
}

// TestAnOrderThatSweepsTheBookIsRead: its fills take more than 64 MiB. It is read, verified, and
// sent to another directory.
func TestAnOrderThatSweepsTheBookIsRead(t *testing.T) {
	fills, codecs := uint64(1<<20+1), []Codec{CodecS2, CodecZstd, CodecNone}
	if testing.Short() {
		fills, codecs = 1<<16+1, codecs[:1]
	}
	for _, codec := range codecs {
		fs := vfs.NewMem()
		j := openNew(t, "j", strict(t, fs).WithCodec(codec))
		var b Block
		sweep(&b, 1, 1, int(fills))
		must.OK(t, must.Get(j.Append(&b))(t).Wait())
		expectSwept(t, j, fills)
		stream, inputSeq, tradeSeq := streamOf(t, j)
		if inputSeq != 1 || tradeSeq != fills {
			t.Errorf("head %d, %d", inputSeq, tradeSeq)
		}
		must.OK(t, j.Close())
		_, err := Receive("copy", bytes.NewReader(stream), strict(t, fs))
		must.OK(t, err)
		copied := must.Get(Open("copy", strict(t, fs)))(t)
		expectSwept(t, copied, fills)
		must.OK(t, copied.Close())
	}
}

func expectSwept(t *testing.T, j *Journal, fills uint64) {
	t.Helper()
	var trade uint64
	must.OK(t, j.Replay(context.Background(), 1,
		func([]matcher.Command, ClientIDs) error { return nil }))
	must.OK(t, j.Fills(1, func(all []matcher.Fill) error {
		for i := range all {
			if trade++; all[i].TradeSeq != trade {
				t.Fatalf("fill %d, want %d", all[i].TradeSeq, trade)
			}
		}
		return nil
	}))
	if trade != fills {
		t.Errorf("%d fills, want %d", trade, fills)
	}
}

// TestMoreFillsThanABlockCountsAreRefused: nothing is written, and nothing is answered.
func TestMoreFillsThanABlockCountsAreRefused(t *testing.T) {
	j := openNew(t, "j", strict(t, vfs.NewMem()))
	var b Block
	sweep(&b, 1, 1, 1)
	// addresses without memory: only the length is looked at
	region := must.Get(syscall.Mmap(-1, 0, 1<<32, syscall.PROT_NONE,
		syscall.MAP_PRIVATE|syscall.MAP_ANON))(t)
	defer func() { must.OK(t, syscall.Munmap(region)) }()
	b.fills = region
	_, err := j.Append(&b)
	must.Be(t, err, ErrGap)
	must.OK(t, j.Close())
}

// quarters records n commands, each with a quarter of the fills that fill a block.
func (r *rig) quarters(n int) {
	for range n {
		r.toy.applied++
		first := matcher.Event{Kind: matcher.EventAccepted, Flags: matcher.EventFirst}
		*first.Cmd() = matcher.NewCommand(matcher.OrderNew)
		first.Cmd().InputSeq = r.toy.applied
		r.rec.record(&first)
		for n := range fullFills / 4 {
			r.toy.tradeSeq++
			ev := matcher.Event{Kind: matcher.EventFilled, InputSeq: r.toy.applied,
				TradeSeq: r.toy.tradeSeq, Qty: 1}
			if n == fullFills/4-1 {
				ev.Flags |= matcher.EventLast
			}
			r.rec.record(&ev)
		}
	}
}

// TestBlocksAreCutByTheirFills: the recorder's thread cuts a full block before the next command. A
// driver takes nothing into a full block, because it may not wait for a commit.
func TestBlocksAreCutByTheirFills(t *testing.T) {
	j := openNew(t, "j", strict(t, vfs.NewMem()))
	r := newRig(t, j, 64, flow{}, RecorderOptions{})
	r.quarters(6)
	if n := r.rec.block.Commands(); n != 1 || j.Applied() != 5 {
		t.Errorf("%d commands in the block behind %d, want 1 behind 5", n, j.Applied())
	}
	until(t, "stored", func() bool { head, _ := j.Head(); return head == 5 })
	expectSwept(t, j, 5*fullFills/4)
	must.OK(t, j.Close())

	j = openNew(t, "k", strict(t, vfs.NewMem()))
	r = newRig(t, j, 64, flow{}, RecorderOptions{})
	r.quarters(4)
	r.quietly(1)
	if r.rec.driven() || r.rec.Events() != 0 {
		t.Errorf("a driver took %d events", r.rec.Events())
	}
	r.resting().rec.Drive()
	until(t, "stored", func() bool { head, _ := j.Head(); return head == 5 })
	must.OK(t, r.end(t))
}
