package httpapi

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"

	"posttrade/matcher"
	"posttrade/ring/must"
	"posttrade/sidecars/export"
	"posttrade/sidecars/store"
)

// readCSV returns the records of a file behind its header, and checks how many the trailer says.
func (f fetched) readCSV(t testing.TB) [][]string {
	t.Helper()
	if f.err != nil || f.status != 200 {
		t.Fatalf("%d %v: %.300s", f.status, f.err, f.body)
	}
	records, err := csv.NewReader(strings.NewReader(string(f.unpack(t)))).ReadAll()
	if err != nil || len(records) == 0 ||
		f.trailer.Get(headerExportRows) != itoa(uint64(len(records)-1)) {
		t.Fatalf("%d records, trailer %v: %v", len(records), f.trailer, err)
	}
	return records[1:]
}

// column is one column of records.
func column(records [][]string, at int) (values []string) {
	for _, r := range records {
		values = append(values, r[at])
	}
	return values
}

// parquetRows is how many rows a file of Parquet has.
func (f fetched) parquetRows(t testing.TB) int64 {
	t.Helper()
	file, err := parquet.OpenFile(strings.NewReader(string(f.body)), int64(len(f.body)))
	if f.err != nil || err != nil || f.trailer.Get(headerExportRows) != itoa(uint64(file.NumRows())) {
		t.Fatalf("%d %v %v, trailer %v", f.status, f.err, err, f.trailer)
	}
	return file.NumRows()
}

// TestTradesAsFiles over a real database, more rows than are read at once: each caller gets its
// own, with the filters of the list.
func TestTradesAsFiles(t *testing.T) {
	const n = 2*exportPage + 10
	rows := make([]store.Trade, n)
	for i := range rows {
		rows[i] = testTrades()[i%2*2] // of accounts 1 and 2
		rows[i].Seq = uint64(i + 1)
		rows[i].ID, rows[i].ExecutedAt = matcher.TradeID(rows[i].Seq), testStart+int64(i)
	}
	db := must.Get(store.Open(store.Options{Dir: t.TempDir()}))(t)
	defer db.Close()
	insertTrades(t, db, rows)
	r := newProcessorRig(t, func(d *ProcessorDeps) { d.Trades = StoreTrades{db} })
	get := func(target, token string, header map[string]string) fetched {
		t.Helper()
		f := fetchFrom(t, r.address, target, namedToken(testStart, token), header)
		processorAPI.checkAnswer(t, "GET", target, f.answer)
		return f
	}
	all := get("/trades?format=csv", "admin", nil)
	ids := column(all.readCSV(t), 0)
	for i, id := range ids {
		if len(ids) != n || id != matcher.TradeID(uint64(i+1)) {
			t.Fatalf("%d rows, %s at %d", len(ids), id, i)
		}
	}
	if all.header.Get("Content-Type") != "text/csv; charset=utf-8" ||
		all.header.Get("Content-Disposition") != `attachment; filename="trades.csv"` ||
		all.header.Get(headerAsOf) == "" {
		t.Errorf("%v", all.header)
	}
	own := column(get("/trades?format=csv", "two", nil).readCSV(t), 2)
	if len(own) != n/2 || len(slices.Compact(own)) != 1 || own[0] != "2" {
		t.Errorf("%d rows of account 2", len(own))
	}
	newest := column(get("/trades?format=csv&order=newest", "two", nil).readCSV(t), 0)
	for i, id := range newest {
		if len(newest) != n/2 || id != matcher.TradeID(uint64(n-2*i)) {
			t.Fatalf("%d rows of account 2, %s at %d", len(newest), id, i)
		}
	}
	for _, coding := range []string{"gzip", "zstd"} {
		f := get("/trades?format=csv&to=2026-03-02T10:00:00.003Z", "admin",
			map[string]string{"Accept-Encoding": coding})
		if got := column(f.readCSV(t), 0); f.header.Get("Content-Encoding") != coding ||
			!slices.Equal(got, []string{"trd-1", "trd-2", "trd-3"}) {
			t.Errorf("%s: %v %v", coding, f.header, got)
		}
	}
	file := get("/trades?format=parquet&asOf=2026-03-02", "admin",
		map[string]string{"Accept-Encoding": "gzip"})
	if file.parquetRows(t) != n || file.header.Get("Content-Encoding") != "" ||
		file.header.Get("Content-Disposition") != `attachment; filename="trades-2026-03-02.parquet"` {
		t.Errorf("%v", file.header)
	}
	if n := get("/trades?format=parquet&asOf=2026-03-01", "admin", nil).parquetRows(t); n != 0 {
		t.Errorf("%d rows before the first", n)
	}
	get("/trades?asOf=2026-03-01", "admin", nil).want(t, 200, "")
	for query, name := range map[string]string{"format=csv&limit=5": "limit",
		"format=parquet&cursor=" + cursorOf(cursorTrades, 1): "cursor", "format=CSV": "format",
		"asOf=2026-02-30": "asOf"} {
		if a := get("/trades?"+query, "admin", nil); a.status != 400 || a.field(t, "field") != name {
			t.Errorf("%s: %s", query, a.body)
		}
	}
	get("/trades?format=csv&accountId=1", "two", nil).want(t, 403, CodeNotEntitled)
	fetchFrom(t, r.address, "/trades?format=csv", "", nil).want(t, 401, CodeUnauthorized)
}

// endless are trades of which every page is full, until one fails or waits; io.EOF is their end.
type endless struct {
	*fakes
	page func(ctx context.Context, n int) error
	n    atomic.Int64
}

func (e *endless) Trades(ctx context.Context, f store.TradeFilter) ([]store.Trade, error) {
	if err := e.page(ctx, int(e.n.Add(1))); err == io.EOF {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	return make([]store.Trade, f.Limit), nil
}

// TestCutExportDoesNotLookWhole: an error has a status before the first rows and ends the
// connection behind them, as a panic does, and a stop of the service.
func TestCutExportDoesNotLookWhole(t *testing.T) {
	for name, fail := range map[string]func() error{"an error": func() error { return errPlanted },
		"a panic": func() error { panic("planted") }} {
		for at := 1; at <= 2; at++ {
			r := newProcessorRig(t, func(d *ProcessorDeps) {
				d.Trades = &endless{fakes: &fakes{}, page: func(_ context.Context, n int) error {
					if n == at {
						return fail()
					}
					return nil
				}}
			})
			for _, format := range []string{"csv", "parquet"} {
				d := r.p.Trades.(*endless)
				d.n.Store(0)
				f := fetchFrom(t, r.address, "/trades?format="+format, namedToken(testStart, "admin"), nil)
				if at == 1 {
					f.want(t, 500, CodeInternal)
				} else if f.status != 200 || !errors.Is(f.err, io.ErrUnexpectedEOF) ||
					f.trailer.Get(headerExportRows) != "" {
					t.Errorf("%s as %s: %d %v %v", name, format, f.status, f.err, f.trailer)
				}
			}
			if n := r.p.exports.Load(); n != 0 {
				t.Errorf("%s: %d exports are counted", name, n)
			}
		}
	}
}

// TestExportsEndWithTheirTokens that are taken back while they are written. A file may outlast a
// token that only expires.
func TestExportsEndWithTheirTokens(t *testing.T) {
	for name, tt := range map[string]struct {
		revoked, expired bool
	}{"revoked": {true, false}, "expired": {false, true}, "both": {true, true}} {
		t.Run(name, func(t *testing.T) {
			var r *processorRig
			r = newProcessorRig(t, func(d *ProcessorDeps) {
				g := d.Revocation.Gate
				d.Trades = &endless{fakes: &fakes{}, page: func(_ context.Context, n int) error {
					if n == 2 && tt.expired {
						r.now.Add(2 * time.Hour.Milliseconds())
					}
					if n == 2 && tt.revoked {
						g.Revoke(matcher.Revocation{Subject: matcher.HashSubject("tester"), Millis: testStart})
					}
					if n == 5 {
						return io.EOF
					}
					return nil
				}}
			})
			token := namedToken(testStart, "admin")
			f := fetchFrom(t, r.address, "/trades?format=csv", token, nil)
			if !tt.revoked {
				if rows := f.readCSV(t); len(rows) != 4*exportPage {
					t.Errorf("%d rows", len(rows))
				}
				return
			}
			if f.status != 200 || !errors.Is(f.err, io.ErrUnexpectedEOF) ||
				f.trailer.Get(headerExportRows) != "" || !strings.Contains(r.log.String(), "was taken back") {
				t.Errorf("%d %v %v, log %s", f.status, f.err, f.trailer, r.log)
			}
			if n := r.p.Trades.(*endless).n.Load(); n > 3 {
				t.Errorf("%d pages were read", n)
			}
		})
	}
}

// TestExportsAreBounded, and end with the service.
func TestExportsAreBounded(t *testing.T) {
	entered := make(chan struct{}, maxExports)
	r := newProcessorRig(t, func(d *ProcessorDeps) {
		d.Trades = &endless{fakes: &fakes{}, page: func(ctx context.Context, _ int) error {
			entered <- struct{}{}
			<-ctx.Done()
			return ctx.Err()
		}}
	})
	ended := make(chan fetched, maxExports)
	for range maxExports {
		go func() {
			ended <- fetchFrom(t, r.address, "/trades?format=csv", namedToken(testStart, "admin"), nil)
		}()
		<-entered
	}
	r.get("/trades?format=csv", "admin").want(t, 429, CodeTooManyRequests)
	if err := r.p.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
	for range maxExports {
		(<-ended).want(t, 503, CodeStopping)
	}
}

// TestExportsNeedChunks, which HTTP/1.0 does not have.
func TestExportsNeedChunks(t *testing.T) {
	r := newRig(t)
	w := r.dial()
	w.send("GET /recon/trades/blotter?format=csv HTTP/1.0\r\nHost: x\r\nAuthorization: Bearer " +
		r.token("admin") + "\r\n\r\n")
	w.receive("GET").want(t, 400, CodeBadRequest)
}

// TestBlotterAndPositionsAsFiles compares the files with the lists, now and at the end of days.
func TestBlotterAndPositionsAsFiles(t *testing.T) {
	r := newRig(t)
	r.price("AAA", "100")
	const day = 24 * 60 * 60 * 1000
	for range 3 { // a match a day: two entries
		r.order("1", "Sell", "5", "100", "").want(t, 201, "")
		r.order("2", "Buy", "5", "100", "").want(t, 201, "")
		r.now.Add(day)
		r.price("AAA", "100")
	}
	r.serve(func(d *Deps) { d.AsOf = newPast(t) })
	get := func(target string) fetched {
		t.Helper()
		f := fetchFrom(t, r.address, target, r.token("admin"), nil)
		matcherAPI.checkAnswer(t, "GET", target, f.answer)
		return f
	}
	const blotterOf = "/recon/trades/blotter"
	for query, want := range map[string]string{
		"": "trd-1 trd-2 trd-3 trd-4 trd-5 trd-6", "&sinceSeq=4": "trd-5 trd-6", "&sinceSeq=6": "",
		"&asOf=2026-03-02": "trd-1 trd-2", "&asOf=2026-03-03&sinceSeq=1": "trd-2 trd-3 trd-4",
		"&asOf=2026-03-01": "", "&asOf=2030-01-01&sinceSeq=5": "trd-6",
	} {
		if got := column(get(blotterOf+"?format=csv"+query).readCSV(t), 0); !slices.Equal(got,
			strings.Fields(want)) {
			t.Errorf("%s: %v, want %s", query, got, want)
		}
		if n := get(blotterOf + "?format=parquet" + query).parquetRows(t); n !=
			int64(len(strings.Fields(want))) {
			t.Errorf("%s: %d rows in Parquet", query, n)
		}
		var ids []string
		for _, item := range get(blotterOf+"?format=json"+query).field(t, "items").([]any) {
			ids = append(ids, item.(map[string]any)["id"].(string))
		}
		if !slices.Equal(ids, strings.Fields(want)) {
			t.Errorf("%s as JSON: %v, want %s", query, ids, want)
		}
	}
	now := "[[1 AAA -15 100] [2 AAA 15 100]]"
	if got := fmt.Sprint(get("/positions?format=csv").readCSV(t)); got != now {
		t.Errorf("positions %s, want %s", got, now)
	}
	// The past is another history here: a match of 5 and, on the day before it, nothing.
	for range 4 { // a moment that was not given back would be missed
		if got := fmt.Sprint(get("/positions?format=csv&asOf=2026-03-02&accountId=2").readCSV(t)); got !=
			"[[2 AAA 5 100]]" {
			t.Errorf("positions at the end of the day: %s", got)
		}
		f := get("/positions?format=parquet&asOf=2026-03-01")
		if n := f.parquetRows(t); n != 0 || f.header.Get(headerAsOf) != "1" {
			t.Errorf("%d positions before the day, %v", n, f.header)
		}
		a := get("/positions?asOf=2026-03-02")
		if items := a.field(t, "items").([]any); len(items) != 2 || a.header.Get(headerAsOf) != "5" {
			t.Errorf("%v %s", a.header, a.body)
		}
	}
	if a := get("/as-of/5/positions?format=csv"); a.status != 400 || a.field(t, "field") != "format" {
		t.Errorf("a file of a moment: %s", a.body)
	}
	if a := get("/recon/full-history/trades?format=csv"); a.status != 400 {
		t.Errorf("a file of the full history: %s", a.body)
	}
	r.serve(func(d *Deps) { d.ReadTimeout = 10 * time.Millisecond })
	r.recorder.hold()
	var order sync.WaitGroup
	defer order.Wait()
	defer r.recorder.letGo()
	head := r.sequence()
	order.Go(func() {
		roundTrip(t, r.address, request{method: "POST", path: "/orders",
			body: orderBody("1", "Sell", "5", "100", "")})
	})
	r.recorder.waitApplied(head + 1)
	for _, target := range []string{blotterOf, "/positions"} {
		get(target+"?format=csv").want(t, 503, CodeSlowDisk)
	}
}

// checkedWriter calls check before each Write.
type checkedWriter struct {
	io.Writer
	check func()
}

func (w checkedWriter) Write(b []byte) (int, error) {
	w.check()
	return w.Writer.Write(b)
}

// TestAFileOfThePastHoldsNoMoment while it is written: a client that reads slowly would keep one of
// the few moments from all others.
func TestAFileOfThePastHoldsNoMoment(t *testing.T) {
	past := newPast(t)
	for _, format := range []export.Format{export.CSV, export.Parquet} {
		moment := must.Get(past.At(t.Context(), 5))(t)
		held := true
		check := func() {
			if held {
				t.Errorf("%s: the moment is held while the file is written", format)
			}
		}
		f := file{format: format, begin: check, out: checkedWriter{io.Discard, check}}
		w := export.Positions(format, f.out, func(uint32) string { return "AAA" })
		must.OK(t, writeMoment(f, w, moment.Views(), nil, func() {
			held = false
			moment.Release()
		}))
		if held || w.Rows() != 2 {
			t.Errorf("%s: held %v, %d rows", format, held, w.Rows())
		}
	}
}
