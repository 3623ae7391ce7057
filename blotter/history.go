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
	// ErrReindexing: one index is being built; it is one at a time.
	ErrReindexing = errors.New("a reindex is under way")
	// ErrNoHistory: there is no index to read, not yet or no longer.
	ErrNoHistory = errors.New("no full-history index")
	// ErrSource: the fills that were given are not all fills in order.
	ErrSource = errors.New("source is not contiguous")
	// ErrDamaged: what is on disk is not what was written.
	ErrDamaged = errors.New("full-history index damaged")
	// ErrHistoryClosed: the history has been closed.
	ErrHistoryClosed = errors.New("history closed")
)

// The names of the files.
const (
	historyPrefix = "fills-"
	historySuffix = ".index"
	historyTemp   = ".tmp"
)

// History is every fill there ever was, on disk, in an index that is built on
// demand: fill n is record n. It holds no memory but a checksum for every block
// of records, so it may be larger than memory.
//
// A new index takes the place of the old one at once and as a whole. Whoever
// reads the old one reads on: its file has no name any more, and is closed after
// its last reader. An index belongs to the process that built it, since it can
// be built again at any time; files that an earlier process left are removed.
// Any goroutine may use a History.
type History struct {
	dir    string
	now    func() time.Time
	create func(path string) (indexFile, error)

	mu        sync.Mutex // guards what follows
	current   *index     // nil: none
	damage    error      // why there is none any more
	info      HistoryInfo
	built     uint64 // indexes begun, for their names
	reindexes bool
	closed    bool
}

// HistoryInfo says what an index holds.
type HistoryInfo struct {
	IndexedTrades uint64 // fills
	// the durable input sequence when it was begun: all fills up to there are in it
	LastSequence   uint64
	LastTradeSeq   uint64
	DurationMillis int64
}

// NewHistory returns a history that keeps its files in dir, which may not exist
// yet. Indexes of an earlier process are removed.
func NewHistory(dir string) *History {
	h := &History{dir: dir, now: time.Now, create: createIndexFile}
	// a folder that cannot be used stops Reindex, which has an error to give
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

// Reindex builds a new index and puts it in the place of the old one.
//
// head is the end of what is durable, asked once at the beginning. source gives
// every fill from a trade sequence on, ascending, a slice at a time; what it
// gives beyond the head is left out. ErrReindexing at once while another Reindex
// runs. After any error the old index stays, and nothing is left on disk.
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
	info.DurationMillis = h.now().Sub(start).Milliseconds()
	if err := h.swap(ix, info); err != nil {
		return HistoryInfo{}, fmt.Errorf("blotter: reindex dir=%s: %w", h.dir, err)
	}
	return info, nil
}

// begin takes the place of the one Reindex and names its file.
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

func (h *History) end() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.reindexes = false
}

// build writes the file under a temporary name and renames it when it is whole.
func (h *History) build(ctx context.Context, path string,
	source func(uint64, func([]matcher.Fill) error) error,
	last uint64) (_ *index, err error) {
	if err := os.MkdirAll(h.dir, 0o755); err != nil {
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

// swap makes ix the current index.
func (h *History) swap(ix *index, info HistoryInfo) error {
	h.mu.Lock()
	old := h.current
	if h.closed {
		h.mu.Unlock()
		return errors.Join(ErrHistoryClosed, ix.drop())
	}
	h.current, h.info, h.damage = ix, info, nil
	h.mu.Unlock()
	if old == nil {
		return nil
	}
	return old.drop()
}

func (h *History) isClosed() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.closed
}

// Info says what the index holds; false when there is none.
func (h *History) Info() (HistoryInfo, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.current == nil {
		return HistoryInfo{}, false
	}
	return h.info, true
}

// Close removes the index. A Reindex that is under way ends in an error at the next
// fills it is given, and is not waited for; readers finish what they have begun.
// It is idempotent.
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
