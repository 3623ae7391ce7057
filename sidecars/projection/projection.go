package projection

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

// The errors, for errors.Is. The first two are bugs or a wrong pairing of journal and database: Run
// ends with them. The third goes away when the journal has caught up.
var (
	// ErrSequence reports fills that do not follow one another.
	ErrSequence = errors.New("fills are not contiguous")
	// ErrForeign reports that the database was filled from another history than this journal's.
	ErrForeign = errors.New("the database holds another history")
	// ErrAhead reports that the database has fills that the journal does not have, or not yet.
	ErrAhead = errors.New("the database is ahead of the journal")
	// ErrMalformed reports a booking message that no retry will make readable.
	ErrMalformed = errors.New("malformed trade message")
	// ErrForeignID reports a booking message with the id of a trade that the engine has yet to make.
	ErrForeignID = errors.New("FOREIGN_ID: an id that the engine gives, above its last trade")
)

// errTicker reports a fill of a security whose name is not known, or not known yet.
//
// It is retried: the name comes from the gate, which learns it from the engine's events.
var errTicker = errors.New("security without a name")

// The cursors; doc.go describes them.
const (
	cursorTrades = "projection"
	cursorInput  = "projection.input"
	cursorMark   = "projection.mark"
)

// Defaults of Options. A rest of four times the work leaves the disk to the journal for four fifths
// of the time while trades come, unless pace.LongestRest cuts it short.
const (
	defaultPoll      = 20 * time.Millisecond
	defaultBatchRows = 8192
	defaultRest      = 4
)

// Journal is the durable history of fills, ascending by trade sequence and
// contiguous from 1. A *journal.Journal is one.
//
// Any goroutine may call it. Head never falls.
type Journal interface {
	// Head returns the last durable input sequence and the last trade sequence issued by then.
	Head() (inputSeq, tradeSeq uint64)
	// Fills passes every durable fill from tradeSeq from on to fn. An error of fn ends the call, and
	// Fills returns it.
	Fills(from uint64, fn func([]matcher.Fill) error) error
}

// Options configure a Projection. Journal, DB, Ticker and SettlementDate are required.
//
// The functions are called on the goroutine of Step or of BookBatch, and must not block.
type Options struct {
	Journal        Journal
	DB             *store.DB
	Ticker         func(securityID uint32) string // "" for an unknown security
	SettlementDate func(executedAtMillis int64) store.Date
	// Rules: the rules that SettlementDate depends on, stored beside the rows; "": nothing is stored
	Rules string
	// Named is the SettlementDate of other rules, false for rules that this build does not know. Rows
	// that are made again are dated by the rules of their trade. nil: it knows none.
	Named func(rules string) (settlementDate func(executedAtMillis int64) store.Date, known bool)
	// Forces gives the settlements by hand that the journal has on record. It is asked once, for a
	// database that has no trade yet, and may read the whole history. nil: none.
	Forces func(ctx context.Context, each func(tradeSeq uint64, atMillis int64) error) error
	// Issued is the last trade that a client may have been told of, for messages that name one. Trades
	// that the Journal leaves out because a power cut can take them away count too. nil: Journal.Head.
	Issued    func() (tradeSeq uint64)
	Now       func() time.Time // nil: time.Now
	Poll      time.Duration    // between looks at the head while there is nothing to do; 0: 20 ms
	BatchRows int              // most rows of one transaction; 0: 8192
	// Rest is the pause before the next batch while trades come, in multiples of the last batch's
	// work; 0: 4, negative: none.
	Rest   int
	Logger *slog.Logger // nil: none
}

// Metrics are counters since the start, and the lag.
//
// A fill or a message is counted when its transaction is known to be committed. The fills of a
// commit that was done and not answered are never counted as booked.
type Metrics struct {
	Booked           uint64 // rows inserted from the journal
	Duplicates       uint64 // fills whose row was there already
	Batches          uint64 // transactions that moved the cursor
	LegacyBooked     uint64 // rows inserted from messages
	LegacyDuplicates uint64 // messages whose row was there already
	LegacyMalformed  uint64 // messages that could not be read
	LegacyForeign    uint64 // messages with an id that the engine has yet to give
	Failures         uint64 // steps and message batches that failed
	LagRecords       uint64 // durable fills that are not in the table yet
}

// Projection is one process's writer of the table trades.
//
// The path of a Step: resume takes the position from the database, gather makes rows from fills,
// commit writes rows and cursors, advance shows the new position. Several processes may have one
// each: HoldCursor decides which of them moves the cursor, and the others start again from there.
type Projection struct {
	o   Options
	log *slog.Logger

	stepping sync.Mutex // held by Step; guards the next six
	known    bool       // at is what the database had last, and nothing has failed since
	at       position
	input    uint64 // input sequence of the fill at the cursor; 0: unknown
	eras     []era  // of settlement rules, as they were noted
	forced   uint64 // the last trade that was settled by hand before resume, 0: none
	batch    batch

	messages sync.Pool // of *message

	clock  func() time.Time    // measures the time of a step; time.Now, except in tests
	rested func(time.Duration) // called with each rest of Run, in tests

	mu sync.Mutex // guards the values that other goroutines read
	// shown is a copy of at for other goroutines; phase is written by note.
	shown position
	phase phase

	origin atomic.Uint64 // result of Origin, once there is one
	// foreign: a step has found ErrForeign; it stays set
	foreign                                         atomic.Bool
	booked, duplicates, batches, failed             atomic.Uint64
	legacyBooked, legacyDuplicates, legacyMalformed atomic.Uint64
	legacyForeign                                   atomic.Uint64
}

// position is how much of the history the table holds.
//
// input may run ahead of the fill at trade: commands that have no fill complete at once.
type position struct {
	trade uint64 // every fill up to this trade sequence is in the table
	input uint64 // every fill of the commands up to this input sequence is
}

// New returns a Projection. It reads nothing yet.
//
// It panics when a required option is missing, which is a bug of the wiring.
func New(o Options) *Projection {
	if o.Journal == nil || o.DB == nil || o.Ticker == nil || o.SettlementDate == nil {
		panic("projection: Journal, DB, Ticker and SettlementDate are required")
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Poll <= 0 {
		o.Poll = defaultPoll
	}
	if o.Issued == nil {
		o.Issued = func() uint64 { _, tradeSeq := o.Journal.Head(); return tradeSeq }
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
	p := &Projection{o: o, log: o.Logger, clock: time.Now, rested: func(time.Duration) {}}
	p.messages.New = func() any { return new(message) }
	return p
}

// Projected returns the last trade sequence in the table and the input sequence
// up to which every fill is in the table.
//
// Both are 0 until a Step has read the cursors. Everything up to them is committed. Any goroutine.
func (p *Projection) Projected() (tradeSeq, inputSeq uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.shown.trade, p.shown.input
}

// Lag returns how many durable fills are not in the table yet.
//
// Until a Step has read the cursors it is the whole history.
func (p *Projection) Lag() uint64 {
	trade, _ := p.Projected()
	_, head := p.o.Journal.Head() // read after the position, which is never above the head
	if head < trade {
		return 0
	}
	return head - trade
}

// Metrics returns the counters as they are now.
//
// They are not read at one moment. Any goroutine.
func (p *Projection) Metrics() Metrics {
	return Metrics{
		Booked: p.booked.Load(), Duplicates: p.duplicates.Load(), Batches: p.batches.Load(),
		LegacyBooked: p.legacyBooked.Load(), LegacyDuplicates: p.legacyDuplicates.Load(),
		LegacyMalformed: p.legacyMalformed.Load(), LegacyForeign: p.legacyForeign.Load(),
		Failures: p.failed.Load(), LagRecords: p.Lag(),
	}
}
