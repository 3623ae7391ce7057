package httpapi

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	"posttrade/matcher/note"
	"posttrade/ring/must"
	"posttrade/sidecars/accounts"
	tables "posttrade/sidecars/source"
	"posttrade/sidecars/store"
)

// asked makes a request with one more header.
func asked(t *testing.T, r *rig, path, name, value string) (status int, header http.Header,
	body string) {
	t.Helper()
	return askedAt(t, r.address, "", path, name, value)
}

func askedAt(t *testing.T, address, token, path, name, value string) (status int,
	header http.Header, body string) {
	t.Helper()
	request := must.Get(http.NewRequest("GET", "http://"+address+path, nil))(t)
	request.Header.Set("Authorization", "Bearer "+token)
	request.Header.Set(name, value)
	answer := must.Get(http.DefaultClient.Do(request))(t)
	defer answer.Body.Close()
	var text strings.Builder
	must.OK(t, answer.Write(&text))
	return answer.StatusCode, answer.Header, text.String()
}

// TestReadsHaveWhatTheyAreAskedFor: a read waits for its X-Min-Sequence, and every answer says a
// sequence that it has in it.
func TestReadsHaveWhatTheyAreAskedFor(t *testing.T) {
	r := newRig(t)
	seed(r)
	written := r.recorder.Durable()
	for _, path := range []string{"/orders", "/positions", "/book/AAA", "/contracts",
		"/orders/ord-1"} {
		if status, _, _ := asked(t, r, path, "X-Other", "1"); status != 200 {
			t.Errorf("%s without the header: %d", path, status)
		}
		status, header, body := asked(t, r, path, headerMinSequence, strconv.FormatUint(written, 10))
		if got := header.Get(headerAsOf); status != 200 || got != strconv.FormatUint(written, 10) {
			t.Errorf("%s: %d as of %q, want %d\n%s", path, status, got, written, body)
		}
	}
	next := strconv.FormatUint(written+1, 10)
	status, _, body := asked(t, r, "/orders", headerMinSequence, next)
	if status != 503 || !strings.Contains(body, `"code":"NOT_YET"`) {
		t.Errorf("what is not there: %d %s, want NOT_YET", status, body)
	}
	waited := make(chan int)
	go func() {
		status, _, _ := asked(t, r, "/orders", headerMinSequence, next)
		waited <- status
	}()
	r.order("1", "Buy", "1", "99", "").want(t, 201, "")
	if status := <-waited; status != 200 {
		t.Errorf("what came meanwhile: %d", status)
	}
	for _, value := range []string{"x", "-1", "01", "9223372036854775808"} {
		status, _, body := asked(t, r, "/orders", headerMinSequence, value)
		if status != 400 || !strings.Contains(body, headerMinSequence) {
			t.Errorf("%q: %d %s", value, status, body)
		}
	}
}

// TestAReadSaysWhatItShows: the full-history index and the newest head of the log end before what
// is durable. Each answer is marked with its own end, and a read waits until that has its
// X-Min-Sequence.
func TestAReadSaysWhatItShows(t *testing.T) {
	log := &fakeEvidence{}
	r := newRig(t)
	r.serve(func(d *Deps) { d.Evidence = log })
	seed(r)
	head := func(inputSeq uint64) []byte {
		return fmt.Appendf(nil, "origin\n1\n%s=\nhead %d %064d\n\n", strings.Repeat("A", 43),
			inputSeq, 0)
	}
	r.history.indexed.Store(1)
	log.set(head(1))
	admin := namedToken(testStart, "admin")
	for path, later := range map[string]func(){
		"/recon/full-history/trades": func() { r.history.indexed.Store(3) },
		"/log/checkpoint":            func() { log.set(head(3)) },
	} {
		for min, want := range map[string]int{"1": 200, "2": 503} {
			status, header, body := askedAt(t, r.address, admin, path, headerMinSequence, min)
			if status != want || header.Get(headerAsOf) != "1" ||
				want == 503 && !strings.Contains(body, `"code":"NOT_YET"`) {
				t.Errorf("%s from %s: %d as of %q, want %d as of 1\n%s", path, min, status,
					header.Get(headerAsOf), want, body)
			}
		}
		later()
		if status, header, body := askedAt(t, r.address, admin, path, headerMinSequence,
			"2"); status != 200 || header.Get(headerAsOf) != "3" {
			t.Errorf("%s: %d as of %q, want 3\n%s", path, status, header.Get(headerAsOf), body)
		}
	}
}

// TestAReadIsCheckedBeforeItWaits: without a token that may read at all, neither the header's form
// matters nor what it asks for.
func TestAReadIsCheckedBeforeItWaits(t *testing.T) {
	r := newRig(t, enforced)
	for _, path := range []string{"/orders", "/orders/ord-1", "/positions", "/credit", "/contracts",
		"/contracts/ctr-1", "/orders/ord-1/why", "/contracts/ctr-1/why", "/why?inputSeq=1",
		"/evidence/proof?inputSeq=1", "/recon/trades/blotter", "/risk/control/snapshot", "/audit",
		"/regulatory/report", "/recon/full-history/trades", "/as-of/1/orders"} {
		for _, value := range []string{"x", "9223372036854775807"} {
			if status, _, body := asked(t, r, path, headerMinSequence, value); status != 401 {
				t.Errorf("%s from %s: %d\n%s", path, value, status, body)
			}
		}
	}
	if status, _, _ := asked(t, r, "/book/AAA", headerMinSequence, "x"); status != 400 {
		t.Errorf("a read that needs no token: %d", status)
	}
	for _, s := range []struct {
		*sourceRig
		path string
	}{{newAccountRig(t, auth{snapshot: true}), "/account/control-snapshot"},
		{newReferenceRig(t, auth{snapshot: true}), "/stocks/control-snapshot"}} {
		status, _, body := askedAt(t, s.address, "", s.path, headerMinVersion, "x")
		if status != 401 {
			t.Errorf("%s: %d\n%s", s.path, status, body)
		}
	}
}

// TestCostsNeedThePriceHistory: the rows are projected up to 10, the prices are behind them.
func TestCostsNeedThePriceHistory(t *testing.T) {
	r := newProcessorRig(t)
	r.fakes.priced.Store(8)
	token := namedToken(r.now.Load(), "admin")
	for _, tt := range []struct {
		path, min string
		status    int
		asOf      string
	}{
		{"/trades", "10", 200, "10"}, {"/tca/report/trd-1", "8", 200, "8"},
		{"/tca/report/trd-1", "9", 503, "8"}, {"/tca/summary", "8", 200, "8"},
		{"/tca/summary", "9", 503, "8"},
	} {
		status, header, body := askedAt(t, r.address, token, tt.path, headerMinSequence, tt.min)
		if status != tt.status || header.Get(headerAsOf) != tt.asOf {
			t.Errorf("%s from %s: %d as of %q, want %d as of %s\n%s", tt.path, tt.min, status,
				header.Get(headerAsOf), tt.status, tt.asOf, body)
		}
	}
	r.fakes.priced.Store(12)
	if _, header, _ := askedAt(t, r.address, token, "/tca/summary", "X-Other", "1"); header.Get(
		headerAsOf) != "10" {
		t.Errorf("as of %q, the rows are of 10", header.Get(headerAsOf))
	}
}

// TestTalliesSayWhatIsCompared: six trades have been compared, which is all up to sequence 8; the
// rows are projected up to 10.
func TestTalliesSayWhatIsCompared(t *testing.T) {
	trades := uint64(7)
	r := newProcessorRig(t, func(d *ProcessorDeps) {
		d.ProjectedTrades = func() uint64 { return trades }
	})
	token := namedToken(r.now.Load(), "admin")
	for _, path := range []string{"/recon/status", "/recon/breaks"} {
		for min, want := range map[string]int{"8": 200, "9": 503} {
			status, header, body := askedAt(t, r.address, token, path, headerMinSequence, min)
			if status != want || header.Get(headerAsOf) != "8" {
				t.Errorf("%s from %s: %d as of %q, want %d as of 8\n%s", path, min, status,
					header.Get(headerAsOf), want, body)
			}
		}
	}
	trades = 6
	_, header, _ := askedAt(t, r.address, token, "/recon/breaks", headerMinSequence, "10")
	if header.Get(headerAsOf) != "10" {
		t.Errorf("all is compared: as of %q, want 10", header.Get(headerAsOf))
	}
}

// TestAReadBeforeTheFirstCommandSaysSo: a sequence or version of 0 is known like any other. One
// that is not known is left out.
func TestAReadBeforeTheFirstCommandSaysSo(t *testing.T) {
	r := newProcessorRig(t, func(d *ProcessorDeps) {
		d.Projected = func() uint64 { return 0 }
		d.ProjectedTrades = func() uint64 { return 6 } // all are compared
	})
	token := namedToken(r.now.Load(), "admin")
	for _, path := range []string{"/trades", "/trades/trd-9", "/tca/summary", "/recon/status"} {
		_, header, _ := askedAt(t, r.address, token, path, "X-Other", "1")
		if got := header.Values(headerAsOf); !slices.Equal(got, []string{"0"}) {
			t.Errorf("%s: as of %q, want 0", path, got)
		}
	}
	if _, header, _ := askedAt(t, r.address, "", "/trades", "X-Other", "1"); len(
		header.Values(headerAsOf)) != 0 {
		t.Errorf("without a token: as of %q", header.Values(headerAsOf))
	}

	empty := &sourceRig{t: t, tally: &tally{}}
	empty.serve(NewAccountService(AccountDeps{Verifier: auth{}.with(t).verifier,
		Accounts: countedAccounts{empty.tally,
			accounts.New(tables.Options{DB: newSourceStore(t), Now: sourceClock})}}))
	for err, want := range map[error][]string{nil: {"0"}, store.ErrUnavailable: nil} {
		empty.fail(err)
		status, header, _ := askedAt(t, empty.address, "", "/account/", "X-Other", "1")
		if got := header.Values(headerAsOfVersion); !slices.Equal(got, want) {
			t.Errorf("a table without a change, %v: %d as of %q, want %q", err, status, got, want)
		}
	}
}

// TestAnActSaysWhereItIsOnRecord: a client that passes the sequence on reads what it has done.
// Where nothing is done there is no record to name.
func TestAnActSaysWhereItIsOnRecord(t *testing.T) {
	r := newProcessorRig(t, func(d *ProcessorDeps) {
		d.Record = func(context.Context, *note.Note) (uint64, error) { return 41, nil }
	})
	for path, tt := range map[string]struct {
		body string
		asOf []string
	}{
		"/trades/trd-1/settlement/force": {"", []string{"41"}},
		"/trades/trd-2/settlement/force": {"", nil}, // it is settled
		"/recon/repair":                  {goodRepair, []string{"41"}},
		"/recon/statement":               {goodStatement, []string{"41"}},
		"/auth/revoke":                   {goodRevoke, []string{"77"}},
	} {
		a := r.post(path, tt.body, "admin").want(t, 200, "")
		if got := a.header.Values(headerAsOf); !slices.Equal(got, tt.asOf) {
			t.Errorf("%s: as of %q, want %q", path, got, tt.asOf)
		}
	}
	r.fakes.set(func() { r.fakes.gone = true })
	a := r.post("/trades/trd-1/settlement/force", "", "admin").want(t, 404, CodeTradeNotFound)
	if got := a.header.Get(headerAsOf); got != "41" {
		t.Errorf("an act on record whose row is gone: as of %q", got)
	}
}
