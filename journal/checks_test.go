//go:build checks || race

package journal

import (
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"posttrade/ring/must"
)

// In a build with checks a number of the journal that gets ahead of what it depends on panics where
// it does so.
func TestNumbersOutOfTheirOrderPanic(t *testing.T) {
	for _, mode := range []string{DurabilityFsync, DurabilityOS} {
		o := strict(t, vfs.NewCrashableMem())
		o.Durability = mode
		j, f := openNew(t, "j", o), flow{seed: 3}
		appendAll(t, j, &f, 3, 4)
		ahead := j.safe
		ahead.inputSeq++
		must.Panic(t, "journal: end=", func() { j.advance(ahead) })
		j.setHead(point{inputSeq: f.inputSeq, tradeSeq: f.tradeSeq, chain: j.tip.chain})
		j.answered.Store(int64(f.inputSeq + 1))
		must.Panic(t, "journal: end=", func() { j.advance(j.safe) })
		must.Panic(t, "journal: answers up to", func() { j.answer(f.inputSeq) })
		j.answered.Store(int64(f.inputSeq))
		j.stable.Store(int64(f.inputSeq + 1))
		must.Panic(t, "journal: end=", func() { j.advance(j.safe) })
		j.stable.Store(int64(f.inputSeq))
		must.OK(t, j.Close())
	}
}

// A commit that ends elsewhere than its block panics before the store has it.
func TestACommitThatSkipsPanics(t *testing.T) {
	f := flow{seed: 3}
	var b Block
	f.block(&b, 5)
	end := point{inputSeq: f.inputSeq, tradeSeq: f.tradeSeq}
	b.mustFollow(point{}, end)
	for _, wrong := range []point{
		{inputSeq: end.inputSeq - 1, tradeSeq: end.tradeSeq},
		{inputSeq: end.inputSeq, tradeSeq: end.tradeSeq + 1},
	} {
		must.Panic(t, "journal: a commit from", func() { b.mustFollow(point{}, wrong) })
	}
	must.Panic(t, "journal: a commit from", func() { b.mustFollow(point{inputSeq: 1}, end) })
}
