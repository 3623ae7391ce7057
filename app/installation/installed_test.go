package installation

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"sync"
	"testing"
	"time"

	"posttrade/app/apptest"
	"posttrade/app/settings"
	"posttrade/httpapi/client"
	"posttrade/journal"
	"posttrade/matcher/gate"
	"posttrade/ring/must"
	"posttrade/sidecars/store"
	"posttrade/sidecars/store/storetest"
)

// installed is a whole installation in this process: every part that `posttrade serve` runs, and
// clients of its services with an admin's token.
type installed struct {
	*Installation
	t         *testing.T
	config    *settings.Config
	token     string
	orders    *client.Client // of the order-matcher
	processor *client.Client // of the trade-processor
	stop      func()
}

// quick are settings with which all post-trade work happens at once.
var quick = []string{
	"recon.blotter.capacity", "250000", "recon.poll.interval-ms", "20", "recon.grace-ms", "50",
	"recon.verify.interval-ms", "200", "settlement.sweep.interval-ms", "50",
}

// install opens an installation on data; the end of the test stops it at the latest.
func install(t *testing.T, data string, nameValue ...string) *installed {
	t.Helper()
	return installOn(t, nil, data, nameValue...)
}

// installOn is install on another disk.
func installOn(t *testing.T, onDisk func(*journal.Options), data string,
	nameValue ...string) *installed {
	t.Helper()
	c := apptest.Settled(t, append(append(anyPorts(data), quick...), nameValue...)...)
	o := EngineOptions(c)
	o.OnDisk = onDisk
	o.Fatal = func(err error) { t.Errorf("journal failed: %v", err) }
	in := must.Get(Open(t.Context(), c, o, slog.New(slog.NewTextHandler(t.Output(), nil))))(t)
	i := &installed{Installation: in, t: t, config: c}
	secret := must.Get(c.JWTSecret())(t)
	i.token = gate.Mint(secret, gate.Claims{Subject: "test", Admin: true}, "", time.Hour, time.Now())
	i.orders = client.New(client.Config{Address: i.at("order-matcher"), Token: i.token})
	if i.Beside.Load() != nil {
		i.processor = client.New(client.Config{Address: i.at("trade-processor"), Token: i.token})
	}
	i.stop = sync.OnceFunc(func() {
		i.orders.Close()
		if i.processor != nil {
			i.processor.Close()
		}
		if err := in.Stop(); err != nil {
			t.Errorf("stop: %v", err)
		}
	})
	t.Cleanup(i.stop)
	return i
}

// at is the address of a service.
func (i *installed) at(service string) string { return i.Address(service) }

// get reads a resource unparsed, with the admin's token.
func (i *installed) get(service, path string) (status int, body []byte) {
	i.t.Helper()
	request, err := http.NewRequest("GET", "http://"+i.at(service)+path, nil)
	must.OK(i.t, err)
	request.Header.Set("Authorization", "Bearer "+i.token)
	answer, err := http.DefaultClient.Do(request)
	must.OK(i.t, err)
	defer answer.Body.Close()
	if body, err = io.ReadAll(answer.Body); err != nil {
		i.t.Fatal(err)
	}
	return answer.StatusCode, body
}

// tradeSeq is the last fill that is durable.
func (i *installed) tradeSeq() uint64 {
	_, n := i.Core.Journal.Head()
	return n
}

// awaitMatched returns when reconciliation reports that every durable fill has a row that agrees,
// and no break is open.
func (i *installed) awaitMatched() {
	i.t.Helper()
	apptest.Until(i.t, "every fill is matched", func() (bool, any) {
		s, err := i.processor.ReconStatus(i.t.Context())
		if err != nil {
			return false, err
		}
		n := i.tradeSeq()
		return s.Matched == n && s.Cursor == n && s.Lag == 0 &&
			s.MissingInProjection+s.FieldMismatch+s.Orphans == 0, s
	})
}

// rows are the trades in the database, by trade sequence.
func (i *installed) rows() []store.Trade {
	i.t.Helper()
	var all []store.Trade
	err := i.Beside.Load().Db.Read(i.t.Context(), func(tx *store.Tx) error {
		all = all[:0]
		return tx.TradesBySeq(0, 1<<62, func(row *store.Trade) error {
			all = append(all, *row)
			return nil
		})
	})
	must.OK(i.t, err)
	return all
}

// databaseFlags are the settings of a fresh database of a dialect: the default
// one in data.dir, or an empty one in PostgreSQL.
func databaseFlags(t *testing.T, d store.Dialect) []string {
	t.Helper()
	if d == store.SQLite {
		return nil
	}
	return []string{"database.url", storetest.Options(t, d).URL}
}

// eachDatabase runs a test once per dialect.
func eachDatabase(t *testing.T, test func(t *testing.T, d store.Dialect)) {
	t.Helper()
	for _, d := range storetest.Dialects(t) {
		t.Run(d.String(), func(t *testing.T) { test(t, d) })
	}
}

// during runs work beside the test until the caller calls the returned function, which waits for
// the end of work.
func during(t *testing.T, work func(ctx context.Context)) (end func()) {
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		work(ctx)
	}()
	end = sync.OnceFunc(func() {
		cancel()
		<-done
	})
	t.Cleanup(end)
	return end
}
