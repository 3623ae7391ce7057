package recon

import (
	"context"
	"errors"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"posttrade/matcher"
	"posttrade/ring/must"
	"posttrade/sidecars/settlement"
	"posttrade/sidecars/store"
	"posttrade/sidecars/store/storetest"
)

// repairRig is a settlementRig whose rows a projection with records of its batches has written.
func repairRig(t *testing.T, db *store.DB, n int) *rig {
	g := settlementRig(t, db, n)
	g.millis = g.journal.fills[0].TimeMillis + 1000
	g.rule("T+1", 1, 0, 0)
	g.bookAll(1, uint64(n))
	return g
}

// bookAll books rows in one batch, at the present time.
func (g *rig) bookAll(from, to uint64) {
	g.t.Helper()
	g.book(from, to, 1)
	g.must(g.db.Write(context.Background(), func(tx *store.Tx) error {
		if err := tx.SetCursor(cursorProjection, to); err != nil {
			return err
		}
		return tx.NoteBatch(store.Batch{FirstSeq: from, LastSeq: to, BookedAt: g.millis, Whole: true})
	}))
}

func (g *rig) repair(q RepairQuery) RepairResult {
	g.t.Helper()
	result, err := g.Repair(context.Background(), q)
	g.must(err)
	return result
}

// wantRows compares the table with rows.
func (g *rig) wantRows(want map[uint64]store.Trade) {
	g.t.Helper()
	got := g.rowsNow()
	for seq, row := range want {
		if got[seq] != row {
			g.t.Fatalf("row %d:\n got %+v\nwant %+v", seq, got[seq], row)
		}
	}
	if len(got) != len(want) {
		g.t.Fatalf("%d rows, want %d", len(got), len(want))
	}
}

// damage are edits by hand of one row, $1, all of which a repair undoes to the last column.
var damage = []string{
	"delete from trades where trade_seq = $1",
	"update trades set account_id = account_id + 1 where trade_seq = $1",
	"update trades set security = 'NONE', side = case side when 'Buy' then 'Sell' else 'Buy' end " +
		"where trade_seq = $1",
	"update trades set quantity = -5, price = 0, executed_at = 7 where trade_seq = $1",
	"update trades set order_id = 'ord-99999' where trade_seq = $1",
	"update trades set order_id = null, sequence = null where trade_seq = $1",
	"update trades set settlement_date = '9999-12-31' where trade_seq = $1",
	"update trades set booked_at = booked_at - 1000 where trade_seq = $1",
	"update trades set id = 'x' || id where trade_seq = $1",
	"update trades set trade_seq = trade_seq + 5000000 where trade_seq = $1",
	"update trades set id = 'ext-' || id where trade_seq = $1",
}

// repairRows is how many rows TestRepairMakesDamagedRowsWhole damages.
func repairRows(t *testing.T) int {
	if text := os.Getenv("POSTTRADE_TEST_REPAIR_ROWS"); text != "" {
		return must.Get(strconv.Atoi(text))(t)
	}
	return size(6000, 2500)
}

// TestRepairMakesDamagedRowsWhole damages every row in some way, some after they were settled, and
// repairs all of them. Each row is as it was before, a dry run has changed nothing, and the record
// has each row as it was found.
func TestRepairMakesDamagedRowsWhole(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		n := repairRows(t)
		all := uint64(n)
		g := repairRig(t, db, n)
		g.Recon.bounds = defaultBounds
		settledAt := g.millis + 2*dayMillis
		g.edit("update trades set status = 'Settled', updated_at = $1 where trade_seq % 2 = 0", settledAt)
		g.millis = settledAt + 1000
		g.sweep()
		g.want(tallies{cursor: all, matched: all})
		before := g.rowsNow()
		for i, sql := range damage {
			where := fmt.Sprintf("trade_seq %% %d = %d and trade_seq <= %d", len(damage), i, n)
			g.edit(strings.Replace(sql, "trade_seq = $1", where, 1))
		}
		g.swap(2, 15)
		damaged := g.rowsNow()

		begun := time.Now()
		dry := g.repair(RepairQuery{From: 1, To: all, DryRun: true})
		t.Logf("%d rows: dry run %v", n, time.Since(begun))
		if dry.Repair != 0 || dry.Checked != all || dry.Repaired != all || dry.Matched != 0 ||
			len(dry.Items) != maxRepairItems || !dry.Truncated {
			t.Errorf("dry run: %+v", dry)
		}
		g.wantRows(damaged)
		begun = time.Now()
		done := g.repair(RepairQuery{From: 1, To: all, Subject: "eve", Address: "192.0.2.1",
			Reason: "restored backup"})
		t.Logf("%d rows: repaired in %v", n, time.Since(begun))
		if done.Repair != 1 || done.Repaired != all || !reflect.DeepEqual(done.Items, dry.Items) {
			t.Errorf("repair: %+v", done)
		}
		for seq, row := range before {
			if seq%uint64(len(damage)) == 0 { // deleted, and with it the time of its settlement
				row.Status, row.UpdatedAt = store.Processing, row.BookedAt
				before[seq] = row
			}
		}
		g.wantRows(before)
		g.verifyAll()
		g.sweepOrphans()
		g.sweep()
		g.want(tallies{cursor: all, matched: all})
		g.wantRecord(1, damaged, all)

		again := g.repair(RepairQuery{From: 1, To: all})
		if again.Repair != 2 || again.Matched != all || again.Repaired != 0 || again.Items != nil {
			t.Errorf("a second repair: %+v", again)
		}
		g.wantRows(before)
	})
}

// TestActOfARepairHasItsNumber: the act is put on record before the first row changes, under the
// number that the rows as they were are kept by. One that cannot be recorded changes nothing, and
// no other repair gets its number.
func TestActOfARepairHasItsNumber(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		g := repairRig(t, db, 3)
		g.edit("update trades set price = price + 1 where trade_seq = 2")
		damaged := g.rowsNow()
		kept := func(repair uint64) (rows int) {
			g.must(db.Read(t.Context(), func(tx *store.Tx) error {
				return tx.Query("select count(*) from recon_repaired_rows where repair = $1",
					func(r *store.Row) error { rows = int(r.Int64(0)); return nil }, repair)
			}))
			return rows
		}
		full := errors.New("the record is full")
		var recorded []uint64
		q := RepairQuery{From: 1, To: 3, Record: func(repair uint64, found *RepairResult) error {
			recorded = append(recorded, repair)
			if found.Checked != 3 || found.Repaired != 1 || found.Items[0].TradeID != "trd-2" ||
				found.Repair != 0 {
				t.Errorf("found before anything changes: %+v", found)
			}
			if n := g.count("recon_repairs"); n != 0 {
				t.Errorf("%d repairs have begun before the act is on record", n)
			}
			return full
		}}
		if _, err := g.Repair(t.Context(), q); !errors.Is(err, full) {
			t.Errorf("without a record: %v", err)
		}
		g.wantRows(damaged)
		full = nil
		done := g.repair(q)
		if !slices.Equal(recorded, []uint64{1, 2}) || done.Repair != 2 || kept(1) != 0 || kept(2) != 1 {
			t.Errorf("recorded as %v, done as %d; %d and %d rows are kept", recorded, done.Repair, kept(1),
				kept(2))
		}
	})
}

// swap exchanges the trade sequences of two rows.
func (g *rig) swap(a, b uint64) {
	g.edit("update trades set trade_seq = 9000001 where trade_seq = $1", a)
	g.edit("update trades set trade_seq = $1 where trade_seq = $2", a, b)
	g.edit("update trades set trade_seq = $1 where trade_seq = 9000001", b)
}

// wantRecord checks that the record of a repair has the rows as they were found.
func (g *rig) wantRecord(repair uint64, damaged map[uint64]store.Trade, entries uint64) {
	g.t.Helper()
	seen, kept := map[uint64]bool{}, 0
	g.must(g.db.Read(context.Background(), func(tx *store.Tx) error {
		err := tx.Query("select trade_seq, id, row_seq, price, status, booked_at, order_id, sequence, "+
			"settlement_date, fields from recon_repaired_rows where repair = $1",
			func(r *store.Row) error {
				seen[uint64(r.Int64(0))] = true
				if r.Null(1) {
					return nil
				}
				kept++
				row := damaged[uint64(r.Int64(2))]
				if r.Text(1) != row.ID || r.Int64(3) != row.Price || r.Text(4) != row.Status.String() ||
					r.Int64(5) != row.BookedAt || r.Text(6) != row.OrderID ||
					uint64(r.Int64(7)) != row.Sequence || r.Text(8) != row.SettlementDate.String() ||
					r.Text(9) == "" {
					g.t.Errorf("recorded %s of trade %d, it was %+v", r.Text(1), r.Int64(0), row)
				}
				return nil
			}, repair)
		if err != nil {
			return err
		}
		return tx.Query("select subject, address, reason, checked, repaired, ended_at "+
			"from recon_repairs where repair = $1", func(r *store.Row) error {
			if r.Text(0) != "eve" || r.Text(1) != "192.0.2.1" || r.Text(2) != "restored backup" ||
				uint64(r.Int64(3)) != entries || uint64(r.Int64(4)) != entries || r.Null(5) {
				g.t.Errorf("record %q %q %q %d %d", r.Text(0), r.Text(1), r.Text(2), r.Int64(3), r.Int64(4))
			}
			return nil
		}, repair)
	}))
	if uint64(len(seen)) != entries || kept < len(damaged) {
		g.t.Errorf("%d entries and %d rows recorded, want %d and %d", len(seen), kept, entries,
			len(damaged))
	}
}

// TestRepairKeepsASettlementThatCanBe repairs rows whose settlement was edited, or is right.
func TestRepairKeepsASettlementThatCanBe(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		g := repairRig(t, db, 8)
		booked := g.millis
		due := (booked/dayMillis + 1) * dayMillis
		g.must(g.db.Write(context.Background(), func(tx *store.Tx) error {
			for _, seq := range []uint64{2, 3} {
				if err := tx.NoteForce(seq, booked+5); err != nil {
					return err
				}
			}
			return nil
		}))
		settle := "update trades set price = 1, status = 'Settled', updated_at = $1 where trade_seq = $2"
		g.edit(settle, due+5, 1)                                // by the schedule
		g.edit(settle, booked+5, 2)                             // by hand
		g.edit("delete from trades where trade_seq = 3")        // by hand, and lost
		g.edit(settle, booked+7, 4)                             // by nothing
		g.edit(settle, 3, 5)                                    // before it was booked
		g.edit("update trades set price = 1 where trade_seq=6") // not settled
		g.edit(settle, int64(1)<<60, 7)                         // long after now
		run := func(now int64, want ...int64) {
			g.millis = now
			g.repair(RepairQuery{From: 1, To: 8})
			rows := g.rowsNow()
			for i, at := range want {
				row := rows[uint64(i+1)]
				if settled := row.Status == store.Settled; settled != (at != 0) ||
					row.UpdatedAt != max(at, booked) {
					t.Errorf("at %d: row %d is %s since %d, want %d", now, i+1, row.Status, row.UpdatedAt, at)
				}
			}
			g.verifyAll()
			g.sweep()
			g.want(tallies{cursor: 8, matched: 8})
		}
		g.edit(settle, booked+7, 8)
		g.millis = due + 10
		g.repair(RepairQuery{From: 8, To: 8, DryRun: true})
		run(due+10, due+5, booked+5, booked+5, due+10, due+10, 0, due+10, due+10)
		g.edit(settle, booked+7, 4)
		run(due-10, due+5, booked+5, booked+5, 0)
	})
}

func TestRepairRefusesARangeThatCannotBe(t *testing.T) {
	storetest.EachInFull(t, func(t *testing.T, db *store.DB) {
		g := repairRig(t, db, 10)
		for _, q := range []RepairQuery{{From: 0, To: 1}, {From: 5, To: 4}, {From: 1, To: 11},
			{From: 11, To: 12}, {From: 1, To: 1 << 62}, {From: 1 << 63, To: 1<<64 - 1},
			{From: 1, To: MaxRepair + 1}} {
			if _, err := g.Repair(t.Context(), q); !errors.Is(err, ErrRange) {
				t.Errorf("%+v: %v", q, err)
			}
		}
		g.repairing.Lock()
		if _, err := g.Repair(t.Context(), RepairQuery{From: 1, To: 1}); !errors.Is(err, ErrRepairing) {
			t.Errorf("beside another one: %v", err)
		}
		g.repairing.Unlock()
		if n := g.count("recon_repairs"); n != 0 {
			t.Errorf("%d refused repairs are recorded", n)
		}
		// The rows that the projection has not reached are its own work.
		g.journal.add(g.rng, 5)
		got := g.repair(RepairQuery{From: 9, To: 15})
		if got.Checked != 2 || got.Pending != 5 || got.Matched != 2 || got.Repaired != 0 {
			t.Errorf("ahead of the projection: %+v", got)
		}
		got = g.repair(RepairQuery{From: 12, To: 15, DryRun: true})
		if got.Checked != 0 || got.Pending != 4 {
			t.Errorf("wholly ahead of the projection: %+v", got)
		}
	})
}

// TestRepairThatWasCutOffIsRepeated ends a repair between and within its transactions.
func TestRepairThatWasCutOffIsRepeated(t *testing.T) {
	storetest.EachInFull(t, func(t *testing.T, db *store.DB) {
		const n = 3*repairChunk + 5
		g := repairRig(t, db, n)
		before := g.rowsNow()
		g.edit("update trades set quantity = quantity + 1")
		for cut := 1; ; cut++ {
			ctx, cancel := context.WithCancel(t.Context())
			left := cut
			g.Recon.o.Journal = cutting{g.journal, func() {
				if left--; left == 0 {
					cancel()
				}
			}}
			got, err := g.Repair(ctx, RepairQuery{From: 1, To: n})
			cancel()
			for seq, row := range g.rowsNow() {
				if row.Quantity-before[seq].Quantity == 1 {
					row.Quantity--
				}
				if row != before[seq] {
					t.Fatalf("cut %d: row %d is neither: %+v", cut, seq, row)
				}
			}
			if err == nil {
				if got.Checked != n || cut < 3 {
					t.Errorf("cut %d: %+v", cut, got)
				}
				break
			}
			if !errors.Is(err, context.Canceled) {
				t.Fatalf("cut %d: %v", cut, err)
			}
		}
		g.wantRows(before)
		if rows, runs := g.count("recon_repaired_rows"), g.count("recon_repairs"); rows != n || runs < 3 {
			t.Errorf("%d rows of %d repairs are recorded, want %d", rows, runs, n)
		}
	})
}

// cutting is a history that calls something before and after every reading of fills.
type cutting struct {
	*fakeJournal
	look func()
}

func (c cutting) Fills(from uint64, fn func([]matcher.Fill) error) error {
	c.look()
	err := c.fakeJournal.Fills(from, fn)
	c.look()
	return err
}

// TestRepairBesideSettlement repairs rows while sweeps settle them: each row is whole and settled
// in the end, and none goes back to Processing after it was settled.
func TestRepairBesideSettlement(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		n := size(6000, 1500)
		g := repairRig(t, db, n)
		before := g.rowsNow()
		g.edit("update trades set quantity = quantity + 1, sequence = null")
		zone, err := time.LoadLocation("UTC")
		g.must(err)
		calendar, err := settlement.NewCalendar("weekdays", zone, 1)
		g.must(err)
		now := time.UnixMilli(g.millis + 30*dayMillis)
		s := settlement.New(settlement.Options{DB: db, Calendar: calendar, BatchRows: 200,
			Now: func() time.Time { return now }})
		g.millis = now.UnixMilli()
		var both sync.WaitGroup
		both.Go(func() {
			for settled := 0; settled < n && !t.Failed(); {
				moved, err := s.Sweep(t.Context())
				if settled += moved; err != nil && !errors.Is(err, store.ErrUnavailable) {
					t.Error(err)
				}
			}
		})
		for range 3 {
			if _, err := g.Repair(t.Context(), RepairQuery{From: 1, To: uint64(n)}); err != nil {
				t.Error(err)
			}
		}
		both.Wait()
		for seq, row := range before {
			row.Status, row.UpdatedAt = store.Settled, now.UnixMilli()
			before[seq] = row
		}
		g.wantRows(before)
		if got := int(s.Metrics().Swept); got != n {
			t.Errorf("%d settlements of %d rows", got, n)
		}
	})
}

// TestEditsThatTheRecordsGiveAway: the booking of a settled row, and a sequence set to NULL, in a
// database with records of its batches and of the bookings by message.
func TestEditsThatTheRecordsGiveAway(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		g := repairRig(t, db, 6)
		due := (g.millis/dayMillis + 1) * dayMillis
		g.edit("update trades set status = 'Settled', updated_at = $1", due+5)
		g.edit("insert into trades_by_message (trade_seq) values (5)")
		g.edit("update trades set sequence = null, order_id = null where trade_seq = 5")
		g.millis = due + 10
		g.sweep()
		g.want(tallies{cursor: 6, matched: 6})
		edits := []struct{ set, want string }{
			{"booked_at = booked_at - 1", "bookedAt"}, {"booked_at = booked_at + 1", "bookedAt"},
			{"sequence = null", "sequence"}, {"order_id = null", "orderId"},
			{"sequence = 12345", "orderId sequence"}, {"updated_at = booked_at - 1", "updatedAt"},
		}
		for i, e := range edits {
			g.edit("update trades set "+e.set+" where trade_seq = $1", i+1)
		}
		g.verifyAll()
		breaks := g.breaks(FieldMismatch)
		for _, b := range breaks {
			if got := strings.Join(b.Fields, " "); got != edits[b.TradeSeq-1].want {
				t.Errorf("%s: named %q", edits[b.TradeSeq-1].set, got)
			}
		}
		if len(breaks) != 6 {
			t.Fatalf("%d breaks", len(breaks))
		}
		// Both sides show the values of every column.
		f := g.journal.fills[0]
		want := Details{Status: "Settled", SettlementDate: plus(1).SettlementDate(f.TimeMillis),
			OrderID: "ord-1", Sequence: f.InputSeq, BookedMillis: g.rowsNow()[1].BookedAt + 1}
		if got := breaks[0].JournalDetails; got == nil || *got != want {
			t.Errorf("journal %+v, want %+v", got, want)
		}
		want.BookedMillis, want.UpdatedMillis = g.rowsNow()[1].BookedAt, due+5
		if got := breaks[0].ProjectionDetails; got == nil || *got != want {
			t.Errorf("projection %+v, want %+v", got, want)
		}
		if got := g.repair(RepairQuery{From: 1, To: 6}); got.Repaired != 6 {
			t.Errorf("%+v", got)
		}
		g.verifyAll()
		g.want(tallies{cursor: 6, matched: 6})
		if row := g.rowsNow()[5]; row.Sequence == 0 || row.OrderID != "ord-5" {
			t.Errorf("a row that a message booked is now %+v", row)
		}
	})
}

// TestBatchesSayWhenARowWasBooked asks for rows of batches that lie behind and over one another.
func TestBatchesSayWhenARowWasBooked(t *testing.T) {
	storetest.EachInFull(t, func(t *testing.T, db *store.DB) {
		long := store.Batch{FirstSeq: 100_000, LastSeq: 100_000 + 3*store.MaxBatch, BookedAt: 9,
			Whole: true}
		batches := []store.Batch{{FirstSeq: 1, LastSeq: 10, BookedAt: 5, Whole: true},
			{FirstSeq: 4, LastSeq: 6, BookedAt: 7, Whole: true}, {FirstSeq: 8, LastSeq: 20, BookedAt: 8},
			long}
		must.OK(t, db.Write(t.Context(), func(tx *store.Tx) error {
			for _, b := range batches {
				if err := tx.NoteBatch(b); err != nil {
					return err
				}
			}
			return nil
		}))
		for seq, want := range map[uint64][]int64{1: {5}, 3: {5}, 4: {5, 7}, 6: {5, 7}, 7: {5}, 8: {5, 8},
			10: {5, 8}, 11: nil, 20: nil, 21: nil, 99_999: nil, 100_000: {9},
			100_000 + store.MaxBatch: {9}, long.LastSeq: {9}, long.LastSeq + 1: nil} {
			book := rulebook{forces: map[uint64]int64{}, byMessage: map[uint64]bool{}}
			must.OK(t, db.Read(t.Context(), func(tx *store.Tx) error {
				return book.readPage(tx, span{seq - min(seq, 3), seq + 3})
			}))
			for at := int64(1); at < 12; at++ {
				known, booked := book.booked(seq, at)
				if differs := known && booked != at; differs != (want != nil && !slices.Contains(want, at)) {
					t.Errorf("row %d booked at %d: known %v, booked %d, want %v", seq, at, known, booked, want)
				}
			}
		}
	})
}
