package blotter

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"sync/atomic"
	"testing"

	"posttrade/matcher"
	"posttrade/ring/must"
)

// countedFile counts the files that are open.
type countedFile struct {
	indexFile
	open   *atomic.Int64
	closed atomic.Bool
}

func (f *countedFile) ReadAt(p []byte, off int64) (int, error) {
	if f.closed.Load() {
		return 0, os.ErrClosed
	}
	return f.indexFile.ReadAt(p, off)
}

func (f *countedFile) Close() error {
	f.closed.Store(true)
	f.open.Add(-1)
	return f.indexFile.Close()
}

func counted(h *History) *atomic.Int64 {
	open := &atomic.Int64{}
	h.create = func(path string) (indexFile, error) {
		f, err := createIndexFile(path)
		open.Add(1)
		return &countedFile{indexFile: f, open: open}, err
	}
	return open
}

// TestReadersSeeOneIndexWhileOthersTakeItsPlace reads by page and by range while each index is
// replaced by the next. All fills of a call are of one index, and none is missing.
func TestReadersSeeOneIndexWhileOthersTakeItsPlace(t *testing.T) {
	h := newTestHistory(t, t.TempDir())
	open := counted(h)
	const generations, n = 60, 3000
	// The history of generation g has n+g fills, and every fill's quantity is g.
	build := func(g uint64) error {
		_, err := h.Reindex(context.Background(), give(n+g, 900, func(seq uint64) matcher.Fill {
			fill := fillOf(seq)
			fill.Qty = int32(g)
			return fill
		}), headAt(g, n+g))
		return err
	}
	must.OK(t, build(1))
	check := func(fills []matcher.Fill, from uint64, g *int32) error {
		for i := range fills {
			if *g == 0 {
				*g = fills[i].Qty
			}
			if fills[i].TradeSeq != from+uint64(i) || fills[i].Qty != *g {
				return fmt.Errorf("fill %d of those from %d is tradeSeq %d of index %d, in a call to index %d",
					i, from, fills[i].TradeSeq, fills[i].Qty, *g)
			}
		}
		return nil
	}
	var readers sync.WaitGroup
	stop := make(chan struct{})
	for id := range 4 {
		readers.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(id), 2))
			var items []matcher.Fill
			for {
				select {
				case <-stop:
					return
				default:
				}
				var g int32
				since := rng.Uint64N(n)
				items, next, ok := h.Page(since, 1500, items[:0])
				if !ok || next != since+uint64(len(items)) {
					t.Errorf("page since %d: %d items, next %d, %v", since, len(items), next, ok)
					return
				}
				if err := check(items, since+1, &g); err != nil {
					t.Error(err)
					return
				}
				g = 0
				at := since + 1
				err := h.Range(at, n+generations, func(fills []matcher.Fill) error {
					err := check(fills, at, &g)
					at += uint64(len(fills))
					return err
				})
				if err != nil || at != n+uint64(g)+1 {
					t.Errorf("range from %d ends before %d: %v", since+1, at, err)
					return
				}
			}
		})
	}
	for g := uint64(2); g <= generations; g++ {
		if err := build(g); err != nil {
			t.Error(err)
			break
		}
	}
	close(stop)
	readers.Wait()
	if got := open.Load(); got != 1 {
		t.Errorf("%d files open, want 1", got)
	}
}

func TestOneReindexAtATime(t *testing.T) {
	h := newTestHistory(t, t.TempDir())
	inside, gate, done := make(chan struct{}), make(chan struct{}), make(chan error)
	go func() {
		_, err := h.Reindex(context.Background(), func(from uint64, fn func([]matcher.Fill) error) error {
			close(inside)
			<-gate
			return give(10, 3, fillOf)(from, fn)
		}, headAt(1, 10))
		done <- err
	}()
	<-inside
	if _, err := h.Reindex(
		context.Background(), give(5, 3, fillOf), headAt(1, 5),
	); !errors.Is(err, ErrReindexing) {
		t.Errorf("a second reindex: %v", err)
	}
	close(gate)
	must.OK(t, <-done)
	expectAll(t, h, 10)
	reindex(t, h, 20)
	expectAll(t, h, 20)
}

func TestCloseEndsEverything(t *testing.T) {
	dir := t.TempDir()
	h := NewHistory(dir)
	open := counted(h)
	reindex(t, h, 5000)
	inside, gate, done := make(chan struct{}), make(chan struct{}), make(chan error)
	go func() {
		_, err := h.Reindex(context.Background(), func(from uint64, fn func([]matcher.Fill) error) error {
			close(inside)
			<-gate
			return give(10, 3, fillOf)(from, fn)
		}, headAt(1, 10))
		done <- err
	}()
	<-inside
	at := uint64(1)
	err := h.Range(1, 5000, func(fills []matcher.Fill) error {
		if at == 1 {
			if err := errors.Join(h.Close(), h.Close()); err != nil {
				t.Error(err)
			}
		}
		expectFills(t, fills, at)
		at += uint64(len(fills))
		return nil
	})
	if err != nil || at != 5001 {
		t.Errorf("a reader of the closed history ends before %d: %v", at, err)
	}
	close(gate)
	if err := <-done; !errors.Is(err, ErrHistoryClosed) {
		t.Errorf("the reindex under way: %v", err)
	}
	if _, err := h.Reindex(
		context.Background(), give(1, 1, fillOf), headAt(1, 1),
	); !errors.Is(err, ErrHistoryClosed) {
		t.Errorf("a reindex afterwards: %v", err)
	}
	if _, _, ok := h.Page(0, 1, nil); ok {
		t.Error("a page of a closed history")
	}
	if names := filesIn(t, dir); len(names) != 0 || open.Load() != 0 {
		t.Errorf("files %v, %d open", names, open.Load())
	}
}

// TestReindexThatFinishesAfterCloseIsDropped closes when all fills have been read.
func TestReindexThatFinishesAfterCloseIsDropped(t *testing.T) {
	dir := t.TempDir()
	h := NewHistory(dir)
	open := counted(h)
	_, err := h.Reindex(context.Background(), func(from uint64, fn func([]matcher.Fill) error) error {
		return errors.Join(give(10, 3, fillOf)(from, fn), h.Close())
	}, headAt(1, 10))
	if names := filesIn(t, dir); !errors.Is(err, ErrHistoryClosed) || len(names) != 0 ||
		open.Load() != 0 {
		t.Errorf("error %v, files %v, %d open", err, names, open.Load())
	}
}
