package blotter

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"posttrade/matcher"
)

// Errors of a history.
var (
	// ErrReindexing reports that another index is being built; only one is built at a time.
	ErrReindexing = errors.New("a reindex is under way")
	// ErrNoHistory reports that there is no index to read, not yet or no longer.
	ErrNoHistory = errors.New("no full-history index")
	// ErrSource reports that the source did not give all fills in order.
	ErrSource = errors.New("source is not contiguous")
	// ErrDamaged reports that the file differs from the data that was written.
	ErrDamaged = errors.New("full-history index damaged")
	// ErrHistoryClosed reports that the history has been closed.
	ErrHistoryClosed = errors.New("history closed")
)

// The names of the files: fills-<n>.index, with .tmp behind it while the file is written. n counts
// the indexes of this process.
const (
	historyPrefix = "fills-"
	historySuffix = ".index"
	historyTemp   = ".tmp"
)

// History holds every fill since the beginning, on disk, in an index that is built on demand: fill
// n is record n. In memory it holds only a checksum for every block of records, so the index may be
// larger than memory.
//
// A new index replaces the old one in one step. A goroutine that reads the old index continues: the
// file has no name any more and is closed after its last reader. An index belongs to the process
// that built it, because it can be built again at any time. NewHistory removes files that an
// earlier process left. Any goroutine may use a History. No lock is held while a file is read or
// written.
type History struct {
	dir    string
	now    func() time.Time
	create func(path string) (indexFile, error)

	mu        sync.Mutex // guards the fields below
	current   *index     // nil: none
	built     uint64     // number of indexes begun, for file names
	reindexes bool
	closed    bool
}

// HistoryInfo describes the content of an index. Every fill of a command up to LastSequence is in
// it.
type HistoryInfo struct {
	IndexedTrades uint64 // fills
	// the durable input sequence when the index was begun: it holds all fills up to there
	LastSequence   uint64
	LastTradeSeq   uint64
	DurationMillis int64
}

// NewHistory returns a history that keeps its files in dir, which may not exist
// yet. Indexes of an earlier process are removed.
func NewHistory(dir string) *History {
	h := &History{dir: dir, now: time.Now, create: createIndexFile}
	// Reindex reports the error of an unusable folder
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		name := e.Name()
		if strings.HasPrefix(name, historyPrefix) &&
			strings.HasSuffix(strings.TrimSuffix(name, historyTemp), historySuffix) {
			_ = os.Remove(filepath.Join(dir, name))
		}
	}
	return h
}

// Reindex builds a new index and replaces the old one with it.
//
// Reindex calls head once, at the beginning, for the end of the durable data. source passes every
// fill from a trade sequence on, ascending, a slice at a time. Fills beyond the head are left out.
// While another Reindex runs, the result is ErrReindexing at once.
//
//   - Errors: ErrReindexing, ErrHistoryClosed, ErrSource; those of source, of ctx and of the files.
//     After an error before the exchange the old index stays, and no new file is left on disk. An
//     error of removing the old file comes after the exchange: the new index is then in use.
//   - Cost: one pass over all fills, and 4 bytes of memory for every 1024 of them. It blocks. Any
//     goroutine.
func (h *History) Reindex(ctx context.Context,
	source func(from uint64, fn func([]matcher.Fill) error) error,
	head func() (inputSeq, tradeSeq uint64)) (info HistoryInfo, err error) {
	path, err := h.begin()
	if err != nil {
		return info, fmt.Errorf("blotter: reindex dir=%s: %w", h.dir, err)
	}
	defer h.end()
	start := h.now()
	info.LastSequence, info.LastTradeSeq = head()
	info.IndexedTrades = info.LastTradeSeq
	ix, err := h.build(ctx, path, source, info.LastTradeSeq)
	if err != nil {
		return HistoryInfo{}, fmt.Errorf("blotter: reindex dir=%s: %w", h.dir, err)
	}
	ix.inputSeq = info.LastSequence
	info.DurationMillis = h.now().Sub(start).Milliseconds()
	if err := h.swap(ix); err != nil {
		return HistoryInfo{}, fmt.Errorf("blotter: reindex dir=%s: %w", h.dir, err)
	}
	return info, nil
}

// begin marks a Reindex as running and names its file.
func (h *History) begin() (path string, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.closed:
		return "", ErrHistoryClosed
	case h.reindexes:
		return "", ErrReindexing
	}
	h.reindexes = true
	h.built++
	return filepath.Join(h.dir, fmt.Sprintf("%s%d%s", historyPrefix, h.built, historySuffix)), nil
}

// end lets the next Reindex begin.
func (h *History) end() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.reindexes = false
}

// build writes the file under a temporary name and renames it when it is complete.
func (h *History) build(ctx context.Context, path string,
	source func(uint64, func([]matcher.Fill) error) error,
	last uint64) (_ *index, err error) {
	if err := os.MkdirAll(h.dir, 0o700); err != nil {
		return nil, err
	}
	f, err := h.create(path + historyTemp)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, f.Close(), os.Remove(path+historyTemp))
		}
	}()
	w := newIndexWriter(f, last)
	if last > 0 {
		err = source(1, func(fills []matcher.Fill) error {
			if err := ctx.Err(); err != nil {
				return err
			}
			if h.isClosed() {
				return ErrHistoryClosed
			}
			return w.append(fills)
		})
	}
	if err != nil && !errors.Is(err, errWhole) {
		return nil, err
	}
	ix, err := w.finish()
	if err != nil {
		return nil, err
	}
	if err = os.Rename(path+historyTemp, path); err != nil {
		return nil, err
	}
	ix.path = path
	return ix, nil
}

// swap makes ix the current index. A history that was closed meanwhile drops it instead. The error
// is that of removing or closing a file; the new index is in use all the same, unless the history
// is closed.
func (h *History) swap(ix *index) error {
	h.mu.Lock()
	old := h.current
	if h.closed {
		h.mu.Unlock()
		return errors.Join(ErrHistoryClosed, ix.drop())
	}
	h.current = ix
	h.mu.Unlock()
	if old == nil {
		return nil
	}
	return old.drop()
}

// isClosed is asked for every slice of fills, so that Close ends a Reindex soon.
func (h *History) isClosed() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.closed
}

// Close removes the index. A running Reindex ends with an error at the next fills from its source;
// Close does not wait for it. Readers finish the reads that they have begun. It is idempotent.
func (h *History) Close() error {
	h.mu.Lock()
	old := h.current
	h.current, h.closed = nil, true
	h.mu.Unlock()
	if old == nil {
		return nil
	}
	return old.drop()
}
