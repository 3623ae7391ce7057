package httpapi

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"posttrade/httpapi/client"
	"posttrade/ring/must"
	"posttrade/ring/waittest"
	"posttrade/sidecars/control"
	"posttrade/sidecars/securities"
	tables "posttrade/sidecars/source"
	"posttrade/sidecars/store"
)

// TestSourcesAskForTokensAsTheyAreTold sends every token to both services in every combination of
// their two settings. A protected endpoint refuses all but an admin's before it does anything; an
// unprotected one ignores all tokens.
func TestSourcesAskForTokensAsTheyAreTold(t *testing.T) {
	refused := refusedHeaders()
	admin := "Bearer " + sign(tokenHead, tokenBody(others))
	sent := 0
	for combination := range 4 {
		a := auth{write: combination&1 != 0, snapshot: combination&2 != 0, verifier: issuing(t)}
		for _, s := range []struct {
			rig      *sourceRig
			writes   []string
			body     string
			snapshot string
			open     []string
		}{
			{newAccountRig(t, a), []string{"POST /account/", "PUT /account/"}, goodAccountRow,
				"GET /account/control-snapshot",
				[]string{"GET /account/", "GET /account/7", "GET /health", "GET /openapi.json"}},
			{newReferenceRig(t, a), []string{"POST /stocks"}, goodStockRow, "GET /stocks/control-snapshot",
				[]string{"GET /stocks", "GET /stocks/AAA", "GET /health", "GET /openapi.json"}},
		} {
			send := func(requestLine, body, header string) answer {
				method, path, _ := strings.Cut(requestLine, " ")
				q := authorized(method, path, header)
				q.body = body
				sent++
				return s.rig.call(q)
			}
			guarded, open := map[string]string{}, map[string]string{} // the body of each request
			for _, write := range s.writes {
				map[bool]map[string]string{true: guarded, false: open}[a.write][write] = s.body
			}
			map[bool]map[string]string{true: guarded, false: open}[a.snapshot][s.snapshot] = ""
			for _, read := range s.open {
				open[read] = ""
			}
			calls, version := s.rig.tally.calls.Load(), s.rig.version()
			for request, body := range guarded {
				for name, header := range refused {
					got := send(request, body, header)
					if got.status != 401 || got.field(t, "code") != string(CodeUnauthorized) ||
						got.header.Get("WWW-Authenticate") != "Bearer" {
						t.Errorf("%+v %s, %s: %d %s", a, request, name, got.status, got.body)
					}
				}
				for name, members := range insufficient {
					header := "Bearer " + sign(tokenHead, tokenBody(members))
					if got := send(request, body, header); got.status != 403 ||
						got.field(t, "code") != string(CodeAdminRequired) {
						t.Errorf("%+v %s, a token %s: %d %s", a, request, name, got.status, got.body)
					}
					// The body is not read: neither its type nor its content.
					method, path, _ := strings.Cut(request, " ")
					q := authorized(method, path, header)
					q.header["Content-Type"] = "text/plain"
					if got := s.rig.call(q); got.status != 403 {
						t.Errorf("%+v %s as text, a token %s: %d %s", a, request, name, got.status, got.body)
					}
				}
			}
			if s.rig.tally.calls.Load() != calls || s.rig.version() != version {
				t.Errorf("%+v: acted on a refused token", a)
			}
			for request, body := range guarded { // without this check the other rows would prove nothing
				if got := send(request, body, admin); got.status != 200 {
					t.Errorf("%+v %s as admin: %d %s", a, request, got.status, got.body)
				}
			}
			for request, body := range open {
				if got := send(request, body, admin); got.status != 200 {
					t.Errorf("%+v %s as admin: %d %s", a, request, got.status, got.body)
				}
				n := 0
				for name, header := range refused {
					if n++; n > 5 {
						break // which five is as the map wants
					}
					if got := send(request, body, header); got.status != 200 {
						t.Errorf("%+v %s, %s, which is ignored: %d %s", a, request, name, got.status, got.body)
					}
				}
			}
		}
	}
	t.Logf("%d requests with %d refused and %d insufficient tokens", sent, len(refused),
		len(insufficient))
}

// TestWholeTablesAreMadeAFewAtATime delays the reading of lists and snapshots: more such requests
// wait, while single records and everything else are answered.
func TestWholeTablesAreMadeAFewAtATime(t *testing.T) {
	r := newAccountRig(t, auth{})
	const requests = 3 * maxMaking
	var now, most atomic.Int64
	entered, leave := make(chan struct{}, requests), make(chan struct{})
	r.tally.pause = func() {
		n := now.Add(1)
		for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
		}
		entered <- struct{}{}
		<-leave
		now.Add(-1)
	}
	var group sync.WaitGroup
	for i := range requests {
		group.Go(func() {
			path := "GET /account/"
			if i%2 == 0 {
				path = "GET /account/control-snapshot"
			}
			if a := r.send(path, "", ""); a.status != 200 {
				t.Errorf("%s: %d %s", path, a.status, a.body)
			}
		})
	}
	for range maxMaking {
		<-entered
	}
	for range 20 {
		r.send("GET /account/7", "", "").want(t, 200, "")
		r.send("POST /account/", goodAccountRow, "").want(t, 200, "")
		r.send("GET /health", "", "").want(t, 200, "")
	}
	close(leave)
	group.Wait()
	if n := most.Load(); n != maxMaking {
		t.Errorf("%d answers in the making at one time, want %d", n, maxMaking)
	}
}

// TestWaitingForAWholeTableEnds at its deadline.
func TestWaitingForAWholeTableEnds(t *testing.T) {
	s := newSource("account-service", sourceDeps{}, nil)
	for range maxMaking {
		s.making <- struct{}{}
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if err := s.whole(ctx, func() error { t.Error("there was no room"); return nil }); err == nil ||
		s.failed(err).status != 504 {
		t.Errorf("ended with %v", err)
	}
	<-s.making
	if err := s.whole(t.Context(), func() error { return errPlanted }); err != errPlanted ||
		len(s.making) != maxMaking-1 {
		t.Errorf("%v, %d in the making", err, len(s.making))
	}
}

// TestHundredThousandRecords reads a large universe whole, as a replica does.
func TestHundredThousandRecords(t *testing.T) {
	ctx := t.Context()
	n := 100_000
	if raceEnabled {
		n = 1000 // the database is a hundred times as slow then
	}
	r := newReferenceRig(t, auth{})
	db := newSourceStore(t)
	table := securities.New(tables.Options{DB: db, Now: sourceClock})
	all := make([]securities.Stock, n)
	for i := range all {
		all[i] = securities.Stock{Ticker: fmt.Sprintf("T%06d.%X", n-i, i%16),
			CompanyName: fmt.Sprintf("Company number %d of many", i),
			Enabled:     i%7 != 0, Halted: i%11 == 0}
	}
	if got := must.Get(table.Seed(ctx, all))(t); got != n {
		t.Fatalf("%d seeded", got)
	}
	r.serve(NewReferenceData(ReferenceDeps{
		Securities: table, Applied: func() uint64 { return 0 }, Durable: func() uint64 { return 0 },
		Durability: "fsync",
	}))
	c := client.New(client.Config{Address: r.address})
	defer c.Close()
	began := time.Now()
	text := must.Get(c.StockSnapshot(ctx))(t)
	answered := time.Since(began)
	snapshot, err := control.ParseSnapshot(control.Security, text)
	if err != nil || len(snapshot.Records) != n || snapshot.Watermark != uint64(n) {
		t.Fatalf("%d records up to %d: %v", len(snapshot.Records), snapshot.Watermark, err)
	}
	t.Logf("a snapshot of %d records, %d bytes, answered in %v and verified in %v", n, len(text),
		answered, time.Since(began)-answered)
	flags := map[string]securities.Stock{}
	for _, s := range all {
		flags[s.Ticker] = s
	}
	for i := range snapshot.Records {
		rec := &snapshot.Records[i]
		if s := flags[rec.Ticker]; s.CompanyName != rec.Name || s.Enabled != rec.Enabled ||
			s.Halted != rec.Halted {
			t.Fatalf("record %+v of %+v", *rec, s)
		}
	}
	began = time.Now()
	list := must.Get(c.Stocks(ctx))(t)
	t.Logf("the list answered and read in %v", time.Since(began))
	if len(list) != n {
		t.Fatalf("%d stocks", len(list))
	}
	for i := range list {
		if rec := &snapshot.Records[i]; list[i] != (client.Stock{
			Ticker: rec.Ticker, CompanyName: rec.Name}) {
			t.Fatalf("stock %d: %+v, in the snapshot %+v", i, list[i], *rec)
		}
	}
}

// TestTypedClientTalksToTheSources drives the client's methods over both services.
func TestTypedClientTalksToTheSources(t *testing.T) {
	ctx := t.Context()
	token := testToken(testStart, "admin")
	r := newAccountRig(t, auth{write: true, snapshot: true})
	c := client.New(client.Config{Address: r.address, Token: token})
	defer c.Close()
	off := false
	if a := must.Get(c.UpsertAccount(ctx, client.AccountRequest{ID: 9,
		DisplayName: `N"9`, Enabled: &off}))(t); a != (client.Account{ID: 9,
		DisplayName: `N"9`, Version: 2}) {
		t.Errorf("%+v", a)
	}
	if all := must.Get(c.Accounts(ctx))(t); len(all) != 2 ||
		all[0] != (client.Account{ID: 7, DisplayName: "Seven"}) {
		t.Errorf("%+v", all)
	}
	if a := must.Get(c.Account(ctx, 9))(t); a.DisplayName != `N"9` {
		t.Errorf("%+v", a)
	}
	snapshot, err := control.ParseSnapshot(control.Account, must.Get(c.AccountSnapshot(ctx))(t))
	if err != nil || len(snapshot.Records) != 2 || snapshot.Records[1].Enabled {
		t.Errorf("%+v, %v", snapshot, err)
	}
	r = newReferenceRig(t, auth{write: true, snapshot: true})
	c = client.New(client.Config{Address: r.address, Token: token})
	defer c.Close()
	version := uint64(2)
	for _, isNew := range []bool{true, false} {
		s, created, err := c.UpsertStock(ctx, client.StockRequest{Ticker: " brk.b", CompanyName: "B",
			Enabled: &off, Halted: &isNew})
		want := client.Stock{Ticker: "BRK.B", CompanyName: "B", Version: version}
		if version++; err != nil || created != isNew || s != want {
			t.Errorf("%+v, %v, %v", s, created, err)
		}
	}
	if all := must.Get(c.Stocks(ctx))(t); len(all) != 2 || all[1].Ticker != "BRK.B" {
		t.Errorf("%+v", all)
	}
	if s := must.Get(c.AfterVersion(3).Stock(ctx, "BRK.B"))(t); s.Tick == 0 {
		t.Errorf("%+v", s)
	}
	snapshot, err = control.ParseSnapshot(control.Security, must.Get(c.StockSnapshot(ctx))(t))
	if rec := snapshot.Records[1]; err != nil || rec.Enabled || rec.Halted || rec.Version != 3 {
		t.Errorf("%+v, %v", snapshot, err)
	}
	noToken := client.New(client.Config{Address: r.address})
	defer noToken.Close()
	var p *client.Problem
	if _, _, err := noToken.UpsertStock(ctx, client.StockRequest{Ticker: "X",
		CompanyName: "X"}); !errors.As(
		err, &p) || p.Status != 401 {
		t.Errorf("without a token: %v", err)
	}
}

// TestAVersionIsWaitedForWithoutTheDatabase: a read that asks for a version waits also while the
// database cannot be read, and never shows rows of which it does not know what they have.
func TestAVersionIsWaitedForWithoutTheDatabase(t *testing.T) {
	for _, r := range []*sourceRig{newAccountRig(t, auth{}), newReferenceRig(t, auth{})} {
		version := strconv.FormatUint(r.version(), 10)
		token := namedToken(testStart, "admin")
		r.fail(store.ErrUnavailable)
		before := r.tally.versions.Load()
		done := make(chan int, 1)
		go func() {
			status, _, _ := askedAt(t, r.address, token, r.list, headerMinVersion, version)
			done <- status
		}()
		waittest.Until(t, "the read looks again", func() (bool, any) {
			looks := r.tally.versions.Load() - before
			return looks > 1 || len(done) > 0, looks
		})
		r.fail(nil)
		if status := <-done; status != 200 {
			t.Errorf("%s: %d, want 200 when the database is back", r.list, status)
		}
		r.fail(store.ErrUnavailable)
		status, _, body := askedAt(t, r.address, token, r.list, headerMinVersion, version)
		if status != 503 || strings.Contains(body, string(CodeNotYet)) {
			t.Errorf("%s: %d %s, want what is wrong with the database", r.list, status, body)
		}
		r.fail(nil)
	}
}

// TestAWaitForAVersionEndsWithTheService: a stop does not wait for a version that is not there.
func TestAWaitForAVersionEndsWithTheService(t *testing.T) {
	for _, r := range []*sourceRig{newAccountRig(t, auth{}), newReferenceRig(t, auth{})} {
		version := strconv.FormatUint(r.version()+1, 10)
		before := r.tally.versions.Load()
		answer := make(chan string, 1)
		go func() {
			status, _, body := askedAt(t, r.address, namedToken(testStart, "admin"), r.list,
				headerMinVersion, version)
			answer <- fmt.Sprint(status, " ", body)
		}()
		waittest.Until(t, "the read looks again", func() (bool, any) {
			looks := r.tally.versions.Load() - before
			return looks > 1 || len(answer) > 0, looks
		})
		must.OK(t, r.stop(t.Context()))
		if got := <-answer; !strings.HasPrefix(got, "503 ") ||
			!strings.Contains(got, string(CodeStopping)) {
			t.Errorf("%s: %s, want %s", r.list, got, CodeStopping)
		}
	}
}
