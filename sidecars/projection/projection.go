package projection

import (
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"posttrade/matcher"
	"posttrade/sidecars/store"
)

// Test by errors.Is. The first two are bugs or a wrong pairing of journal and
// database: Run ends with them. The third goes away when the journal has caught up.
var (
	// ErrSequence reports fills that do not follow one another.
	ErrSequence = errors.New("fills are not contiguous")
	// ErrForeign reports that the database was filled from another history than this journal's.
	ErrForeign = errors.New("the database holds another history")
	// ErrAhead reports that the database knows fills which the journal does not have, or not yet.
	ErrAhead = errors.New("the database is ahead of the journal")
	// ErrMalformed reports a booking message that no retry will make readable.
	ErrMalformed = errors.New("malformed trade message")
)

// errTicker reports a fill of a security whose name is not known (yet).
var errTicker = errors.New("security without a name")

// The cursors; doc.go says what each counts.
const (
	cursorTrades = "projection"
	cursorInput  = "projection.input"
	cursorMark   = "projection.mark"
)

const (
	defaultPoll      = 20 * time.Millisecond
	defaultBatchRows = 8192
	defaultRest      = 4
)

// Source is the durable history of fills, ascending by trade sequence and
// contiguous from 1. A *journal.Journal is one.
type Source interface {
	// Head returns the last durable input sequence and the last trade sequence issued by then.
	Head() (inputSeq, tradeSeq uint64)
	// Fills gives every durable fill from tradeSeq from on to fn; an error of fn ends it and is
	// returned.
	Fills(from uint64, fn func([]matcher.Fill) error) error
}

// Options are what a Projection is made of. Source, DB, Ticker and SettlementDate are required.
type Options struct {
	Source         Source
	DB             *store.DB
	Ticker         func(securityID uint32) string // "" when there is no such security
	SettlementDate func(executedAtMillis int64) store.Date
	// what SettlementDate depends on, noted beside the rows; "" = nothing is noted
	Rules     string
	Now       func() time.Time // time.Now
	Poll      time.Duration    // between looks at the head while there is nothing to do; 20 ms
	BatchRows int              // most rows of one transaction; 8192
	// times a batch's work that pass before the next one while trades come; 4, negative = none
	Rest   int
	Logger *slog.Logger // none
}

// Metrics are counters since the start, and the lag.
type Metrics struct {
	Booked           uint64 // rows inserted from the journal
	Duplicates       uint64 // fills whose row was there already
	Batches          uint64 // transactions that moved the cursor
	LegacyBooked     uint64 // rows inserted from messages
	LegacyDuplicates uint64 // messages whose row was there already
	LegacyMalformed  uint64 // messages that could not be read
	Failures         uint64 // steps and message batches that came to nothing
	LagRecords       uint64 // durable fills that are not in the table yet
}

// Projection is one process's writer of the table trades.
type Projection struct {
	o    Options
	log  *slog.Logger
	wake chan struct{} // holds at most one nudge

	stepping sync.Mutex // held by Step; guards the next four
	known    bool       // at is what the database said last, and nothing failed since
	at       position
	input    uint64 // input sequence of the fill at the cursor; 0 when it is not known
	batch    batch

	messages sync.Pool // of *message

	clock  func() time.Time    // what a step took is read from it; time.Now, but for tests
	rested func(time.Duration) // called with each rest of Run, for tests

	mu     sync.Mutex // guards what other goroutines ask for
	shown  position
	phase  phase
	detail string

	origin atomic.Uint64 // of Origin, once there is one
	// a step has found ErrForeign, for good
	foreign                                         atomic.Bool
	booked, duplicates, batches, failed             atomic.Uint64
	legacyBooked, legacyDuplicates, legacyMalformed atomic.Uint64
}

// position is how far the table goes.
type position struct {
	trade uint64 // every fill up to this trade sequence is in the table
	input uint64 // every fill of the commands up to this input sequence is
}

// New returns a Projection that has not looked at anything yet.
func New(o Options) *Projection {
	if o.Source == nil || o.DB == nil || o.Ticker == nil || o.SettlementDate == nil {
		panic("projection: Source, DB, Ticker and SettlementDate are required")
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Poll <= 0 {
		o.Poll = defaultPoll
	}
	if o.BatchRows <= 0 {
		o.BatchRows = defaultBatchRows
	}
	if o.Rest == 0 {
		o.Rest = defaultRest
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	p := &Projection{o: o, log: o.Logger, wake: make(chan struct{}, 1), detail: "not started",
		clock: time.Now, rested: func(time.Duration) {}}
	p.messages.New = func() any { return new(message) }
	return p
}

// Wake makes a Run that waits for work look at once. It never blocks and costs
// a few nanoseconds; it does not shorten the pause after a failure.
func (p *Projection) Wake() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// Projected returns the last trade sequence in the table and the input sequence
// up to which every fill is in the table.
func (p *Projection) Projected() (tradeSeq, inputSeq uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.shown.trade, p.shown.input
}

// Lag returns how many durable fills are not in the table yet.
func (p *Projection) Lag() uint64 {
	trade, _ := p.Projected()
	_, head := p.o.Source.Head() // read after the position, which never passes the head
	if head < trade {
		return 0
	}
	return head - trade
}

// State reports whether the last step succeeded, and what else there is to say. No I/O.
func (p *Projection) State() (ready bool, detail string) {
	p.mu.Lock()
	ready, detail = p.phase == following, p.detail
	p.mu.Unlock()
	if ready {
		detail = fmt.Sprintf("%d records behind", p.Lag())
	}
	return ready, detail
}

// Metrics returns the counters as they are now.
func (p *Projection) Metrics() Metrics {
	return Metrics{
		Booked: p.booked.Load(), Duplicates: p.duplicates.Load(), Batches: p.batches.Load(),
		LegacyBooked: p.legacyBooked.Load(), LegacyDuplicates: p.legacyDuplicates.Load(),
		LegacyMalformed: p.legacyMalformed.Load(), Failures: p.failed.Load(), LagRecords: p.Lag(),
	}
}
