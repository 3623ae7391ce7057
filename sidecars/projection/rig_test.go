package projection

import (
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"posttrade/matcher"
	"posttrade/sidecars/store"
)

// bookedAt is when every trade of a test is booked.
const bookedAt = 1_790_000_000_123

// tickers are the names of the securities 1..3; the others have none.
var tickers = []string{"", "AAPL", "BRK.B", "X-1"}

func tickerOf(id uint32) string {
	if int(id) < len(tickers) {
		return tickers[id]
	}
	return ""
}

// settlesOn is a calendar that is easy to check: the second day after the execution's UTC date.
func settlesOn(millis int64) store.Date { return store.Date(millis/86_400_000 + 2) }

// history is a Journal in memory. Fills come in blocks, as they do from a journal.
type history struct {
	mu    sync.Mutex
	fills []matcher.Fill // what Fills returns; only a test that damages it breaks the order
	input uint64         // head
	trade uint64
	block int
	fail  error // of the next calls of Fills
	reads int   // calls of Fills

	// looked holds a token when Head or Fills was called since the last one was taken; may be nil.
	looked chan struct{}
}

func (h *history) Head() (inputSeq, tradeSeq uint64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.note()
	return h.input, h.trade
}

// note puts the token. The caller holds the lock.
func (h *history) note() {
	select {
	case h.looked <- struct{}{}:
	default:
	}
}

// readings counts the calls of Fills.
func (h *history) readings() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.reads
}

func (h *history) Fills(from uint64, fn func([]matcher.Fill) error) error {
	h.mu.Lock()
	h.reads++
	h.note()
	fills, block, err := h.fills, h.block, h.fail
	h.mu.Unlock()
	if err != nil {
		return err
	}
	for i := int(max(from, 1)) - 1; i < len(fills); {
		end := min((i/block+1)*block, len(fills)) // of the block that holds i
		part := slices.Clone(fills[i:end])
		if err := fn(part); err != nil {
			return err
		}
		clear(part) // fn may use the slice only until it returns
		i = end
	}
	return nil
}

// newHistory is a history of n fills.
func newHistory(random *rand.Rand, n int) *history {
	h := &history{block: 1 + random.IntN(300)}
	h.grow(random, n)
	return h
}

// grow adds n durable fills, of commands with none, one or several fills each.
func (h *history) grow(random *rand.Rand, n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	fills := slices.Clip(h.fills) // readers keep what they have
	millis := int64(1_700_000_000_000 + len(fills))
	for range n {
		if h.trade == 0 || random.IntN(3) > 0 {
			h.input += 1 + uint64(random.IntN(3))
			millis += int64(random.IntN(400_000))
		}
		h.trade++
		f := matcher.Fill{
			TradeSeq: h.trade, InputSeq: h.input, TimeMillis: millis, Px: 1 + random.Int64N(1<<40),
			OrderRef:   uint32(random.IntN(4)) * random.Uint32() % 5_000_000,
			AccountID:  1 + random.Uint32N(1<<32-1),
			SecurityID: 1 + random.Uint32N(3), Qty: 1 + random.Int32N(1<<31-1), CounterRef: random.Uint32(),
			Side: matcher.Side(random.IntN(2)), Flags: uint16(random.IntN(8)),
		}
		fills = append(fills, f)
	}
	h.fills = fills
	h.input += uint64(random.IntN(3))
}

// row is the row of a fill, made without the code under test.
func row(f matcher.Fill) store.Trade {
	t := store.Trade{
		ID: fmt.Sprintf("trd-%d", f.TradeSeq), Seq: f.TradeSeq, AccountID: f.AccountID,
		Security: tickers[f.SecurityID],
		Side:     f.Side, Quantity: int64(f.Qty), Price: f.Px, Status: store.Processing,
		SettlementDate: settlesOn(f.TimeMillis), ExecutedAt: f.TimeMillis, BookedAt: bookedAt,
		UpdatedAt: bookedAt,
		Sequence:  f.InputSeq,
	}
	if f.OrderRef != 0 {
		t.OrderID = fmt.Sprintf("ord-%d", f.OrderRef)
	}
	return t
}

// body is the message of a fill.
func body(f matcher.Fill) []byte { return bodyAs(fmt.Sprintf("trd-%d", f.TradeSeq), f) }

// bodyAs is the message of a trade under another id.
func bodyAs(id string, f matcher.Fill) []byte {
	return fmt.Appendf(nil,
		`{"id":%q,"accountId":%d,"security":%q,"side":%q,"quantity":%d,"price":%d.%06d,"timestamp":%q}`,
		id, f.AccountID, tickers[f.SecurityID], [2]string{"Buy", "Sell"}[f.Side], f.Qty,
		f.Px/1e6, f.Px%1e6,
		time.UnixMilli(f.TimeMillis).UTC().Format("2006-01-02T15:04:05.000Z"))
}

// outside is the row of the n-th booking from outside, with the terms of a fill.
func outside(n uint64, id string, f matcher.Fill) store.Trade {
	t := row(f)
	t.ID, t.Seq, t.OrderID, t.Sequence = id, store.FirstExternal+n-1, "", 0
	return t
}

// size is how much of something a test does: less with -short.
func size(full, short int) int {
	if testing.Short() {
		return short
	}
	return full
}

func rows(fills []matcher.Fill) []store.Trade {
	out := make([]store.Trade, len(fills))
	for i, f := range fills {
		out[i] = row(f)
	}
	return out
}

// options are those of a test, with small batches.
func options(h Journal, db *store.DB) Options {
	return Options{
		Journal: h, DB: db, Ticker: tickerOf, SettlementDate: settlesOn, BatchRows: 256,
		Now: func() time.Time { return time.UnixMilli(bookedAt) },
	}
}

// drain steps until there is nothing left to do.
func drain(t *testing.T, p *Projection) {
	t.Helper()
	for {
		n, err := p.Step(t.Context())
		if err != nil {
			t.Fatalf("step: %v", err)
		}
		if n == 0 {
			return
		}
	}
}

// table is every row, by trade sequence.
func table(t *testing.T, db *store.DB) []store.Trade {
	t.Helper()
	var all []store.Trade
	err := db.Read(t.Context(), func(tx *store.Tx) error {
		all = all[:0]
		return tx.TradesBySeq(0, 1<<63-1, func(r *store.Trade) error {
			all = append(all, *r)
			return nil
		})
	})
	if err != nil {
		t.Fatalf("read the table: %v", err)
	}
	return all
}

// wantTable compares the table with want, row for row.
func wantTable(t *testing.T, db *store.DB, want []store.Trade) {
	t.Helper()
	got := table(t, db)
	for i := range min(len(got), len(want)) {
		if got[i] != want[i] {
			t.Fatalf("row %d:\n got %+v\nwant %+v", i, got[i], want[i])
		}
	}
	if len(got) != len(want) {
		t.Fatalf("%d rows, want %d", len(got), len(want))
	}
}

// cursor is a cursor as the database has it.
func cursor(t *testing.T, db *store.DB, name string) (value uint64) {
	t.Helper()
	err := db.Read(t.Context(), func(tx *store.Tx) (err error) {
		value, err = tx.Cursor(name)
		return err
	})
	if err != nil {
		t.Fatalf("read the cursor: %v", err)
	}
	return value
}

func setCursor(t *testing.T, db *store.DB, name string, value uint64) {
	t.Helper()
	err := db.Write(t.Context(), func(tx *store.Tx) error { return tx.SetCursor(name, value) })
	if err != nil {
		t.Fatalf("set the cursor: %v", err)
	}
}

// wantProjected compares the result of Projected.
func wantProjected(t *testing.T, p *Projection, trade, input uint64) {
	t.Helper()
	if gotTrade, gotInput := p.Projected(); gotTrade != trade || gotInput != input {
		t.Fatalf("projected tradeSeq=%d inputSeq=%d, want %d and %d", gotTrade, gotInput, trade, input)
	}
}

// wantPhase checks the outcome of the last step.
func wantPhase(t *testing.T, p *Projection, want phase) {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.phase != want {
		t.Errorf("phase %d, want %d", p.phase, want)
	}
}

// seeded is a source of randomness; the test prints its seed when it fails.
func seeded(t *testing.T) *rand.Rand {
	t.Helper()
	seed := rand.Uint64()
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("seed %d", seed)
		}
	})
	return rand.New(rand.NewPCG(seed, 3))
}

// diary is a logger that keeps level and message of each record.
type diary struct {
	mu    sync.Mutex
	lines []string
}

func (d *diary) Write(b []byte) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lines = append(d.lines, string(b))
	return len(b), nil
}

func (d *diary) all() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.lines)
}

func (d *diary) logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(d,
		&slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return a
		}}))
}
