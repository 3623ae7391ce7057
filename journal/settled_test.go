package journal

import (
	"context"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"posttrade/ring/must"
)

// seen is what was left by a disk that failed: the store has lost its last commits, which the
// anchor has seen up to p.
func (l *left) seen(t *testing.T, p point) *vfs.MemFS {
	t.Helper()
	fs := l.with(t, l.tail)
	r := must.Get(readAnchor(fs, "j", "boot-1"))(t)
	a := must.Get(openAnchor(fs, "j", r.seed, "boot-1", slotCalled, r.point, r.run, r.last))(t)
	must.OK(t, a.Hot(p))
	must.OK(t, a.Close())
	return fs
}

// TestTailHasWhatTheStoreLost: a journal whose store ends before what the anchor has seen is whole
// when the tail has the rest, for a start and for readers.
func TestTailHasWhatTheStoreLost(t *testing.T) {
	const head = leftStored + leftAhead
	for mode := range tailModes {
		t.Run(mode, func(t *testing.T) {
			l := leave(t, mode)
			fs := l.seen(t, point{inputSeq: head, tradeSeq: l.flow.tradeSeq})
			o := VerifyOptions{FS: fs, boot: "boot-1"}
			r := must.Get(Verify(context.Background(), "j", o))(t)
			if r.InputSeq != head || r.Tail != leftAhead || r.Anchored != leftStored {
				t.Errorf("verified %+v", r)
			}
			j := must.Get(Read("j", o))(t)
			must.OK(t, compareHistory(j, l.flow.begin(), head))
			must.OK(t, j.Close())
			_, err := recovered(fs, "boot-1", *l.flow.begin(), head, head)
			must.OK(t, err)
			_, err = recovered(kill(fs), "boot-2", *l.flow.begin(), head+3, head+3)
			must.OK(t, err)
		})
	}
}

// TestTailHasAllThatAStoreLost: the same when the store has lost its only blocks.
func TestTailHasAllThatAStoreLost(t *testing.T) {
	g, mem := newGate(), vfs.NewCrashableMem()
	o, fake := tailModes[withLog](t, g.fs(mem))
	j := openNew(t, "j", o)
	f, b := &flow{seed: 8}, &Block{}
	g.shut()
	publishAll(t, j, f, b, 20)
	j.told(t, 20)
	l := &left{mode: withLog, fs: kill(mem), tail: fake.text(), flow: f}
	g.release()
	must.OK(t, j.Close())
	fs := l.seen(t, point{inputSeq: 20, tradeSeq: f.tradeSeq})
	_, err := recovered(fs, "boot-1", flow{seed: 8}, 20, 20)
	must.OK(t, err)
}

// TestTailThatLacksWhatTheStoreLost: a start and readers refuse a journal whose tail does not reach
// what the anchor has seen, or reaches something else; then an operator decides.
func TestTailThatLacksWhatTheStoreLost(t *testing.T) {
	const head = leftStored + leftAhead
	l := leave(t, withLog)
	trades := l.flow.tradeSeq
	for name, p := range map[string]point{
		"one command more":  {inputSeq: head + 1, tradeSeq: trades},
		"one fill more":     {inputSeq: head, tradeSeq: trades + 1},
		"inside of a frame": {inputSeq: head - 1, tradeSeq: trades},
	} {
		t.Run(name, func(t *testing.T) {
			fs := l.seen(t, p)
			o := VerifyOptions{FS: fs, boot: "boot-1"}
			_, err := Verify(context.Background(), "j", o)
			must.Be(t, err, ErrShortened)
			_, err = Read("j", o)
			must.Be(t, err, ErrShortened)
			_, err = recovered(fs, "boot-1", *l.flow.begin(), head, head)
			must.Be(t, err, ErrShortened)
			must.OK(t, accepted(t, fs)) // it keeps what the tail has
			_, err = recovered(fs, "boot-1", *l.flow.begin(), head, head)
			must.OK(t, err)
		})
	}
}

// TestTailWithAGap: what lies behind a hole in the tail does not stand in for what the store lost.
func TestTailWithAGap(t *testing.T) {
	l := leave(t, withLog)
	image := must.Get(parseTail(l.tail, "tail"))(t)
	to := point{inputSeq: leftStored + leftAhead, tradeSeq: l.flow.tradeSeq}
	if !image.continues(leftStored, &to) {
		t.Fatal("the tail does not have what the store lacks")
	}
	for i := range image.frames {
		f := &image.frames[i]
		if f.last() <= leftStored {
			continue
		}
		holed := *image
		holed.frames = append(append([]piece(nil), image.frames[:i]...), image.frames[i+1:]...)
		if holed.continues(leftStored, &to) {
			t.Errorf("it continues without inputSeq=%d..%d", f.first, f.last())
		}
	}
}
