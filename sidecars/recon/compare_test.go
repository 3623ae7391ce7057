package recon

import (
	"math/rand/v2"
	"slices"
	"testing"

	"posttrade/matcher"
	"posttrade/ring/must"
)

func TestEachFieldIsComparedAndNamed(t *testing.T) {
	fill := matcher.Fill{AccountID: 7, Side: matcher.Sell, Qty: 3, Px: 101_000_000, TimeMillis: 55}
	same := Trade{AccountID: 7, Security: "IBM", Side: matcher.Sell, Quantity: 3, Price: 101_000_000,
		TimeMillis: 55}
	tests := []struct {
		row  Trade
		want []string
	}{
		{same, nil},
		{Trade{8, matcher.Sell, "IBM", 3, 101_000_000, 55}, []string{"account"}},
		{Trade{7, matcher.Sell, "ibm", 3, 101_000_000, 55}, []string{"security"}},
		{Trade{7, matcher.Buy, "IBM", 3, 101_000_000, 55}, []string{"side"}},
		{Trade{7, matcher.Sell, "IBM", 4, 101_000_000, 55}, []string{"quantity"}},
		{Trade{7, matcher.Sell, "IBM", 3, 101_000_001, 55}, []string{"price"}},
		{Trade{7, matcher.Sell, "IBM", 3, 101_000_000, 54}, []string{"timestamp"}},
		{Trade{0, matcher.Buy, "", 0, 0, 0},
			[]string{"account", "security", "side", "quantity", "price", "timestamp"}},
	}
	for _, tt := range tests {
		want := tradeOfFill(&fill, "IBM")
		if got := differing(&tt.row, &want).names(); !slices.Equal(got, tt.want) {
			t.Errorf("row %+v differs in %v, want %v", tt.row, got, tt.want)
		}
	}
}

func TestOwnIDIsTheExactTextOfTheSequence(t *testing.T) {
	for _, tt := range []struct {
		id   string
		seq  uint64
		want bool
	}{
		{"trd-1", 1, true}, {"trd-9223372036854775807", 1<<63 - 1, true},
		{"trd-18446744073709551615", 1<<64 - 1, true},
		{"trd-01", 1, false}, {"trd-2", 1, false}, {"TRD-1", 1, false},
		{"trd-", 0, false}, {"", 0, false}, {"trd-1 ", 1, false},
	} {
		if got := ownID(tt.id, tt.seq); got != tt.want {
			t.Errorf("ownID(%q, %d) is %v", tt.id, tt.seq, got)
		}
		if got := matcher.TradeID(tt.seq) == tt.id; got != tt.want {
			t.Errorf("TradeID(%d) == %q is %v", tt.seq, tt.id, got)
		}
	}
}

// The merge of random rows and fills gives for each entry what a comparison of that entry gives.
func TestMergeMatchesEntryByEntry(t *testing.T) {
	for seed := range uint64(500) {
		rng := rand.New(rand.NewPCG(seed, 2))
		journal := newJournal(0)
		journal.add(rng, 60)
		rows := map[uint64]row{}
		for i := range journal.fills {
			f := &journal.fills[i]
			r := row{seq: f.TradeSeq, owned: rng.IntN(10) > 0, trade: tradeOfFill(f, tickerOf(f.SecurityID)),
				settled: settled{sequence: f.InputSeq}}
			if rng.IntN(4) == 0 {
				r.trade.Price++
			}
			if rng.IntN(3) > 0 {
				rows[r.seq] = r
			}
		}
		lo := 1 + rng.Uint64N(60)
		f := findings{span: span{lo, lo + rng.Uint64N(61-lo)}}
		for next := f.lo; next <= f.hi; {
			page := span{next, min(f.hi, next+rng.Uint64N(20))}
			var list []row
			for seq := page.lo; seq <= page.hi; seq++ {
				if r, found := rows[seq]; found {
					list = append(list, r)
				}
			}
			f.notePage(page, list)
			m := merge{rows: list, ticker: tickerOf, book: &rulebook{}, out: &f}
			must.OK(t, runs(list, func(run []row) error {
				return m.take(journal.fills[run[0].seq-1 : run[len(run)-1].seq])
			}))
			next = page.hi + 1
		}
		if rng.IntN(2) == 0 {
			if last := f.lo - 1 + rng.Uint64N(f.count()+2); !f.keep(last) {
				if last >= f.lo {
					t.Fatalf("seed %d: nothing kept of %v up to %d", seed, f.span, last)
				}
				continue
			}
		}
		absent, differs := map[uint64]bool{}, map[uint64]bool{}
		for i, s := range f.absent {
			if i > 0 && s.lo <= f.absent[i-1].hi+1 {
				t.Fatalf("seed %d: runs %v are not maximal", seed, f.absent)
			}
			for seq := s.lo; seq <= s.hi; seq++ {
				absent[seq] = true
			}
		}
		for _, m := range f.differs {
			differs[m.seq] = true
		}
		if total(f.absent) != uint64(len(absent)) || len(f.differs) != len(differs) {
			t.Fatalf("seed %d: an entry twice in %+v", seed, f)
		}
		for seq := uint64(1); seq <= 60; seq++ {
			r, found := rows[seq]
			inside := seq >= f.lo && seq <= f.hi
			wantAbsent := inside && (!found || !r.owned)
			want := tradeOfFill(&journal.fills[seq-1], tickerOf(journal.fills[seq-1].SecurityID))
			wantDiffers := inside && !wantAbsent && r.trade != want
			if absent[seq] != wantAbsent || differs[seq] != wantDiffers {
				t.Fatalf("seed %d: entry %d is absent=%v differs=%v, want %v %v in %v",
					seed, seq, absent[seq], differs[seq], wantAbsent, wantDiffers, f.span)
			}
		}
	}
}

// Fills between rows that are far apart are not read.
func TestRunsSplitRowsThatAreFarApart(t *testing.T) {
	rows := []row{{seq: 1}, {seq: 2}, {seq: 2 + farApart}, {seq: 3 + 2*farApart},
		{seq: 4 + 2*farApart}}
	var got []span
	must.OK(t, runs(rows, func(run []row) error {
		got = append(got, span{run[0].seq, run[len(run)-1].seq})
		return nil
	}))
	if want := []span{{1, 2 + farApart}, {3 + 2*farApart, 4 + 2*farApart}}; !slices.Equal(got, want) {
		t.Errorf("runs %v, want %v", got, want)
	}
	if err := runs(rows, func([]row) error { return errFake }); err != errFake {
		t.Errorf("error %v", err)
	}
}

func TestMergeDoesNotAllocate(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 3))
	journal := newJournal(0)
	journal.add(rng, 1000)
	var rows []row
	for i := range journal.fills {
		rows = append(rows, row{seq: uint64(i + 1),
			owned: ownID(matcher.TradeID(uint64(i+1)), uint64(i+1))})
		rows[i].trade = tradeOfFill(&journal.fills[i], "T")
		rows[i].sequence = journal.fills[i].InputSeq
	}
	var book rulebook
	out := findings{span: span{1, 1000}}
	if n := testing.AllocsPerRun(100, func() {
		m := merge{rows: rows, ticker: func(uint32) string { return "T" }, book: &book, out: &out}
		out.notePage(out.span, rows)
		_ = m.take(journal.fills)
	}); n != 0 || out.size() != 0 {
		t.Errorf("%v allocations a merge, findings %+v", n, out)
	}
}
