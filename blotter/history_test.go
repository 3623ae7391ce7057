package blotter

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"posttrade/matcher"
	"posttrade/ring/must"
)

// give is a source of n fills made by f, in slices of at most most fills.
func give(
	n uint64, most int, f func(tradeSeq uint64) matcher.Fill,
) func(uint64, func([]matcher.Fill) error) error {
	return func(from uint64, fn func([]matcher.Fill) error) error {
		var fills []matcher.Fill
		for seq := from; seq <= n; {
			fills = fills[:0]
			for range 1 + (int(seq)*7919)%most {
				if seq <= n {
					fills = append(fills, f(seq))
					seq++
				}
			}
			if err := fn(fills); err != nil {
				return err
			}
		}
		return nil
	}
}

func headAt(inputSeq, tradeSeq uint64) func() (uint64, uint64) {
	return func() (uint64, uint64) { return inputSeq, tradeSeq }
}

func newTestHistory(t testing.TB, dir string) *History {
	h := NewHistory(dir)
	t.Cleanup(func() {
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	})
	return h
}

func reindex(t testing.TB, h *History, n uint64) HistoryInfo {
	t.Helper()
	return must.Get(h.Reindex(context.Background(), give(n, 700, fillOf), headAt(3*n, n)))(t)
}

func filesIn(t testing.TB, dir string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// expectFills compares fills with what fillOf makes from a sequence on.
func expectFills(t testing.TB, fills []matcher.Fill, from uint64) {
	t.Helper()
	for i := range fills {
		if want := fillOf(from + uint64(i)); fills[i] != want {
			t.Fatalf("fill %d of those from %d: got %+v, want %+v", i, from, fills[i], want)
		}
	}
}

// expectAll reads the whole history by pages and by ranges.
func expectAll(t testing.TB, h *History, n uint64) {
	t.Helper()
	since, total := uint64(0), 0
	for limit := 1; ; limit = 1 + limit*5%2300 {
		items, next, ok := h.Page(since, limit, nil)
		if !ok || len(items) > limit || next != since+uint64(len(items)) {
			t.Fatalf("page since %d limit %d: %d items, next %d, ok %v", since, limit, len(items), next, ok)
		}
		expectFills(t, items, since+1)
		if total += len(items); len(items) == 0 {
			break
		}
		since = next
	}
	if uint64(total) != n {
		t.Fatalf("%d fills in pages, want %d", total, n)
	}
	for _, r := range [][2]uint64{
		{0, math.MaxUint64}, {1, n}, {2, n - 1}, {n / 2, n/2 + 1500}, {n, n}, {n + 1, n + 5}, {5, 4},
	} {
		from := max(r[0], 1)
		want := uint64(0)
		if to := min(r[1], n); to >= from {
			want = to - from + 1
		}
		at := from
		err := h.Range(r[0], r[1], func(fills []matcher.Fill) error {
			expectFills(t, fills, at)
			at += uint64(len(fills))
			return nil
		})
		if err != nil || at-from != want {
			t.Fatalf("range %v of %d: %d fills, want %d: %v", r, n, at-from, want, err)
		}
	}
}

func TestHistoryGivesBackEveryFill(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "not", "yet")
	h := newTestHistory(t, dir)
	clock := time.Unix(1000, 0)
	h.now = func() time.Time { clock = clock.Add(1500 * time.Millisecond); return clock }
	const batch = indexWrite * indexBlock
	for i, n := range []uint64{0, 1, 2, indexBlock - 1, indexBlock, indexBlock + 1, batch, batch + 1,
		40_000} {
		info := reindex(t, h, n)
		want := HistoryInfo{IndexedTrades: n, LastSequence: 3 * n, LastTradeSeq: n, DurationMillis: 1500}
		if info != want {
			t.Fatalf("got %+v, want %+v", info, want)
		}
		if last, ok := h.LastSequence(); last != 3*n || !ok {
			t.Fatalf("the index ends at %d, %v, want %d", last, ok, 3*n)
		}
		expectAll(t, h, n)
		if names := filesIn(t, dir); !slices.Equal(names, []string{fmt.Sprintf("fills-%d.index", i+1)}) {
			t.Fatalf("files %v", names)
		}
	}
}

func TestHistoryPageAppendsToWhatItIsGiven(t *testing.T) {
	h := newTestHistory(t, t.TempDir())
	reindex(t, h, 10)
	kept := fillOf(99)
	items, next, ok := h.Page(7, 100, []matcher.Fill{kept})
	if len(items) != 4 || items[0] != kept || next != 10 || !ok {
		t.Fatalf("got %d items, next %d, %v", len(items), next, ok)
	}
	expectFills(t, items[1:], 8)
	for _, since := range []uint64{10, 11, math.MaxUint64} {
		if items, next, ok := h.Page(since, 5, items[:1]); len(items) != 1 || next != since || !ok {
			t.Fatalf("beyond the end: %d items, next %d, %v", len(items), next, ok)
		}
	}
	if items, next, ok := h.Page(3, 0, nil); len(items) != 0 || next != 3 || !ok {
		t.Fatalf("no limit: %d items, next %d, %v", len(items), next, ok)
	}
}

func TestHistoryHasNothingBeforeTheFirstReindex(t *testing.T) {
	h := newTestHistory(t, t.TempDir())
	items, next, ok := h.Page(4, 10, nil)
	if items != nil || next != 4 || ok {
		t.Fatalf("got %v, %d, %v", items, next, ok)
	}
	if last, ok := h.LastSequence(); last != 0 || ok {
		t.Fatalf("no index ends at %d, %v", last, ok)
	}
	if err := h.Range(1, 2, nil); !errors.Is(err, ErrNoHistory) {
		t.Fatal(err)
	}
}

func TestHistoryEndsAtTheHeadAsItWasAtTheBeginning(t *testing.T) {
	h := newTestHistory(t, t.TempDir())
	given := uint64(0)
	source := func(from uint64, fn func([]matcher.Fill) error) error {
		return give(1_000_000, 700, fillOf)(from, func(fills []matcher.Fill) error {
			given += uint64(len(fills))
			return fn(fills)
		})
	}
	info, err := h.Reindex(context.Background(), source, headAt(77, 5000))
	if err != nil || info.IndexedTrades != 5000 || info.LastSequence != 77 {
		t.Fatalf("got %+v: %v", info, err)
	}
	if given > 5000+700*2 {
		t.Errorf("the source gave %d fills on behalf of 5000", given)
	}
	expectAll(t, h, 5000)
}

// brokenFile fails the write that reaches a byte.
type brokenFile struct {
	indexFile
	left int
	err  error
}

func (f *brokenFile) Write(p []byte) (int, error) {
	if f.left -= len(p); f.left < 0 {
		n, _ := f.indexFile.Write(p[:len(p)/2])
		return n, f.err
	}
	return f.indexFile.Write(p)
}

func TestFailedReindexKeepsTheOldIndex(t *testing.T) {
	dir := t.TempDir()
	h := newTestHistory(t, dir)
	reindex(t, h, 3000)
	before := filesIn(t, dir)
	cause := errors.New("planted")
	canceled, cancel := context.WithCancel(context.Background())
	cancel()
	skipping := func(seq uint64) matcher.Fill {
		if seq > 20_000 {
			seq++
		}
		return fillOf(seq)
	}
	full := func(left int) func(string) (indexFile, error) {
		return func(path string) (indexFile, error) {
			f, err := createIndexFile(path)
			return &brokenFile{f, left, cause}, err
		}
	}
	type source = func(uint64, func([]matcher.Fill) error) error
	tests := []struct {
		name   string
		ctx    context.Context
		source source
		create func(string) (indexFile, error)
		want   error
	}{
		{"source ends early", context.Background(), give(29_999, 700, fillOf), createIndexFile,
			ErrSource},
		{"source has a hole", context.Background(), give(30_000, 700, skipping), createIndexFile,
			ErrSource},
		{"source starts late", context.Background(), func(_ uint64, fn func([]matcher.Fill) error) error {
			return give(30_000, 700, fillOf)(2, fn)
		}, createIndexFile, ErrSource},
		{"source fails", context.Background(), func(from uint64, fn func([]matcher.Fill) error) error {
			return errors.Join(give(25_000, 700, fillOf)(from, fn), cause)
		}, createIndexFile, cause},
		{"canceled", canceled, give(30_000, 700, fillOf), createIndexFile, context.Canceled},
		{"disk full at once", context.Background(), give(30_000, 700, fillOf), full(0), cause},
		{"disk full at the end", context.Background(), give(30_000, 700, fillOf),
			full(30_000*matcher.FillBytes - 1), cause},
		{"file cannot be made", context.Background(), give(30_000, 700, fillOf),
			func(string) (indexFile, error) { return nil, cause }, cause},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			h.create = tt.create
			if _, err := h.Reindex(tt.ctx, tt.source, headAt(1, 30_000)); !errors.Is(err, tt.want) {
				t.Fatalf("got %v, want %v", err, tt.want)
			}
			if names := filesIn(t, dir); !slices.Equal(names, before) {
				t.Errorf("files %v, want %v", names, before)
			}
			expectAll(t, h, 3000)
		})
	}
	h.create = createIndexFile
	reindex(t, h, 4000) // the failed attempts do not block the next
	expectAll(t, h, 4000)
}

func TestReindexInAFolderThatCannotBeIsAnError(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	must.OK(t, os.WriteFile(file, nil, 0o600))
	h := newTestHistory(t, file)
	if _, err := h.Reindex(context.Background(), give(1, 1, fillOf), headAt(1, 1)); err == nil {
		t.Fatal("no error")
	}
}

func TestHistoryRemovesTheFilesOfAnEarlierProcess(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"fills-1.index", "fills-7.index.tmp", "other", "fills-1.idx",
		"x.index"} {
		must.OK(t, os.WriteFile(filepath.Join(dir, name), []byte("x"), 0o600))
	}
	newTestHistory(t, dir)
	if names := filesIn(t, dir); !slices.Equal(names, []string{"fills-1.idx", "other", "x.index"}) {
		t.Fatalf("files %v", names)
	}
}

func TestDamagedIndexIsNeverShown(t *testing.T) {
	dir := t.TempDir()
	h := newTestHistory(t, dir)
	const n = 5000
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 1))
	for range 50 {
		reindex(t, h, n)
		path := filepath.Join(dir, filesIn(t, dir)[0])
		at := rng.Int64N(n * matcher.FillBytes)
		f, err := os.OpenFile(path, os.O_RDWR, 0)
		must.OK(t, err)
		if rng.IntN(4) == 0 {
			err = f.Truncate(at)
		} else {
			b := []byte{0}
			if _, err = f.ReadAt(b, at); err == nil {
				b[0] ^= 1 << rng.IntN(8)
				_, err = f.WriteAt(b, at)
			}
		}
		must.OK(t, errors.Join(err, f.Close()))
		seq := uint64(at/matcher.FillBytes) + 1
		if rng.IntN(2) == 0 {
			items, next, ok := h.Page(seq-1, 1, nil)
			if ok || items != nil || next != seq-1 {
				t.Fatalf("a damaged page at %d: %d items, next %d", seq, len(items), next)
			}
		} else {
			at := uint64(1)
			err := h.Range(1, n, func(fills []matcher.Fill) error {
				expectFills(t, fills, at)
				at += uint64(len(fills))
				return nil
			})
			if !errors.Is(err, ErrDamaged) {
				t.Fatalf("range over damage at %d: %v", seq, err)
			}
		}
		if err := h.Range(1, 1, nil); !errors.Is(err, ErrNoHistory) {
			t.Fatalf("still there: %v", err)
		}
		if names := filesIn(t, dir); len(names) != 0 {
			t.Fatalf("still there: %v", names)
		}
	}
	reindex(t, h, n)
	expectAll(t, h, n)
}
