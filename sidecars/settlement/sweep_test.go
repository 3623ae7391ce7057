package settlement

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"posttrade/matcher"
	"posttrade/ring/must"
	"posttrade/sidecars/store"
	"posttrade/sidecars/store/storetest"
)

func TestSweepSettlesWhatIsDueAndNothingElse(t *testing.T) {
	storetest.EachInFull(t, func(t *testing.T, db *store.DB) {
		before := map[uint64]store.Trade{}
		for seq, day := range []string{"2026-03-05", "2026-03-06", "2026-03-06", "2026-03-09",
			"2026-03-10", "2027-01-04"} {
			trade := aTrade(uint64(seq+1), mustDate(t, day))
			before[trade.Seq] = trade
			insert(t, db, trade)
		}
		c := newClock(at("2026-03-06T00:00:00").Add(-time.Millisecond)) // still the 5th in New York
		s := newTest(t, db, c, 0)
		steps := []struct {
			clock   time.Time
			settles []uint64
		}{
			{c.Now(), []uint64{1}},
			{at("2026-03-06T00:00:00"), []uint64{2, 3}},
			{at("2026-03-08T23:59:59"), nil},            // the night the clocks go forward
			{at("2026-03-10T12:00:00"), []uint64{4, 5}}, // one day was missed
			{at("2026-03-01T12:00:00"), nil},            // stepped back
			{at("2027-01-04T00:00:00"), []uint64{6}},    // the last one
			{time.UnixMilli(1 << 62), nil}, {time.UnixMilli(-1 << 62), nil},
		}
		total := 0
		for _, step := range steps {
			c.set(step.clock)
			mustSweep(t, s, len(step.settles))
			for _, seq := range step.settles {
				row := before[seq]
				row.Status, row.UpdatedAt = store.Settled, step.clock.UnixMilli()
				before[seq] = row
			}
			for seq, row := range rows(t, db) {
				expectRow(t, row, before[seq])
			}
			total += len(step.settles)
			want := Metrics{Swept: uint64(total), LastSweepMillis: step.clock.UnixMilli()}
			if got := s.Metrics(); got != want {
				t.Fatalf("at %s: metrics %+v, want %+v", step.clock, got, want)
			}
		}
	})
}

// A trade that was given up is in no accepted history, and does not settle. A booking from outside
// does.
func TestSweepLeavesGivenUpTrades(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		day := mustDate(t, "2026-03-06")
		trade, outside, void := aTrade(1, day), aTrade(2, day), aTrade(3, day-1)
		outside.ID, outside.Seq = "ext-1", store.FirstExternal
		void.ID, void.Seq = "void-0-trd-2", store.FirstVoid
		insert(t, db, trade, outside, void)
		s := newTest(t, db, newClock(noon("2026-03-06")), 1)
		mustSweep(t, s, 2)
		if got := s.Metrics().Swept; got != 2 {
			t.Errorf("counted %d, want 2", got)
		}
		expectRow(t, rows(t, db)[void.Seq], void)
	})
}

// The clock is stepped back during a sweep: a trade that is no longer due stays.
func TestClockSteppedBackWithinASweep(t *testing.T) {
	storetest.EachInFull(t, func(t *testing.T, db *store.DB) {
		for seq := range uint64(6) {
			insert(t, db, aTrade(seq+1, mustDate(t, "2026-03-06")))
		}
		c := newClock(noon("2026-03-06"))
		s := newTest(t, db, c, 2)
		s.write = func(ctx context.Context, fn func(*store.Tx) error) error {
			defer c.step(-6*time.Hour - time.Second) // 06:00, then the evening of the 5th
			return db.Write(ctx, fn)
		}
		mustSweep(t, s, 4)
		c.set(noon("2026-03-06"))
		mustSweep(t, s, 2)
	})
}

func TestClockAtTheEndOfTimeSettlesEverything(t *testing.T) {
	storetest.EachInFull(t, func(t *testing.T, db *store.DB) {
		last := mustCalendar(t, "US-SETTLEMENT", newYork(t), MaxTPlus).SettlementDate(1 << 62)
		insert(t, db, aTrade(1, last))
		c := newClock(last.Time().Add(-12 * time.Hour))
		s := newTest(t, db, c, 0)
		mustSweep(t, s, 0)
		c.set(time.UnixMilli(1 << 62))
		mustSweep(t, s, 1)
	})
}

func TestSweepWorksInBoundedTransactions(t *testing.T) {
	storetest.EachInFull(t, func(t *testing.T, db *store.DB) {
		c := newClock(noon("2026-03-06"))
		s := newTest(t, db, c, 10)
		var sizes []int64 // number of rows that each transaction of the sweep settled
		s.write = func(ctx context.Context, fn func(*store.Tx) error) error {
			return db.Write(ctx, func(tx *store.Tx) error {
				before := settledIn(t, tx)
				err := fn(tx)
				sizes = append(sizes, settledIn(t, tx)-before)
				return err
			})
		}
		next := uint64(1)
		for _, due := range []int{0, 1, 9, 10, 11, 100} {
			for range due {
				insert(t, db, aTrade(next, mustDate(t, "2026-03-05")-store.Date(next%300)))
				next++
			}
			sizes = nil
			mustSweep(t, s, due)
			if len(sizes) != due/10+1 {
				t.Errorf("%d due trades took transactions of %v", due, sizes)
			}
			for _, size := range sizes {
				if size > 10 {
					t.Errorf("a transaction of %d rows, at most 10 are allowed", size)
				}
			}
		}
	})
}

func settledIn(t *testing.T, tx *store.Tx) (n int64) {
	err := tx.Query("select count(*) from trades where status = 'Settled'",
		func(r *store.Row) error { n = r.Int64(0); return nil })
	if err != nil {
		t.Error(err)
	}
	return n
}

// A batch must not read the whole table: its cost is that of its own rows. Rows that were given up
// are not in its index, or it would read past them each time.
func TestSweepUsesTheIndexes(t *testing.T) {
	storetest.EachInFull(t, func(t *testing.T, db *store.DB) {
		n := size(20_000, 5_000)
		trades := make([]store.Trade, n)
		for i := range trades {
			trades[i] = aTrade(uint64(i+1), store.Date(20_000+i/10))
			if i%4 > 0 {
				trades[i].Status = store.Settled
			}
			if i%3 == 0 {
				trades[i].ID, trades[i].Seq = fmt.Sprintf("void-0-trd-%d", i+1), store.FirstVoid+uint64(i)
			}
		}
		insert(t, db, trades...)
		var plan, index strings.Builder
		err := db.Write(bounded(t), func(tx *store.Tx) error {
			sql, column := "explain query plan "+sweepSQLite, 3
			if db.Dialect() == store.Postgres {
				sql, column = "explain "+sweepPostgres, 0
			}
			err := tx.Query(sql, func(r *store.Row) error {
				plan.WriteString(r.Text(column) + "\n")
				return nil
			}, int64(1), store.Date(21_000), 1000)
			if err != nil {
				return err
			}
			sql = "select sql from sqlite_schema where name = 'trades_to_settle'"
			if db.Dialect() == store.Postgres {
				sql = "select pg_get_indexdef('trades_to_settle'::regclass)"
			}
			return tx.Query(sql, func(r *store.Row) error {
				index.WriteString(r.Text(0))
				return nil
			})
		})
		must.OK(t, err)
		got := plan.String()
		if strings.Contains(got, "Seq Scan") || strings.Contains(got, "SCAN") ||
			!strings.Contains(got, "trades_to_settle") {
			t.Errorf("plan:\n%s", got)
		}
		if !strings.Contains(index.String(), fmt.Sprint(store.FirstVoid)) {
			t.Errorf("the index has rows that were given up: %s", index.String())
		}
	})
}

func TestUpdatedAtNeverFalls(t *testing.T) {
	storetest.EachInFull(t, func(t *testing.T, db *store.DB) {
		c := newClock(noon("2026-03-06"))
		later := c.Now().UnixMilli() + 5000 // booked by a clock that was ahead
		for seq := range uint64(4) {
			trade := aTrade(seq+1, mustDate(t, "2026-03-05"))
			if seq < 2 {
				trade.UpdatedAt = later
			}
			insert(t, db, trade)
		}
		s := newTest(t, db, c, 0)
		for seq, want := range map[uint64]int64{1: later, 3: c.Now().UnixMilli()} {
			if row, _, err := s.Force(bounded(t), matcher.TradeID(seq)); err != nil ||
				row.UpdatedAt != want {
				t.Errorf("force of %d: %+v, %v; want updated at %d", seq, row, err, want)
			}
		}
		mustSweep(t, s, 2)
		for seq, want := range map[uint64]int64{2: later, 4: c.Now().UnixMilli()} {
			if row := rows(t, db)[seq]; row.UpdatedAt != want {
				t.Errorf("sweep of %d: %+v; want updated at %d", seq, row, want)
			}
		}
	})
}

func TestForce(t *testing.T) {
	storetest.EachInFull(t, func(t *testing.T, db *store.DB) {
		trade := aTrade(41, mustDate(t, "2030-01-04")) // years ahead
		other := aTrade(4, mustDate(t, "2030-01-04"))
		insert(t, db, trade, other)
		c := newClock(noon("2026-03-06"))
		s := newTest(t, db, c, 0)
		for _, unknown := range []string{"", "trd-", "trd-4 ", "trd-042", "trd-42", "TRD-41",
			"trd-41\x00", "trd-\xff",
			"trd-41' or '1'='1", "%", strings.Repeat("9", 100_000)} {
			if row, found, err := s.Force(bounded(t), unknown); found || err != nil ||
				row != (store.Trade{}) {
				t.Errorf("force of %.20q: %+v, %v, %v", unknown, row, found, err)
			}
		}
		trade.Status, trade.UpdatedAt = store.Settled, c.Now().UnixMilli()
		for range 3 { // the second and the third change nothing
			row, found, err := s.Force(bounded(t), "trd-41")
			if !found || err != nil {
				t.Fatalf("force: %v, %v", found, err)
			}
			expectRow(t, row, trade)
			expectRow(t, rows(t, db)[41], trade)
			expectRow(t, rows(t, db)[4], other)
			if s.Metrics().Forced != 1 || s.Metrics().Swept != 0 {
				t.Errorf("forced %d, swept %d; want 1, 0", s.Metrics().Forced, s.Metrics().Swept)
			}
			c.step(time.Hour)
		}
		c.set(noon("2030-01-04"))
		mustSweep(t, s, 1) // the other one
		expectRow(t, rows(t, db)[41], trade)
		if got, want := s.Metrics(), (Metrics{Swept: 1, Forced: 1,
			LastSweepMillis: c.Now().UnixMilli()}); got != want {
			t.Errorf("metrics %+v, want %+v", got, want)
		}
	})
}

func TestLockedDatabaseIsAnErrorAndLaterNone(t *testing.T) {
	for _, dialect := range storetest.Dialects(t) {
		t.Run(dialect.String(), func(t *testing.T) {
			o := storetest.Options(t, dialect)
			o.BusyTimeout = 50 * time.Millisecond
			db := storetest.OpenWith(t, o)
			insert(t, db, aTrade(1, mustDate(t, "2026-03-06")), aTrade(2, mustDate(t, "2026-03-07")))
			s := newTest(t, db, newClock(noon("2026-03-06")), 0)
			unlock := storetest.Lock(t, db)
			if n, err := s.Sweep(bounded(t)); n != 0 || !errors.Is(err, store.ErrUnavailable) {
				t.Errorf("sweep of a locked database: %d, %v", n, err)
			}
			if _, found, err := s.Force(bounded(t), "trd-2"); found ||
				!errors.Is(err, store.ErrUnavailable) {
				t.Errorf("force in a locked database: %v, %v", found, err)
			}
			if got, want := s.Metrics(), (Metrics{Failures: 1}); got != want {
				t.Errorf("metrics %+v, want %+v", got, want)
			}
			unlock()
			mustSweep(t, s, 1)
			if _, found, err := s.Force(bounded(t), "trd-2"); !found || err != nil {
				t.Errorf("force: %v, %v", found, err)
			}
		})
	}
}

func TestSweepEndsWithItsContext(t *testing.T) {
	db := storetest.Open(t, store.SQLite)
	s := newTest(t, db, newClock(noon("2026-03-06")), 0)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if n, err := s.Sweep(ctx); n != 0 || !errors.Is(err, context.Canceled) {
		t.Errorf("sweep: %d, %v", n, err)
	}
	s.turn <- struct{}{} // another sweep is under way
	if n, err := s.Sweep(ctx); n != 0 || !errors.Is(err, context.Canceled) {
		t.Errorf("sweep that waits for its turn: %d, %v", n, err)
	}
	if err := s.Run(ctx); err != nil {
		t.Errorf("run: %v", err)
	}
	if got := s.Metrics(); got != (Metrics{}) {
		t.Errorf("metrics %+v, want none", got)
	}
}
