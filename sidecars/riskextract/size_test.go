package riskextract

import (
	"path/filepath"
	"runtime"
	"strconv"
	"testing"
	"time"

	"posttrade/matcher"
)

const manyRows = 100_000

// largeState holds 100,000 positions in no order, and 100,000 contracts.
func largeState() *fakeState {
	s := new(fakeState)
	const securities = 2_000
	for id := range uint32(securities) {
		s.securities = append(s.securities,
			matcher.SecurityInfo{ID: id + 1, Ticker: "SEC." + strconv.Itoa(int(id)),
				LastTradePx: 1_000_000 + int64(id)})
	}
	accounts := []uint32{1, 2, 3, 4, 5, 6, 7, 8, 22214, 22310}
	for i := range uint32(manyRows) {
		s.positions = append(s.positions, matcher.PositionInfo{AccountID: accounts[i%10]*1000 +
			i/10/securities,
			SecurityID: 1 + i/10*7%securities, Qty: int64(i) - 50_000, AverageCost: int64(i) * 1_000_003})
		s.contracts = append(s.contracts, matcher.ContractInfo{ID: 10 * uint64(i+1),
			ContractTerms: matcher.ContractTerms{
				AccountID: accounts[i%10] * 1000, Notional: int32(i + 1), FixedRate: int64(i) - 70_000,
				Side:     matcher.Side(i % 2),
				Maturity: 30_000, Convention: i % 5, Swaption: i%3 == 0, Expiry: uint16(i % 3),
				Style: matcher.ExerciseStyle(i % 3)}})
	}
	return s
}

func largeCounterparties() string {
	text := counterpartiesHeader + "\n"
	for _, account := range []uint32{1, 2, 3, 4, 5, 6, 7, 8, 22214, 22310} {
		for i := range uint32(5) {
			n := strconv.Itoa(int(account*1000 + i))
			text += n + ",CP" + n + ",NS" + n + ",USD\n"
		}
	}
	return text
}

// TestLargeExtract goes the whole way from the engine to the announcement with a large state, and
// compares the memory of the cut with what the design expects.
func TestLargeExtract(t *testing.T) {
	state := largeState()
	m := Marker{Seq: 2_000_000, SessionDate: 20_777, PriceVersion: 1}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	start := time.Now()
	cut, err := renderCut(m, state)
	took := time.Since(start)
	runtime.ReadMemStats(&after)
	if err != nil || cut.Rows != manyRows || cut.Contracts != manyRows {
		t.Fatalf("%d rows, %d contracts, %v", cut.Rows, cut.Contracts, err)
	}
	allocs, bytes := after.Mallocs-before.Mallocs, after.TotalAlloc-before.TotalAlloc
	t.Logf("cut: %d bytes in %v, %d allocations of %d bytes", len(cut.Bytes), took, allocs, bytes)
	if allocs > 2_000 || bytes > 64<<20 {
		t.Error("rendering the cut costs too much")
	}

	r := newRig(t)
	r.o.Counterparties = filepath.Join(t.TempDir(), "cp.csv")
	write(t, r.o.Counterparties, largeCounterparties())
	r.mark(m, state)
	start = time.Now()
	a, err := New(r.o).Extract(t.Context(), m)
	if err != nil || a.Rows != manyRows || a.Contracts != manyRows || a.CutSHA256 != cut.SHA256 {
		t.Fatalf("%+v, %v", a, err)
	}
	t.Logf("extract: %v", time.Since(start))
	start = time.Now()
	dir, out := filepath.Join(r.o.Sink, a.SessionDate, "v1"), t.TempDir()
	if err = Rebuild(filepath.Join(dir, "seq-2000000.cut"), filepath.Join(out, "p"),
		filepath.Join(out, "c")); err != nil {
		t.Fatal(err)
	}
	t.Logf("rebuild: %v", time.Since(start))
	stored, rebuilt := files(t, dir), files(t, out)
	if rebuilt["p"] != stored["seq-2000000.csv"] ||
		rebuilt["c"] != stored["seq-2000000-contracts.csv"] {
		t.Error("the rebuilt files differ")
	}
}

func BenchmarkRenderCut(b *testing.B) {
	state := largeState()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := renderCut(Marker{Seq: 1, SessionDate: 1}, state); err != nil {
			b.Fatal(err)
		}
	}
}
