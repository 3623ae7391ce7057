package httpapi

import (
	"context"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"posttrade/matcher/gate"
	"posttrade/ring/must"
	"posttrade/sidecars/accounts"
	"posttrade/sidecars/control"
	"posttrade/sidecars/securities"
	tables "posttrade/sidecars/source"
	"posttrade/sidecars/store"
)

// The types that the installation passes in implement the interfaces.
var (
	_ Accounts   = (*accounts.Accounts)(nil)
	_ Securities = (*securities.Securities)(nil)
)

// tally counts the calls behind a source's edge, and can make them fail.
type tally struct {
	calls    atomic.Int64
	timeless atomic.Int64 // calls without a deadline
	versions atomic.Int64 // calls of Version, which are not among calls
	err      atomic.Pointer[error]
	pause    func() // in every List and Snapshot; nil: none
}

func (y *tally) call(ctx context.Context) error {
	y.calls.Add(1)
	if _, ok := ctx.Deadline(); !ok {
		y.timeless.Add(1)
	}
	if err := y.err.Load(); err != nil {
		return *err
	}
	return nil
}

// version is what a table says, or the error that was asked for.
func (y *tally) version(ctx context.Context, table any) (uint64, error) {
	y.versions.Add(1)
	if err := y.err.Load(); err != nil {
		return 0, *err
	}
	return versionOf(table)(ctx)
}

// whole is call for a method that returns a whole table.
func (y *tally) whole(ctx context.Context) error {
	if y.pause != nil {
		y.pause()
	}
	return y.call(ctx)
}

// countedAccounts are accounts with a tally.
type countedAccounts struct {
	*tally
	inner Accounts
}

func (c countedAccounts) List(ctx context.Context) ([]accounts.Account, error) {
	if err := c.whole(ctx); err != nil {
		return nil, err
	}
	return c.inner.List(ctx)
}

func (c countedAccounts) Get(ctx context.Context, id uint32) (accounts.Account, bool, error) {
	if err := c.call(ctx); err != nil {
		return accounts.Account{}, false, err
	}
	return c.inner.Get(ctx, id)
}

func (c countedAccounts) Upsert(ctx context.Context, a accounts.Account) (uint64, error) {
	if err := c.call(ctx); err != nil {
		return 0, err
	}
	return c.inner.Upsert(ctx, a)
}

func (c countedAccounts) Snapshot(ctx context.Context) (control.Snapshot, error) {
	if err := c.whole(ctx); err != nil {
		return control.Snapshot{}, err
	}
	return c.inner.Snapshot(ctx)
}

// Version is that of the last change.
func (c countedAccounts) Version(ctx context.Context) (uint64, error) {
	return c.version(ctx, c.inner)
}

// countedSecurities are stocks with a tally.
type countedSecurities struct {
	*tally
	inner Securities
}

func (c countedSecurities) List(ctx context.Context) ([]securities.Stock, error) {
	if err := c.whole(ctx); err != nil {
		return nil, err
	}
	return c.inner.List(ctx)
}

func (c countedSecurities) Get(ctx context.Context, ticker string) (securities.Stock, bool, error) {
	if err := c.call(ctx); err != nil {
		return securities.Stock{}, false, err
	}
	return c.inner.Get(ctx, ticker)
}

func (c countedSecurities) Upsert(ctx context.Context, s securities.Stock) (securities.Stock,
	uint64, bool, error) {
	if err := c.call(ctx); err != nil {
		return securities.Stock{}, 0, false, err
	}
	return c.inner.Upsert(ctx, s)
}

func (c countedSecurities) Snapshot(ctx context.Context) (control.Snapshot, error) {
	if err := c.whole(ctx); err != nil {
		return control.Snapshot{}, err
	}
	return c.inner.Snapshot(ctx)
}

// Version is that of the last change.
func (c countedSecurities) Version(ctx context.Context) (uint64, error) {
	return c.version(ctx, c.inner)
}

// sourceRig is the account-service or the reference-data service over a real
// database. Account 7 and the stock AAA are there at the start.
type sourceRig struct {
	t        testing.TB
	api      api
	db       *store.DB
	address  string
	tally    *tally
	snapshot func(ctx context.Context) (control.Snapshot, error)
	list     string                          // the path of the list
	stop     func(ctx context.Context) error // of the service
	waits    waits                           // of the service
}

// auth says what a source requires tokens for.
type auth struct {
	write, snapshot bool
	verifier        *gate.Verifier // nil: of testSecret at testStart
}

func (a auth) with(t testing.TB) auth {
	if a.verifier == nil {
		clock := func() time.Time { return time.UnixMilli(testStart) }
		a.verifier = must.Get(gate.NewVerifier(testSecret, "", 0, clock))(t)
	}
	return a
}

func newSourceStore(t testing.TB) *store.DB {
	t.Helper()
	db := must.Get(store.Open(
		store.Options{Dir: t.TempDir(), BusyTimeout: 20 * time.Millisecond}))(t)
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db
}

func sourceClock() time.Time { return time.UnixMilli(testStart) }

// newAccountRig is the account-service.
func newAccountRig(t testing.TB, a auth) *sourceRig {
	t.Helper()
	a = a.with(t)
	r := &sourceRig{t: t, api: accountAPI, db: newSourceStore(t), tally: &tally{}, list: "/account/"}
	table := accounts.New(tables.Options{DB: r.db, Now: sourceClock})
	must.Get(table.Upsert(t.Context(),
		accounts.Account{ID: 7, DisplayName: "Seven", Enabled: true}))(t)
	r.snapshot = table.Snapshot
	r.serve(NewAccountService(AccountDeps{
		Accounts: countedAccounts{r.tally, table}, Verifier: a.verifier, WriteAuth: a.write,
		SnapshotAuth: a.snapshot,
		Applied:      func() uint64 { return 12 }, Durable: func() uint64 { return 11 },
		Durability: "fsync",
	}))
	return r
}

// newReferenceRig is the reference-data service.
func newReferenceRig(t testing.TB, a auth) *sourceRig {
	t.Helper()
	a = a.with(t)
	r := &sourceRig{t: t, api: referenceAPI, db: newSourceStore(t), tally: &tally{}, list: "/stocks"}
	table := securities.New(tables.Options{DB: r.db, Now: sourceClock})
	if _, _, _, err := table.Upsert(t.Context(),
		securities.Stock{Ticker: "AAA", CompanyName: "Triple A", Enabled: true}); err != nil {
		t.Fatal(err)
	}
	r.snapshot = table.Snapshot
	r.serve(NewReferenceData(ReferenceDeps{
		Securities: countedSecurities{r.tally, table}, Verifier: a.verifier, WriteAuth: a.write,
		SnapshotAuth: a.snapshot, Tick: func() int64 { return 1000 },
		State: func() string { return "degraded" }, Cluster: leading("2"),
		Projected: func() uint64 { return 10 },
		Applied:   func() uint64 { return 12 }, Durable: func() uint64 { return 11 }, Durability: "os",
	}))
	return r
}

// serve answers requests until the end of the test.
func (r *sourceRig) serve(s interface {
	RelayedService
	Serve(net.Listener) error
	Shutdown(context.Context) error
}) {
	r.t.Helper()
	ln := must.Get(net.Listen("tcp", "127.0.0.1:0"))(r.t)
	r.address = ln.Addr().String()
	r.stop, r.waits = s.Shutdown, s.base().waits
	var server sync.WaitGroup
	server.Go(func() {
		if err := s.Serve(ln); err != nil {
			r.t.Error(err)
		}
	})
	r.t.Cleanup(func() {
		ctx, stop := context.WithTimeout(context.Background(), time.Minute)
		defer stop()
		if err := s.Shutdown(ctx); err != nil {
			r.t.Errorf("shutdown: %v", err)
		}
		server.Wait()
		if n := r.tally.timeless.Load(); n > 0 {
			r.t.Errorf("%d calls had no deadline", n)
		}
	})
}

// call makes one request and checks the answer against the document.
func (r *sourceRig) call(q request) answer {
	r.t.Helper()
	a := roundTrip(r.t, r.address, q)
	r.api.checkAnswer(r.t, q.method, q.path, a)
	return a
}

// send makes a request such as "GET /account/" with a named token.
func (r *sourceRig) send(requestLine, body, token string) answer {
	r.t.Helper()
	method, path, _ := strings.Cut(requestLine, " ")
	return r.call(request{method: method, path: path, body: body, token: namedToken(testStart, token)})
}

// version is that of the last change.
func (r *sourceRig) version() uint64 {
	r.t.Helper()
	return must.Get(r.snapshot(context.Background()))(r.t).Watermark
}

// fail makes all calls behind the edge fail from now on; nil ends that.
func (r *sourceRig) fail(err error) {
	if err == nil {
		r.tally.err.Store(nil)
		return
	}
	r.tally.err.Store(&err)
}
