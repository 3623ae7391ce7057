package settlement

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"posttrade/matcher"
	"posttrade/ring/must"
	"posttrade/sidecars/store"
	"posttrade/sidecars/store/storetest"
)

// clock is a time that only tests move.
type clock struct{ millis atomic.Int64 }

func newClock(at time.Time) *clock {
	c := &clock{}
	c.set(at)
	return c
}

func (c *clock) set(at time.Time)      { c.millis.Store(at.UnixMilli()) }
func (c *clock) Now() time.Time        { return time.UnixMilli(c.millis.Load()) }
func (c *clock) step(by time.Duration) { c.millis.Add(by.Milliseconds()) }
func noon(day string) time.Time        { return at(day + "T12:00:00") }

// size is how much of something a test does: less with -short.
func size(full, short int) int {
	if testing.Short() {
		return short
	}
	return full
}

// bounded is a context that ends a test instead of letting it hang.
func bounded(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// at is a moment in New York.
func at(text string) time.Time {
	where, err := time.LoadLocation("America/New_York")
	if err != nil {
		panic(err)
	}
	moment, err := time.ParseInLocation("2006-01-02T15:04:05", text, where)
	if err != nil {
		panic(err)
	}
	return moment
}

func newTest(t testing.TB, db *store.DB, c *clock, batchRows int) *Settlement {
	calendar := mustCalendar(t, "US-SETTLEMENT", newYork(t), 1)
	return New(Options{DB: db, Calendar: calendar, Now: c.Now, BatchRows: batchRows})
}

// aTrade is a Processing row to settle on that date, last changed at time zero.
func aTrade(seq uint64, settles store.Date) store.Trade {
	return store.Trade{
		ID: matcher.TradeID(seq), Seq: seq, AccountID: uint32(seq % 7),
		Security: fmt.Sprintf("SEC%d", seq%5),
		Side:     []matcher.Side{matcher.Buy, matcher.Sell}[seq%2], Quantity: int64(seq),
		Price:          1e6 + int64(seq),
		SettlementDate: settles, ExecutedAt: 1000, BookedAt: 2000, UpdatedAt: 2000,
		OrderID: "ord-1", Sequence: seq,
	}
}

func insert(t testing.TB, db *store.DB, trades ...store.Trade) {
	t.Helper()
	err := db.Write(bounded(t), func(tx *store.Tx) error {
		_, err := tx.InsertTrades(trades)
		return err
	})
	must.OK(t, err)
}

// rows returns the whole table by trade sequence.
func rows(t testing.TB, db *store.DB) map[uint64]store.Trade {
	t.Helper()
	all := map[uint64]store.Trade{}
	err := db.Read(bounded(t), func(tx *store.Tx) error {
		return tx.Trades(store.TradeFilter{},
			func(row *store.Trade) error { all[row.Seq] = *row; return nil })
	})
	must.OK(t, err)
	return all
}

func expectRow(t testing.TB, got, want store.Trade) {
	t.Helper()
	if got != want {
		t.Errorf("row\n got %+v\nwant %+v", got, want)
	}
}

func mustSweep(t testing.TB, s *Settlement, want int) {
	t.Helper()
	if got, err := s.Sweep(bounded(t)); err != nil || got != want {
		t.Fatalf("sweep settled %d, %v; want %d", got, err, want)
	}
}

// witness makes the database itself record every change of a status.
func witness(t testing.TB, db *store.DB) {
	t.Helper()
	storetest.Edit(t, db,
		"create table changes (id text not null, was text not null, became text not null)")
	if db.Dialect() == store.SQLite {
		storetest.Edit(t, db, `create trigger witness after update on trades begin
			insert into changes (id, was, became) values (new.id, old.status, new.status); end`)
		return
	}
	storetest.Edit(t, db, `create function note() returns trigger language plpgsql as '
		begin
		insert into changes (id, was, became) values (new.id, old.status, new.status); return new;
		end'`)
	storetest.Edit(t, db,
		"create trigger witness after update on trades for each row execute function note()")
}

// expectOneTransitionEach asserts that n trades became Settled once each, that no
// other update happened, and that nothing is left Processing.
func expectOneTransitionEach(t testing.TB, db *store.DB, n int) {
	t.Helper()
	var updates, trades, others, left int64
	err := db.Read(bounded(t), func(tx *store.Tx) error {
		return tx.Query(`select count(*), count(distinct id),
			count(case when was <> 'Processing' or became <> 'Settled' then 1 end),
			(select count(*) from trades where status <> 'Settled') from changes`, func(r *store.Row) error {
			updates, trades, others, left = r.Int64(0), r.Int64(1), r.Int64(2), r.Int64(3)
			return nil
		})
	})
	must.OK(t, err)
	if updates != int64(n) || trades != int64(n) || others != 0 || left != 0 {
		t.Errorf("%d updates of %d trades, %d of them no settlement, %d trades left; want %d, %d, 0, 0",
			updates, trades, others, left, n, n)
	}
}
