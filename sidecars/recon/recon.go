package recon

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"posttrade/matcher"
	"posttrade/sidecars/store"
)

// Defaults of Options. A row that is missing for DefaultGrace, from the first sweep on, is a break.
const (
	DefaultInterval       = time.Second
	DefaultGrace          = 5 * time.Second
	DefaultVerifyInterval = time.Minute
)

// The two durable cursors.
const (
	cursorFast = "recon" // the last entry that the fast sweep has passed
	// cursorVerify: the last entry of the verification's present round, 0 between rounds
	cursorVerify = "recon.verify"
)

// ErrBusy reports that an orphan sweep is running.
var ErrBusy = errors.New("an orphan sweep is running")

// errMoved reports that the books changed between the read and the write.
var errMoved = errors.New("the books were changed meanwhile")

// Journal is the durable history of fills. *journal.Journal fits.
//
// Any goroutine may call it. Head may fall between two starts, when a journal has lost a suffix.
type Journal interface {
	// Head returns the last durable input sequence and the last trade sequence issued by then.
	Head() (inputSeq, tradeSeq uint64)
	// Fills passes every durable fill from tradeSeq from on to fn, in order.
	Fills(from uint64, fn func([]matcher.Fill) error) error
}

// Blotter is the memory of recent fills, durable or not. *blotter.Blotter fits.
//
// Page appends to dst the fills behind sinceSeq that the blotter still holds, in order, at most
// limit of them. The first may be later than sinceSeq+1.
type Blotter interface {
	Page(sinceSeq uint64, limit int, dst []matcher.Fill) (
		items []matcher.Fill, nextSince, evicted uint64)
}

// HistoryInfo is what a rebuilt full-history index holds.
//
// IndexedTrades counts fills; the two sequences are those of the last one.
type HistoryInfo struct {
	IndexedTrades uint64
	LastSequence  uint64 // inputSeq
	LastTradeSeq  uint64
}

// History is the full-history index.
//
// Reindex may take long; one goroutine at a time calls it (OrphanSweep).
type History interface {
	// Reindex brings the index up to the durable head.
	Reindex(ctx context.Context) (HistoryInfo, error)
	// Range passes the indexed fills with tradeSeq from..to, inclusive, to fn, in order.
	Range(from, to uint64, fn func([]matcher.Fill) error) error
}

// Options configure a Recon. Journal, Blotter, History, DB and Ticker are required.
//
// Zero durations mean the defaults. Rules makes a calendar, which takes milliseconds: Recon keeps
// the results.
type Options struct {
	Journal Journal
	Blotter Blotter
	History History
	DB      *store.DB
	Ticker  func(securityID uint32) string // "" when the id is not known, or not known yet

	// Rules returns settlement rules by the name under which the database has them; false for rules
	// that this build does not know. nil: no rules are known.
	Rules func(name string) (Rules, bool)
	// SettlementDate dates a row that is repaired where no known rules do; nil: such a row cannot be
	// repaired.
	SettlementDate func(executedAtMillis int64) store.Date

	Now      func() time.Time
	Interval time.Duration // between fast sweeps
	// Grace: how long an entry may be without a row before it counts; negative: no time
	Grace          time.Duration
	VerifyInterval time.Duration // for one full round of the verification
	Logger         *slog.Logger
}

// Recon is the reconciliation of fills with rows.
//
// The locks are taken in the order repairing or orphanSweep or sweep, then mu, then making. A
// database transaction runs under mu; no lock is held between two chunks but the first three.
type Recon struct {
	o      Options
	bounds bounds

	mu      sync.Mutex // held for one chunk of any walk; guards the fields below
	rows    []row      // reused between chunks
	entries entries
	tickers []string          // by security id, filled on demand
	words   map[string]string // securities as the rows spell them

	making sync.Mutex       // guards rules
	rules  map[string]Rules // by name, made on demand; nil for unknown rules

	sweep   sync.Mutex // one Sweep at a time; guards recheck
	recheck recheck

	orphanSweep sync.Mutex // held for the whole of one orphan sweep
	repairing   sync.Mutex // held for the whole of one repair

	lastSweep  atomic.Int64 // writer: Sweep. Epoch millis of the last complete one; 0: none
	lastRound  atomic.Int64 // writer: Sweep. Start of the last complete round of the re-check
	cursor     atomic.Uint64
	openBreaks atomic.Uint64
	counters   counters
}

// counters count transitions into a class since the process started. The goroutine that holds mu
// writes them, after a chunk has been committed.
type counters struct {
	matched, missing, mismatch, orphan atomic.Uint64
}

// New returns a Recon. It makes no call yet.
func New(o Options) *Recon {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Interval <= 0 {
		o.Interval = DefaultInterval
	}
	if o.Grace == 0 {
		o.Grace = DefaultGrace
	}
	o.Grace = max(o.Grace, 0)
	if o.VerifyInterval <= 0 {
		o.VerifyInterval = DefaultVerifyInterval
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return &Recon{o: o, bounds: defaultBounds, words: make(map[string]string),
		rules:   make(map[string]Rules),
		entries: entries{journal: o.Journal, blotter: o.Blotter, index: o.History}}
}

func (r *Recon) nowMillis() int64 { return r.o.Now().UnixMilli() }

// Metrics are the values of the metrics page. The totals count transitions into a class since the
// process started; they never fall.
//
// Lag and OpenBreaks are those of the books as this process read them last.
type Metrics struct {
	MatchedTotal             uint64
	MissingInProjectionTotal uint64
	FieldMismatchTotal       uint64
	OrphanTotal              uint64
	Lag                      uint64 // durable fills that have no class yet
	OpenBreaks               uint64
}

// Metrics returns the present values without any I/O.
//
// Any goroutine.
func (r *Recon) Metrics() Metrics {
	_, head := r.o.Journal.Head()
	cursor := r.cursor.Load()
	return Metrics{
		MatchedTotal:             r.counters.matched.Load(),
		MissingInProjectionTotal: r.counters.missing.Load(),
		FieldMismatchTotal:       r.counters.mismatch.Load(),
		OrphanTotal:              r.counters.orphan.Load(),
		Lag:                      head - min(cursor, head),
		OpenBreaks:               r.openBreaks.Load(),
	}
}
