package httpapi

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"posttrade/journal/audit"
	"posttrade/matcher"
	"posttrade/matcher/gate"
	"posttrade/matcher/note"
	"posttrade/ring/must"
	"posttrade/ring/waittest"
	"posttrade/sidecars/recon"
	"posttrade/sidecars/riskextract"
	"posttrade/sidecars/settlement"
	"posttrade/sidecars/store"
	"posttrade/sidecars/tca"
)

// The types that the installation passes in implement the interfaces.
var (
	_ Trades       = StoreTrades{}
	_ Settlement   = (*settlement.Settlement)(nil)
	_ Recon        = (*recon.Recon)(nil)
	_ TCA          = (*tca.TCA)(nil)
	_ Reporter     = (*audit.Reporter)(nil)
	_ Marks        = (*riskextract.SQLMarks)(nil)
	_ http.Handler = (*Registry)(nil)
)

const testMaster = "a master secret of the tests"

func testMasterSecret() []byte { return []byte(testMaster) }

// farAccount is the largest account id.
const farAccount = 1<<32 - 1

// testTrades are the rows of a processorRig: accounts 1, 2 and farAccount. The last one is a
// booking from outside.
func testTrades() (rows []store.Trade) {
	defer func() {
		outside := rows[len(rows)-1]
		outside.ID, outside.Seq, outside.OrderID, outside.Sequence = "ext-A.1", store.FirstExternal, "", 0
		rows = append(rows, outside)
	}()
	for i, account := range []uint32{1, 1, 2, 1, 2, farAccount} {
		seq := uint64(i + 1)
		t := store.Trade{ID: matcher.TradeID(seq), Seq: seq, AccountID: account, Security: "AAA",
			Side:     matcher.Buy,
			Quantity: 10 * int64(seq), Price: 100_250_000, SettlementDate: store.DateOf(2026, 3, 3),
			ExecutedAt: testStart + int64(seq), BookedAt: testStart + 50, UpdatedAt: testStart + 60,
			OrderID: "ord-" + itoa(seq), Sequence: 10 + seq}
		if seq%2 == 0 {
			t.Security, t.Side, t.Status, t.OrderID = "BRK.B", matcher.Sell, store.Settled, ""
			t.SettlementDate = store.DateOf(2026, 3, 4)
		}
		rows = append(rows, t)
	}
	return rows
}

// processorRig is a trade-processor in front of fakes.
type processorRig struct {
	t       testing.TB
	p       *TradeProcessor
	address string
	now     atomic.Int64
	fakes   *fakes
	log     *waittest.Log

	acted    []note.Note // of the acts that came, one at a time
	actError error       // what they end with
}

// fakes are everything behind the handlers. Every call is counted.
type fakes struct {
	calls    atomic.Int64
	timeless atomic.Int64  // calls without a deadline
	priced   atomic.Uint64 // sequence of the price history

	mu       sync.Mutex
	rows     []store.Trade
	err      error            // of everything
	late     error            // of a write that is on record
	gone     bool             // Force does not find what Trade has found
	swept    bool             // there was an orphan sweep
	last     recon.BreakQuery // asked for
	lines    []recon.StatementLine
	repaired recon.RepairQuery
	summary  tca.SummaryQuery  // asked for
	filter   store.TradeFilter // of requests
	block    chan struct{}     // OrphanSweep waits for it or for the context's end; nil: no wait
	entered  chan struct{}     // OrphanSweep has begun

	marks map[string][]store.Mark // published, by date and version
}

// call counts a call and returns the error that all calls have.
func (f *fakes) call(ctx context.Context) error {
	f.calls.Add(1)
	if _, ok := ctx.Deadline(); !ok {
		f.timeless.Add(1)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.err
}

func (f *fakes) set(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
}

func (f *fakes) Trade(ctx context.Context, id string) (store.Trade, bool, error) {
	if err := f.call(ctx); err != nil {
		return store.Trade{}, false, err
	}
	at := slices.IndexFunc(f.rows, func(t store.Trade) bool { return t.ID == id })
	if at < 0 {
		return store.Trade{}, false, nil
	}
	return f.rows[at], true, nil
}

func (f *fakes) Trades(ctx context.Context, q store.TradeFilter) (rows []store.Trade, err error) {
	if err := f.call(ctx); err != nil {
		return nil, err
	}
	f.set(func() { f.filter = q })
	for _, t := range f.rows {
		if (q.Accounts == nil || slices.Contains(q.Accounts, t.AccountID)) &&
			(q.Security == "" || q.Security == t.Security) &&
			(q.Status == nil || *q.Status == t.Status) &&
			(q.SettlementDate == nil || *q.SettlementDate == t.SettlementDate) &&
			(q.FromMillis == 0 || t.ExecutedAt >= q.FromMillis) &&
			(q.ToMillis == 0 || t.ExecutedAt < q.ToMillis) &&
			t.Seq > q.AfterSeq && (q.Limit == 0 || len(rows) < q.Limit) {
			rows = append(rows, t)
		}
	}
	return rows, nil
}

func (f *fakes) SettlementDays(ctx context.Context, accounts []uint32,
	from, to store.Date) (days []store.SettlementDay, err error) {
	if err := f.call(ctx); err != nil {
		return nil, err
	}
	for date := from; date <= to; date++ {
		day := store.SettlementDay{Date: date}
		for _, t := range f.rows {
			switch {
			case t.SettlementDate != date || accounts != nil && !slices.Contains(accounts, t.AccountID):
			case t.Status == store.Processing:
				day.Due++
			case t.ID == "trd-4":
				day.Forced++
			default:
				day.Settled++
			}
		}
		if day.Due+day.Settled+day.Forced > 0 {
			days = append(days, day)
		}
	}
	return days, nil
}

// settler is the Settlement of fakes.
type settler struct{ *fakes }

func (f settler) Force(ctx context.Context, id string) (t store.Trade, found bool, err error) {
	t, found, err = f.Trade(ctx, id)
	if f.gone || f.late != nil {
		return store.Trade{}, false, f.late
	}
	t.Status = store.Settled
	return t, found, err
}

// reconciler is the Recon of fakes.
type reconciler struct{ *fakes }

func (f reconciler) Status(ctx context.Context) (recon.Status, error) {
	if err := f.call(ctx); err != nil {
		return recon.Status{}, err
	}
	s := recon.Status{Cursor: 6, Matched: 3, MissingInProjection: 2, FieldMismatch: 1,
		Orphans: 4, Lag: 7, External: 9, ExternalUnmatched: 2}
	if f.swept {
		s.LastSweepMillis, s.LastOrphanSweepMillis = testStart, testStart+1
	}
	return s, nil
}

// Before: a command for each trade, from sequence 3 on.
func (f reconciler) Before(tradeSeq uint64) uint64 { return tradeSeq + 1 }

func (f reconciler) Breaks(ctx context.Context, q recon.BreakQuery) ([]recon.Break, string, error) {
	if err := f.call(ctx); err != nil {
		return nil, "", err
	}
	f.set(func() { f.last = q })
	switch q.AfterKey {
	case "":
	case "page2":
		return []recon.Break{}, "", nil
	default:
		return nil, "", recon.ErrKey
	}
	fill := &recon.Trade{AccountID: 1, Side: matcher.Sell, Security: "AAA", Quantity: 5,
		Price: 1_500_000, TimeMillis: testStart}
	row := &recon.Trade{AccountID: 2, Side: matcher.Buy, Security: `A"A`, Quantity: -5,
		Price: -1_500_000, TimeMillis: testStart + 1}
	return []recon.Break{
		{Class: recon.MissingInProjection, TradeID: "trd-1", TradeSeq: 1, Journal: fill,
			FirstSeenMillis: testStart, LastSeenMillis: testStart + 2},
		{Class: recon.FieldMismatch, TradeID: "trd-2", TradeSeq: 2, Fields: []string{"account", "price"},
			Journal: fill, Projection: row},
		{Class: recon.OrphanInProjection, TradeID: "trd-9\u00e9", TradeSeq: 9, Projection: row,
			ProjectionDetails: &recon.Details{Status: "Settled", SettlementDate: store.NoDate, OrderID: "x",
				Sequence: 7, BookedMillis: testStart, UpdatedMillis: testStart + 1}},
		{Class: recon.FieldMismatch, TradeID: "trd-3", TradeSeq: 3, Fields: []string{"bookedAt"},
			Journal: fill, JournalDetails: &recon.Details{SettlementDate: store.DateOf(2026, 3, 3)}},
		{Class: recon.External, TradeID: "ext-1", Projection: fill, Statement: row},
	}, "page2", nil
}

func (f reconciler) OrphanSweep(ctx context.Context) (recon.SweepResult, error) {
	if err := f.call(ctx); err != nil {
		return recon.SweepResult{}, err
	}
	if f.block != nil {
		f.entered <- struct{}{}
		select {
		case <-f.block:
		case <-ctx.Done():
			return recon.SweepResult{}, ctx.Err()
		}
	}
	f.set(func() { f.swept = true })
	return f.result(), nil
}

func (f reconciler) result() recon.SweepResult {
	return recon.SweepResult{SweptMillis: testStart, LocalTradeCount: 6, FullHistoryTradeCount: 5,
		OrphanCount: 1,
		OrphanIDs:   []string{"trd-6"}}
}

func (f reconciler) LastOrphanSweep(ctx context.Context) (recon.SweepResult, bool, error) {
	if err := f.call(ctx); err != nil || !f.swept {
		return recon.SweepResult{}, false, err
	}
	return f.result(), true, nil
}

func (f reconciler) Repair(ctx context.Context,
	q recon.RepairQuery) (r recon.RepairResult, err error) {
	if err := f.call(ctx); err != nil {
		return r, err
	}
	f.set(func() { f.repaired = q })
	if q.To > 6 {
		return r, fmt.Errorf("recon: repair: %w", recon.ErrRange)
	}
	r = recon.RepairResult{Checked: 6, Matched: 4, Repaired: 2, Pending: 1, Truncated: true}
	was := recon.RepairedRow{Trade: f.rows[1], Date: "infinity"}
	was.OrderID, was.Sequence = "nonsense", 0
	r.Items = []recon.RepairItem{{TradeID: "trd-1", Fields: []string{"missing"}, Now: f.rows[0]},
		{TradeID: "trd-2", Fields: []string{"price", "sequence"}, Was: &was, Now: f.rows[1]}}
	if q.Record != nil {
		if err := q.Record(3, &r); err != nil {
			return recon.RepairResult{}, fmt.Errorf("recon: record repair: %w", err)
		}
		if f.late != nil {
			return recon.RepairResult{}, f.late
		}
	}
	if !q.DryRun {
		r.Repair = 3
	}
	return r, nil
}

func (f reconciler) TakeStatement(ctx context.Context,
	lines []recon.StatementLine) (recon.Statement, error) {
	if err := f.call(ctx); err != nil {
		return recon.Statement{}, err
	}
	f.set(func() { f.lines = lines })
	if f.late != nil {
		return recon.Statement{}, f.late
	}
	return recon.Statement{Accepted: uint64(len(lines)), Matched: 1, Differing: 2, Missing: 3}, nil
}

// judge is the TCA of fakes.
type judge struct{ *fakes }

func (f judge) Applied() uint64 { return f.priced.Load() }

func (f judge) Report(ctx context.Context, t store.Trade) (tca.Report, error) {
	if err := f.call(ctx); err != nil {
		return tca.Report{}, err
	}
	return tca.Report{TradeID: t.ID, AccountID: t.AccountID, Security: t.Security, Side: t.Side,
		Quantity:       t.Quantity,
		ExecutionPrice: t.Price, Arrived: t.Seq%2 == 1, ArrivalPrice: 99_000_000 * int64(t.Seq%2),
		ArrivalAt: testStart,
		Twap:      99_500_000 * int64(t.Seq%2), TwapWindowStart: testStart - 300_000,
		TwapWindowEnd:   testStart,
		TwapSampleCount: 4}, nil
}

func (f judge) Summary(ctx context.Context, q tca.SummaryQuery) (tca.Summary, error) {
	if err := f.call(ctx); err != nil {
		return tca.Summary{}, err
	}
	f.set(func() { f.summary = q })
	return tca.Summary{Costs: tca.Costs{Trades: 3}, BySecurity: []tca.SecurityCosts{
		{Security: "AAA", Costs: tca.Costs{Trades: 1}}, {Security: "BRK.B", Costs: tca.Costs{Trades: 2}},
	}}, nil
}

// insertTrades puts rows into a database.
func insertTrades(t *testing.T, db *store.DB, rows []store.Trade) {
	t.Helper()
	must.OK(t, db.Write(t.Context(), func(tx *store.Tx) error {
		_, err := tx.InsertTrades(rows)
		return err
	}))
}

func newProcessorRig(t testing.TB, changes ...func(d *ProcessorDeps)) *processorRig {
	t.Helper()
	return newTunedRig(t, func(*TradeProcessor) {}, changes...)
}

// newTunedRig is newProcessorRig with a change to the service before it starts.
func newTunedRig(t testing.TB, tune func(p *TradeProcessor),
	changes ...func(d *ProcessorDeps)) *processorRig {
	t.Helper()
	r := &processorRig{t: t, fakes: &fakes{rows: testTrades()}, log: &waittest.Log{}}
	r.now.Store(testStart)
	clock := func() time.Time { return time.UnixMilli(r.now.Load()) }
	d := ProcessorDeps{
		Trades: r.fakes, Settlement: settler{r.fakes}, Recon: reconciler{r.fakes}, TCA: judge{r.fakes},
		Marks:    marker{r.fakes},
		Verifier: must.Get(gate.NewVerifier(testSecret, "", 0, clock))(t),
		Mint:     TokenMint{MasterSecret: testMasterSecret, Now: clock},
		Metrics:  NewRegistry(Metrics{}, nil),
		Applied:  func() uint64 { return 12 }, Durable: func() uint64 { return 11 },
		Projected:  func() uint64 { return 10 },
		Durability: "fsync", Logger: slog.New(slog.NewTextHandler(r.log, nil)),
	}
	d.Revocation = r.revocation()
	d.Verifier.Obey(d.Revocation.Gate)
	for _, change := range changes {
		change(&d)
	}
	r.p = NewTradeProcessor(d)
	tune(r.p)
	ln := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	r.address = ln.Addr().String()
	var server sync.WaitGroup
	server.Go(func() {
		if err := r.p.Serve(ln); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(func() {
		ctx, stop := context.WithTimeout(context.Background(), time.Minute)
		defer stop()
		if err := r.p.Shutdown(ctx); err != nil {
			t.Errorf("shutdown: %v", err)
		}
		server.Wait()
		if n := r.fakes.timeless.Load(); n > 0 {
			t.Errorf("%d calls had no deadline", n)
		}
	})
	return r
}

// call makes one request and checks the answer against the document.
func (r *processorRig) call(q request) answer {
	r.t.Helper()
	a := roundTrip(r.t, r.address, q)
	processorAPI.checkAnswer(r.t, q.method, q.path, a)
	return a
}

func (r *processorRig) get(path, token string) answer {
	r.t.Helper()
	return r.call(request{method: "GET", path: path, token: namedToken(r.now.Load(), token)})
}

func (r *processorRig) post(path, body, token string) answer {
	r.t.Helper()
	return r.call(request{method: "POST", path: path, body: body,
		token: namedToken(r.now.Load(), token)})
}

// mint asks for a token.
func (r *processorRig) mint(body string, header map[string]string) answer {
	r.t.Helper()
	all := map[string]string{headerMasterSecret: testMaster}
	for name, value := range header {
		all[name] = value
	}
	return r.call(request{method: "POST", path: "/auth/dev-token", body: body, header: all})
}

var errPlanted = errors.New("planted")
