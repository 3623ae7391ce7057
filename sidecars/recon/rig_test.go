package recon

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"sync"
	"testing"
	"time"

	"posttrade/matcher"
	"posttrade/ring/must"
	"posttrade/sidecars/store"
	"posttrade/sidecars/store/storetest"
)

// fakeJournal is a history of fills, its blotter and its full-history index.
type fakeJournal struct {
	mu       sync.Mutex
	fills    []matcher.Fill // fills[i] has tradeSeq i+1
	durable  uint64         // tradeSeq; later fills are in the blotter only
	kept     int            // the blotter's capacity
	indexed  uint64         // the index's last tradeSeq
	block    int            // fills per call of fn
	read     int            // fills read from the journal
	fail     error          // the error of reading the journal or the index
	reindex  func()         // called by Reindex before it looks
	onHead   func()         // called by Head, outside the lock
	indexGap uint64         // the index leaves this fill out
}

func newJournal(kept int) *fakeJournal { return &fakeJournal{kept: kept, block: 5} }

func (j *fakeJournal) Head() (inputSeq, tradeSeq uint64) {
	if j.onHead != nil {
		j.onHead()
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	return 2 * j.durable, j.durable
}

func (j *fakeJournal) Fills(from uint64, fn func([]matcher.Fill) error) error {
	j.mu.Lock()
	fills, fail := j.fills[:j.durable], j.fail
	j.mu.Unlock()
	if fail != nil {
		return fail
	}
	for at := max(from, 1) - 1; at < uint64(len(fills)); {
		end := min(at+uint64(j.block), uint64(len(fills)))
		j.mu.Lock()
		j.read += int(end - at)
		j.mu.Unlock()
		if err := fn(slices.Clone(fills[at:end])); err != nil {
			return err
		}
		at = end
	}
	return nil
}

func (j *fakeJournal) Page(sinceSeq uint64, limit int, dst []matcher.Fill) (
	[]matcher.Fill, uint64, uint64) {
	j.mu.Lock()
	defer j.mu.Unlock()
	evicted := uint64(max(len(j.fills)-j.kept, 0))
	from := max(sinceSeq, evicted)
	if from >= uint64(len(j.fills)) {
		return dst, sinceSeq, evicted
	}
	page := j.fills[from:min(from+uint64(limit), uint64(len(j.fills)))]
	return append(dst, page...), page[len(page)-1].TradeSeq, evicted
}

func (j *fakeJournal) Reindex(context.Context) (HistoryInfo, error) {
	if j.reindex != nil {
		j.reindex()
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.fail != nil {
		return HistoryInfo{}, j.fail
	}
	j.indexed = j.durable
	return HistoryInfo{IndexedTrades: j.indexed, LastSequence: 2 * j.indexed, LastTradeSeq: j.indexed},
		nil
}

func (j *fakeJournal) Range(from, to uint64, fn func([]matcher.Fill) error) error {
	j.mu.Lock()
	fills, hole := j.fills[:j.indexed], j.indexGap
	j.mu.Unlock()
	for seq := from; seq <= min(to, uint64(len(fills))); seq++ {
		if seq == hole {
			continue
		}
		if err := fn(fills[seq-1 : seq]); err != nil {
			return err
		}
	}
	return nil
}

// add executes n fills, durable at once.
func (j *fakeJournal) add(rng *rand.Rand, n int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for range n {
		seq := uint64(len(j.fills) + 1)
		j.fills = append(j.fills, matcher.Fill{
			TradeSeq: seq, InputSeq: 2 * seq, TimeMillis: 1_700_000_000_000 + int64(seq),
			Px: 1000 * (1 + rng.Int64N(1_000_000)), AccountID: 1 + rng.Uint32N(50),
			SecurityID: 1 + rng.Uint32N(20),
			Qty:        1 + rng.Int32N(1000), Side: matcher.Side(rng.Uint32N(2)),
		})
	}
	j.durable = uint64(len(j.fills))
}

func tickerOf(securityID uint32) string { return fmt.Sprintf("T%d", securityID) }

func rowOf(f *matcher.Fill) store.Trade {
	return store.Trade{
		ID: matcher.TradeID(f.TradeSeq), Seq: f.TradeSeq, AccountID: f.AccountID,
		Security: tickerOf(f.SecurityID),
		Side:     f.Side, Quantity: int64(f.Qty), Price: f.Px, ExecutedAt: f.TimeMillis,
		BookedAt:  f.TimeMillis,
		UpdatedAt: f.TimeMillis, Sequence: f.InputSeq,
	}
}

// rig is a Recon on a database and a journal that tests control.
type rig struct {
	*Recon
	t       testing.TB
	db      *store.DB
	journal *fakeJournal
	rng     *rand.Rand
	millis  int64 // the clock
}

// smallBounds make a few entries many pages and chunks.
var smallBounds = bounds{page: 7, rows: 20, findings: 4, rechecks: 10_000, orphans: 10_000, near: 1}

func newRig(t testing.TB, db *store.DB, kept int, seed uint64) *rig {
	t.Helper()
	t.Logf("seed %d", seed)
	g := &rig{t: t, db: db, journal: newJournal(kept), rng: rand.New(rand.NewPCG(seed, 1)),
		millis: 1_800_000_000_000}
	g.restart()
	return g
}

// restart makes a Recon as a new process would.
func (g *rig) restart() {
	old := g.Recon
	g.Recon = New(Options{
		Journal: g.journal, Blotter: g.journal, History: g.journal, DB: g.db, Ticker: tickerOf,
		Now: func() time.Time { return time.UnixMilli(g.millis) },
	})
	g.Recon.bounds = smallBounds
	if old != nil {
		g.Recon.bounds = old.bounds
	}
}

func (g *rig) pass(d time.Duration) { g.millis += d.Milliseconds() }

// project writes the rows of the fills from..to that are not there.
func (g *rig) project(from, to uint64) {
	g.t.Helper()
	var rows []store.Trade
	for seq := from; seq <= to; seq++ {
		rows = append(rows, rowOf(&g.journal.fills[seq-1]))
	}
	must.OK(g.t, g.db.Write(context.Background(), func(tx *store.Tx) error {
		_, err := tx.InsertTrades(rows)
		return err
	}))
}

// insert writes a row by hand.
func (g *rig) insert(row store.Trade) {
	g.t.Helper()
	must.OK(g.t, g.db.Write(context.Background(), func(tx *store.Tx) error {
		_, err := tx.InsertTrades([]store.Trade{row})
		return err
	}))
}

// edit runs a statement by hand.
func (g *rig) edit(sql string, args ...any) {
	g.t.Helper()
	must.OK(g.t, g.db.Write(context.Background(), func(tx *store.Tx) error {
		_, err := tx.Exec(sql, args...)
		return err
	}))
}

func (g *rig) must(err error) {
	g.t.Helper()
	must.OK(g.t, err)
}

func (g *rig) sweep() {
	g.t.Helper()
	g.must(g.Sweep(context.Background()))
}

// verifyAll runs one full round of the verification.
func (g *rig) verifyAll() {
	g.t.Helper()
	for {
		g.must(g.VerifyStep(context.Background()))
		if g.books().verified == 0 {
			return
		}
	}
}

func (g *rig) sweepOrphans() SweepResult {
	g.t.Helper()
	result, err := g.OrphanSweep(context.Background())
	g.must(err)
	return result
}

func (g *rig) books() (b books) {
	g.t.Helper()
	g.must(g.db.Read(context.Background(), func(tx *store.Tx) (err error) {
		b, err = readBooks(tx)
		return err
	}))
	return b
}

// breaks reads all breaks of a class ("" = all) page by page.
func (g *rig) breaks(class Class) (all []Break) {
	g.t.Helper()
	for key := ""; ; {
		page, next, err := g.Breaks(context.Background(),
			BreakQuery{Class: class, AfterKey: key, Limit: 3})
		g.must(err)
		all = append(all, page...)
		if next == "" {
			return all
		}
		key = next
	}
}

// tallies are the numbers of a status.
type tallies struct{ cursor, matched, missing, mismatch, orphans, lag uint64 }

func (g *rig) tallies() tallies {
	g.t.Helper()
	s, err := g.Status(context.Background())
	g.must(err)
	return tallies{s.Cursor, s.Matched, s.MissingInProjection, s.FieldMismatch, s.Orphans, s.Lag}
}

func (g *rig) want(want tallies) {
	g.t.Helper()
	if got := g.tallies(); got != want {
		g.t.Fatalf("tallies %+v, want %+v", got, want)
	}
	g.check()
}

// check compares the stored tallies with the tables that they count.
func (g *rig) check() {
	g.t.Helper()
	b := g.books()
	var missing, pending, mismatches, orphans, last uint64
	g.must(g.db.Read(context.Background(), func(tx *store.Tx) error {
		err := tx.Query("select lo, hi, first_seen_at, counted from recon_gaps order by lo",
			func(r *store.Row) error {
				gap := scanGap(r)
				if gap.lo <= last || gap.hi < gap.lo || gap.hi > b.swept {
					g.t.Errorf("gap %+v after %d, swept %d", gap, last, b.swept)
				}
				last = gap.hi
				if gap.counted {
					missing += gap.count()
				} else {
					pending += gap.count()
				}
				return nil
			})
		if err != nil {
			return err
		}
		return tx.Query(
			"select (select count(*) from recon_mismatches), (select count(*) from recon_orphans)",
			func(r *store.Row) error {
				mismatches, orphans = uint64(r.Int64(0)), uint64(r.Int64(1))
				return nil
			})
	}))
	got := [...]uint64{b.missing, b.pending, b.mismatches, b.orphans,
		b.matched() + b.missing + b.mismatches}
	want := [...]uint64{missing, pending, mismatches, orphans, b.classified()}
	if got != want {
		g.t.Fatalf("books say missing, pending, mismatches, orphans, sum = %v, the tables %v", got, want)
	}
}

// plain is a break without times, for comparing.
func plain(b Break) Break {
	b.FirstSeenMillis, b.LastSeenMillis = 0, 0
	b.JournalDetails, b.ProjectionDetails = nil, nil
	return b
}

// full is an obviously right comparison of everything with everything: every row and every fill,
// one by one.
func (g *rig) full() (breaks []Break, matched uint64) {
	g.t.Helper()
	rows := map[string]store.Trade{}
	g.must(g.db.Read(context.Background(), func(tx *store.Tx) error {
		return tx.Trades(store.TradeFilter{}, func(t *store.Trade) error {
			rows[t.ID] = *t
			return nil
		})
	}))
	var missing, differing, orphans []Break
	for i := range g.journal.fills[:g.journal.durable] {
		fill := &g.journal.fills[i]
		want := rowOf(fill)
		journal := tradeOfFill(fill, tickerOf(fill.SecurityID))
		row, found := rows[want.ID]
		if !found || row.Seq != fill.TradeSeq {
			missing = append(missing, Break{
				Class: MissingInProjection, TradeID: want.ID, TradeSeq: fill.TradeSeq, Journal: &journal,
			})
			continue
		}
		delete(rows, want.ID)
		var fields []string
		for _, f := range []struct {
			name string
			same bool
		}{
			{"account", row.AccountID == want.AccountID}, {"security", row.Security == want.Security},
			{"side", row.Side == want.Side}, {"quantity", row.Quantity == want.Quantity},
			{"price", row.Price == want.Price}, {"timestamp", row.ExecutedAt == want.ExecutedAt},
			{"sequence", row.Sequence == want.Sequence},
		} {
			if !f.same {
				fields = append(fields, f.name)
			}
		}
		if fields == nil {
			matched++
			continue
		}
		projection := tradeOf(&row)
		differing = append(differing, Break{
			Class: FieldMismatch, TradeID: want.ID, TradeSeq: fill.TradeSeq, Fields: fields,
			Journal: &journal, Projection: &projection,
		})
	}
	for _, row := range rows {
		projection := tradeOf(&row)
		orphans = append(orphans, Break{
			Class: OrphanInProjection, TradeID: row.ID, TradeSeq: row.Seq, Projection: &projection,
		})
	}
	return slices.Concat(missing, differing, orphans), matched
}

// sameBreaks compares breaks without times; orphans may come in any order.
func sameBreaks(t testing.TB, got, want []Break) {
	t.Helper()
	order := func(list []Break) []Break {
		out := make([]Break, 0, len(list))
		for _, b := range list {
			out = append(out, plain(b))
		}
		slices.SortFunc(out, func(a, b Break) int {
			return cmp.Or(
				slices.Index(classes[:], a.Class)-slices.Index(classes[:],
					b.Class), cmp.Compare(a.TradeID, b.TradeID))
		})
		return out
	}
	a, b := order(got), order(want)
	for i := range max(len(a), len(b)) {
		if i >= len(a) || i >= len(b) || !reflect.DeepEqual(a[i], b[i]) {
			t.Fatalf("break %d of %d (want %d) is %s, want %s", i, len(a), len(b), shown(a, i), shown(b, i))
		}
	}
}

func shown(list []Break, i int) string {
	if i >= len(list) {
		return "none"
	}
	b := list[i]
	return fmt.Sprintf("%s %s seq=%d fields=%v journal=%+v projection=%+v",
		b.Class, b.TradeID, b.TradeSeq, b.Fields, b.Journal, b.Projection)
}

// each runs test on every dialect, with -short on one, with a rig that has a blotter of the given
// capacity.
func each(t *testing.T, kept int, seed uint64, test func(t *testing.T, g *rig)) {
	t.Helper()
	storetest.EachInFull(t, func(t *testing.T, db *store.DB) { test(t, newRig(t, db, kept, seed)) })
}

// size is how much of something a test does: less with -short.
func size(full, short int) int {
	if testing.Short() {
		return short
	}
	return full
}

var errFake = errors.New("a fake failure")
