package tca

import (
	"path/filepath"
	"sort"
	"testing"

	"posttrade/matcher/int128"
	"posttrade/ring/must"
)

func newSamples(t *testing.T) *samples {
	t.Helper()
	file := must.Get(openBlocks(filepath.Join(t.TempDir(), samplesName)))(t)
	t.Cleanup(func() { file.f.Close() })
	return &samples{file: file}
}

// TestAHistoryLargerThanTheCacheIsFoundAgain compares every lookup with a plain slice.
func TestAHistoryLargerThanTheCacheIsFoundAgain(t *testing.T) {
	rnd := seeded(t)
	x := newSamples(t)
	const entries = (cachedBlocks + 300) * leafSamples // and more than one full level above the leaves
	plain := make([]sample, 0, entries)
	millis := -int64(entries) // the times pass zero on their way
	for i := range entries {
		px := 1 + rnd.Int64N(1000)
		s := sample{millis: millis, px: px}
		if i > 0 {
			last := plain[i-1]
			s.sum = last.sum.Add(int128.Scaled(last.px, uint64(s.millis-last.millis)))
		}
		plain = append(plain, s)
		must.OK(t, x.add(7, millis, px+5))
		if err := x.add(7, millis-rnd.Int64N(3), px); err != nil { // replaces the one before
			t.Fatal(err)
		}
		millis += 1 + rnd.Int64N(4)
	}
	h := &x.of[7]
	if len(h.nodes) < 2 || x.file.blocks <= cachedBlocks {
		t.Fatalf("%d levels and %d blocks, want more", len(h.nodes)+1, x.file.blocks)
	}
	if got, first := len(h.recent), h.firstMillis; got > leafSamples || first != plain[0].millis {
		t.Errorf("%d recent samples from %d", got, first)
	}
	check := func(at int64) {
		t.Helper()
		i := sort.Search(len(plain), func(i int) bool { return plain[i].millis > at }) - 1
		s, ordinal, found, err := x.at(7, at)
		if err != nil || found != (i >= 0) {
			t.Fatalf("at %d: found %v, %v; want index %d", at, found, err, i)
		}
		if found && (s != plain[i] || ordinal != uint64(i)) {
			t.Fatalf("at %d: %+v number %d, want %+v number %d", at, s, ordinal, plain[i], i)
		}
	}
	for range 100_000 {
		check(plain[0].millis - 5 + rnd.Int64N(millis-plain[0].millis+10))
	}
	for i := 0; i < len(plain); i += leafSamples - 1 {
		for d := int64(-1); d <= 1; d++ {
			check(plain[i].millis + d)
		}
	}
	if _, _, found, err := x.at(6, 0); found || err != nil {
		t.Errorf("another security has a sample: %v, %v", found, err)
	}
	if _, _, found, err := x.at(1<<20, 0); found || err != nil {
		t.Errorf("a security beyond all has a sample: %v, %v", found, err)
	}
}

// TestExecutionsAreFoundByTradeSequence reads them from blocks and from memory.
func TestExecutionsAreFoundByTradeSequence(t *testing.T) {
	file := must.Get(openBlocks(filepath.Join(t.TempDir(), arrivalsName)))(t)
	defer file.f.Close()
	x := &executions{file: file}
	const fills = 5*blockExecutions + 3
	entry := func(seq uint64) execution {
		return execution{arrival{int64(seq) * 7, -int64(seq)}, seq << 40}
	}
	for seq := range uint64(fills) {
		must.OK(t, x.add(seq+1, entry(seq+1)))
	}
	for seq := range uint64(fills + 3) {
		e, found, err := x.at(seq)
		if want := seq > 0 && seq <= fills; err != nil || found != want || found && e != entry(seq) {
			t.Errorf("tradeSeq %d: %+v, %v, %v", seq, e, found, err)
		}
	}
	if err := x.add(fills+2, execution{}); err == nil {
		t.Error("a hole in the trade sequence is taken")
	}
	if err := x.add(fills, execution{}); err == nil {
		t.Error("a trade sequence is taken twice")
	}
}
