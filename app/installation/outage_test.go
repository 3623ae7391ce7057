package installation

import (
	"context"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"posttrade/app/apptest"
	"posttrade/sidecars/store"
	"posttrade/sidecars/store/storetest"
)

// awayTrades is how many fills an outage must last: all orders of these fills were answered without
// the database.
const awayTrades = 1000

// ordersFlow runs a trading day beside the test. answered counts the commands that have an answer.
func ordersFlow(t *testing.T, in *installed, seed uint64) (answered *atomic.Int64, end func()) {
	t.Helper()
	day := newTradingDay(t, in.Core, seed)
	answered = &atomic.Int64{}
	return answered, during(t, func(ctx context.Context) {
		// the followers have the lowest priority, and must still get time
		pace := time.NewTicker(2 * time.Millisecond)
		defer pace.Stop()
		for ctx.Err() == nil && !t.Failed() {
			n := 1 + day.random.IntN(12)
			day.batch(n)
			answered.Add(int64(n))
			<-pace.C
		}
	})
}

// awaitFills waits until the journal has that many more fills.
func awaitFills(t *testing.T, in *installed, more uint64) {
	t.Helper()
	apptest.Until(t, "orders go on", func() (bool, any) {
		return in.tradeSeq() >= more, in.tradeSeq()
	})
}

// wantWhole checks that after an outage nothing is missing, doubled or different: O6.
func wantWhole(t *testing.T, in *installed) {
	t.Helper()
	in.awaitMatched()
	replayJournal(t, in.Core).checkRows(t, in.rows())
	if breaks := allBreaks(t, in); len(breaks) != 0 {
		t.Errorf("%d breaks, the first %+v", len(breaks), breaks[0])
	}
	sweep, err := in.processor.OrphanSweep(t.Context())
	n := in.tradeSeq()
	if err != nil || sweep.LocalTradeCount != n || sweep.FullHistoryTradeCount != n ||
		sweep.OrphanCount != 0 {
		t.Errorf("orphan sweep of %d trades: %+v, %v", n, sweep, err)
	}
}

// TestLockedDatabaseRefusesNoOrder holds the database's write lock from a second
// connection while orders flow.
func TestLockedDatabaseRefusesNoOrder(t *testing.T) {
	eachDatabase(t, func(t *testing.T, d store.Dialect) {
		in := install(t, t.TempDir(), databaseFlags(t, d)...)
		answered, end := ordersFlow(t, in, *daySeed)
		defer end()
		awaitFills(t, in, 200)
		apptest.Until(t, "the projection has begun",
			func() (bool, any) { return in.Beside.Load().projected() > 0, nil })
		unlock := storetest.Lock(t, in.Beside.Load().Db)
		rows, before := len(in.rows()), in.tradeSeq()
		awaitFills(t, in, before+awayTrades)
		if d == store.SQLite && !testing.Short() {
			apptest.Until(t, "a writer has waited in vain", func() (bool, any) {
				ready, detail := in.Beside.Load().Db.State()
				return !ready, detail
			})
		}
		order := `{"clientOrderId":"away","accountId":1,"security":"MSFT","side":"Buy","quantity":1,` +
			`"limitPrice":1}`
		if status, body := call(t, "POST", "http://"+in.at("order-matcher")+"/orders",
			order); status != http.StatusCreated {
			t.Errorf("an order while the database is locked: %d %s", status, body)
		}
		if n := len(in.rows()); n != rows {
			t.Errorf("%d rows before and %d after %d trades: the lock locked nothing", rows, n, awayTrades)
		}
		wantReady(t, in)
		unlock()
		end()
		t.Logf("%d commands answered", answered.Load())
		wantWhole(t, in)
	})
}

// wantReady checks that orders are admitted, whatever else is missing.
func wantReady(t *testing.T, in *installed) {
	t.Helper()
	if status, body := in.get("admin", "/readyz"); status != http.StatusOK {
		t.Errorf("readyz: %d %s", status, body)
	}
}

// hasPostgres reports that there is a PostgreSQL server. Where there is none the log says so, and
// in CI storetest fails the test.
func hasPostgres(t *testing.T) bool {
	t.Helper()
	return len(storetest.Dialects(t)) > 1
}

// TestPostgresAwayRefusesNoOrder starts while PostgreSQL cannot be reached, then closes its
// connections, then lets the network drop everything, while orders flow.
func TestPostgresAwayRefusesNoOrder(t *testing.T) {
	if !hasPostgres(t) {
		return
	}
	o, network := storetest.CutOptions(t)
	network.Cut()
	in := install(t, t.TempDir(), "database.url", o.URL)
	answered, end := ordersFlow(t, in, *daySeed)
	defer end()
	awaitFills(t, in, awayTrades)
	wantReady(t, in)
	if n := in.Beside.Load().projected(); n != 0 {
		t.Errorf("projected up to %d without a database", n)
	}
	network.Heal()
	apptest.Until(t, "the projection has begun",
		func() (bool, any) { return in.Beside.Load().projected() > 0, nil })
	for name, fault := range map[string]func(){"cut": network.Cut, "swallowed": network.Hold,
		"cut again": network.Cut} {
		fault()
		before := in.tradeSeq()
		awaitFills(t, in, before+awayTrades)
		wantReady(t, in)
		network.Heal()
		at := in.Beside.Load().projected()
		apptest.Until(t, "the projection goes on after the network was "+name, func() (bool, any) {
			n := in.Beside.Load().projected()
			return n > at, n
		})
	}
	end()
	t.Logf("%d commands answered", answered.Load())
	wantWhole(t, in)
}

// TestPostgresEndsTransactionsUnderWay lets PostgreSQL end sessions in the middle of a transaction
// that writes, again and again, while orders flow.
func TestPostgresEndsTransactionsUnderWay(t *testing.T) {
	if !hasPostgres(t) {
		return
	}
	kills := 12
	if testing.Short() {
		kills = 4
	}
	o := storetest.Options(t, store.Postgres)
	in := install(t, t.TempDir(), "database.url", o.URL)
	operator := storetest.OpenWith(t, o)
	answered, end := ordersFlow(t, in, *daySeed)
	defer end()
	for killed := 0; killed < kills; {
		apptest.Until(t, "a transaction that writes is ended", func() (bool, any) {
			n := 0
			err := operator.Read(t.Context(), func(tx *store.Tx) error {
				n = 0
				return tx.Query(`select pg_terminate_backend(pid) from pg_stat_activity
					where datname = current_database()
					and pid <> pg_backend_pid() and backend_xid is not null`,
					func(*store.Row) error { n++; return nil })
			})
			killed += n
			return n > 0 && err == nil, err
		})
		at := in.Beside.Load().projected()
		apptest.Until(t, "the projection goes on", func() (bool, any) {
			n := in.Beside.Load().projected()
			return n > at, n
		})
	}
	end()
	t.Logf("%d commands answered, %d transactions ended", answered.Load(), kills)
	wantWhole(t, in)
}
