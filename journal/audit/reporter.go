package audit

import (
	"context"
	"errors"
	"fmt"
	"io"

	"posttrade/journal"
	"posttrade/journal/audit/lines"
	"posttrade/matcher"
)

// Errors of a report.
var (
	// ErrRange: the range begins after its end, or after the durable head.
	ErrRange = errors.New("fromSeq is after toSeq or the last sequence")
	// ErrBusy: MaxConcurrent reports are being made already.
	ErrBusy = errors.New("too many reports at a time")
	// ErrEngine: the engine cannot name its securities.
	ErrEngine = errors.New("engine does not know tickers")
)

// DefaultMaxConcurrent is how many reports are made at a time by default. Each holds an engine of
// its own.
const DefaultMaxConcurrent = 2

// Options of New. The zero value is fine.
type Options struct {
	MaxConcurrent int // reports at a time, beyond that ErrBusy; 0 = DefaultMaxConcurrent
}

// Reporter makes reports over one journal. Any goroutine may use it.
//
// It keeps nothing between two reports: each has a shadow of its own, freed at its end.
type Reporter struct {
	j *journal.Journal
	// engine makes the engine of each report's shadow.
	engine func(state io.Reader) (journal.Engine, error)
	// places has a place for each report that may be made at a time.
	places chan struct{}
}

// New returns a Reporter. engine makes an engine at its genesis (state nil) or
// from a snapshot's state, as for journal.NewShadow; it must be able to name its
// securities, as *matcher.Engine does with Ticker.
func New(j *journal.Journal, engine func(state io.Reader) (journal.Engine, error),
	o Options) *Reporter {
	if o.MaxConcurrent <= 0 {
		o.MaxConcurrent = DefaultMaxConcurrent
	}
	return &Reporter{j: j, engine: engine, places: make(chan struct{}, o.MaxConcurrent)}
}

// Genesis is the seed of every report: the genesis record's JSON text without its secret, which no
// replay needs. It is nil before the journal has a genesis. The caller must not change it.
func (r *Reporter) Genesis() []byte {
	genesis, _ := r.j.Genesis()
	return matcher.PublicGenesis(genesis)
}

// Clip turns the requested bounds into the range that Write takes: a from of 0, absent, is the
// first sequence; a to of 0, absent, is the durable head; a to beyond the head becomes the head.
// Clip returns ErrRange when from is given and is after to, or after the head. A journal without a
// command is an empty range.
func (r *Reporter) Clip(from, to uint64) (first, last uint64, err error) {
	if to != 0 && from > to {
		return 0, 0, fmt.Errorf("audit: report fromSeq=%d toSeq=%d: %w", from, to, ErrRange)
	}
	head, _ := r.j.Head()
	if to == 0 || to > head {
		to = head
	}
	if from > to {
		return 0, 0, fmt.Errorf("audit: report fromSeq=%d head=%d: %w", from, head, ErrRange)
	}
	return max(from, 1), to, nil
}

// Total counts the records of a report and hashes them.
type Total = lines.Total

// Write makes the report of [from, to], both inclusive and as Clip gives them, and hands it to
// chunk in pieces of whole lines, at most lines.ChunkBytes each, with the number of their records.
// chunk may use the bytes only until it returns, and its error ends the report. An empty range
// gives no chunk.
//
// Write blocks while chunk does, keeps a shadow engine as long, and ends soon after ctx ends. It
// returns ErrBusy at once when MaxConcurrent reports are under way. The journal must stay open
// until Write has returned.
func (r *Reporter) Write(ctx context.Context, from, to uint64,
	chunk func(records []byte, count int) error) (total Total, err error) {
	select {
	case r.places <- struct{}{}:
		defer func() { <-r.places }()
	default:
		return Total{}, fmt.Errorf("audit: report fromSeq=%d toSeq=%d: %w", from, to, ErrBusy)
	}
	if head, _ := r.j.Head(); to > head {
		to = head
	}
	p := lines.NewPrinter(chunk)
	if from = max(from, 1); from <= to {
		err = journal.Politely(journal.Bulk, func() error { return r.print(ctx, from, to, p) })
	}
	if err != nil {
		return Total{}, fmt.Errorf("audit: report fromSeq=%d toSeq=%d: %w", from, to, err)
	}
	return p.Total(), nil
}

// print replays the history up to the end of the range, and gives the range itself to p. The names
// of securities are read between the two, when the engine stands right before the range.
func (r *Reporter) print(ctx context.Context, from, to uint64, p *lines.Printer) (err error) {
	if err := ctx.Err(); err != nil {
		return err
	}
	var names lines.Names
	shadow, err := journal.NewShadow(r.j, func(state io.Reader) (e journal.Engine, err error) {
		e, err = r.engine(state)
		names, _ = e.(lines.Names)
		return e, err
	}, from-1)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, shadow.Close()) }()
	if names == nil {
		return ErrEngine
	}
	if err := shadow.Follow(ctx, from-1, nil); err != nil {
		return err
	}
	p.Know(names)
	if err := shadow.Follow(ctx, to, p.Print); err != nil {
		return err
	}
	return p.Flush()
}
