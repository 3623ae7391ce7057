package flow

import (
	"crypto/md5"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash"
	"testing"
)

// published are the known figures of the flow. The digest is that of the file form: a header of 96
// bytes and 32 bytes per command.
var published = []struct {
	name    string
	options Options
	result  Result // without the hash, which the digest covers
	levels  int
	md5     string
}{
	{"one symbol", Options{Seed: 42, Symbols: 1, Prefill: 50_000, N: 1_000_000},
		Result{Trades: 226_672, Qty: 6_816_359, Notional: 222_712_420_573}, 1_154,
		"70285108dcf29f31384e06d4406571ad"},
	{"32 symbols", Options{Seed: 42, Symbols: 32, Prefill: 100_000, N: 1_000_000},
		Result{Trades: 220_745, Qty: 6_728_288, Notional: 220_429_942_659}, 24_508,
		"0fcf95b32911f5db4b9ebee90632d6f6"},
}

func TestGenerateMakesThePublishedFlow(t *testing.T) {
	for _, p := range published {
		t.Run(p.name, func(t *testing.T) {
			f := Generate(p.options)
			got := f.Result
			got.Hash = 0
			if got != p.result || f.Levels != p.levels {
				t.Errorf("got %+v and %d levels, want %+v and %d", got, f.Levels, p.result, p.levels)
			}
			if sum := digest(f, p.options.Seed); sum != p.md5 {
				t.Errorf("md5 %s, want %s", sum, p.md5)
			}
			if again := replay(f); again != f.Result {
				t.Errorf("replayed through a fresh ladder: %+v, want %+v", again, f.Result)
			}
		})
	}
}

func TestGenerateDependsOnItsSeedAlone(t *testing.T) {
	o := Options{Seed: 7, Symbols: 3, Prefill: 500, N: 5_000}
	first, second := digest(Generate(o), o.Seed), digest(Generate(o), o.Seed)
	if first != second {
		t.Errorf("the same options gave %s and %s", first, second)
	}
	o.Seed = 8
	if digest(Generate(o), 7) == first {
		t.Error("another seed gave the same flow")
	}
}

// TestRealisticIsWhatItSays counts what each regime does.
func TestRealisticIsWhatItSays(t *testing.T) {
	for _, regime := range Regimes() {
		t.Run(regime.String(), func(t *testing.T) {
			f := Realistic(RealisticOptions{Seed: 1, Regime: regime, N: 300_000})
			if len(f.Timed()) > 300_000 || len(f.Timed()) < 299_000 {
				t.Errorf("%d messages, want 300000", len(f.Timed()))
			}
			if got := replay(f); got != f.Result || got.Trades == 0 {
				t.Errorf("replayed: %+v, want %+v", got, f.Result)
			}
			var ops [4]int
			lowest, highest := int64(Ticks), int64(0)
			for _, c := range f.Timed() {
				ops[c.Op]++
				if c.Op == Take {
					lowest, highest = min(lowest, c.Px), max(highest, c.Px)
				}
			}
			if share := 100 * ops[Modify] / len(f.Timed()); share < 15 || share > 25 {
				t.Errorf("%d %% are modifies, want about 20", share)
			}
			if share := 100 * ops[Cancel] / ops[New]; share < 93 || share > 101 {
				t.Errorf("%d cancels for 100 orders, want about 95", share)
			}
			spread := map[Regime]int64{Swing25: 19_000, Swing40: 31_000, Crash: 39_000}[regime]
			if highest-lowest < spread {
				t.Errorf("traded from %d to %d, want a spread of %d", lowest, highest, spread)
			}
			if again := Realistic(RealisticOptions{Seed: 1, Regime: regime, N: 300_000}); digest(again,
				1) != digest(f, 1) {
				t.Error("the same options gave another flow")
			}
			t.Logf("new %d cancel %d take %d modify %d, %d trades, %d levels at the end",
				ops[New], ops[Cancel], ops[Take], ops[Modify], f.Result.Trades, f.Levels)
		})
	}
	if got := Regime(99).String(); got != "unknown" {
		t.Errorf("no regime is called %q", got)
	}
}

// TestRealisticCoversAWideMarket checks the flows of the measurement, at half the length.
func TestRealisticCoversAWideMarket(t *testing.T) {
	for _, regime := range Regimes() {
		t.Run(regime.String(), func(t *testing.T) {
			f := Realistic(RealisticOptions{Seed: 42, Regime: regime, N: 1_000_000})
			prices := map[int64]bool{}
			var ops [4]int
			for _, c := range f.Commands {
				prices[c.Px] = true
			}
			for _, c := range f.Timed() {
				ops[c.Op]++
			}
			if len(prices) < 15_000 { // the whole flow has more than 24,000
				t.Errorf("%d prices are named, want tens of thousands", len(prices))
			}
			if share := 100 * ops[Cancel] / ops[New]; share < 94 || share > 97 {
				t.Errorf("%d of 100 orders are cancelled, want 95", share)
			}
			if share := 100 * ops[Modify] / len(f.Timed()); share < 19 || share > 22 {
				t.Errorf("%d %% of the messages modify, want 20", share)
			}
		})
	}
}

func replay(f *Flow) Result {
	l := NewLadder(f.Symbols, f.MaxID)
	for i := range f.Commands {
		l.Apply(&f.Commands[i])
	}
	return l.Result
}

func digest(f *Flow, seed uint64) string {
	var h hash.Hash = md5.New()
	le := binary.LittleEndian
	var head [96]byte
	copy(head[:], "PAWL0001")
	r := f.Result
	for i, v := range []uint64{seed, uint64(f.Symbols), uint64(f.Prefill),
		uint64(len(f.Commands) - f.Prefill),
		uint64(len(f.Commands) + 1), r.Trades, r.Qty, r.Notional, r.Hash} {
		le.PutUint64(head[8+8*i:], v)
	}
	h.Write(head[:])
	var rec [32]byte
	for i := range f.Commands {
		c := &f.Commands[i]
		rec[0], rec[1] = byte(c.Op), c.Side
		le.PutUint16(rec[2:], c.Symbol)
		le.PutUint32(rec[4:], uint32(c.Qty))
		le.PutUint64(rec[8:], uint64(c.ID))
		le.PutUint64(rec[16:], uint64(c.Px))
		h.Write(rec[:])
	}
	return hex.EncodeToString(h.Sum(nil))
}

func BenchmarkLadder(b *testing.B) {
	for _, p := range published {
		b.Run(fmt.Sprintf("op=flow/symbols=%d", p.options.Symbols), func(b *testing.B) {
			f := Generate(p.options)
			timed := f.Timed()
			for b.Loop() {
				b.StopTimer()
				l := NewLadder(f.Symbols, f.MaxID)
				for i := range f.Commands[:f.Prefill] {
					l.Apply(&f.Commands[i])
				}
				b.StartTimer()
				for i := range timed {
					l.Apply(&timed[i])
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(timed)), "ns/command")
		})
	}
}
