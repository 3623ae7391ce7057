package httpapi

import (
	"context"
	"errors"
	"io"
	"slices"
	"time"

	"posttrade/journal"
	"posttrade/matcher"
	"posttrade/sidecars/export"
	"posttrade/sidecars/store"
)

const (
	// headerExportRows is how many rows a file has: a trailer, known at its end.
	headerExportRows = "X-Export-Rows"
	// maxExports is the number of files that a service makes at one time.
	maxExports = 4
	// exportPage is how many rows of SQL are read at once. Between two pages nothing is held in the
	// database, so that a slow reader holds up neither it nor its clean-up.
	exportPage = 4096
)

var problemExports = problem{status: 429, code: CodeTooManyRequests,
	detail: "as many exports as may be are being made", notSequenced: true}

// errNotDurable reports rows that did not become durable in time.
var errNotDurable = errors.New("httpapi: what would be exported did not become durable in time")

// exportQuery is the part of a list's query that asks for a file, or for the end of a day.
//
// A list reads it beside its own parameters; without one of its parameters it changes nothing.
type exportQuery struct {
	format export.Format // 0: JSON, a page at a time
	day    *store.Date   // asOf; nil: now
	paged  string        // a parameter that asks for a page; "": none does
}

// read takes one parameter of the list. ok is that of the list for a parameter that is its own.
//
// format=json is the list itself. It keeps limit and cursor only to refuse them beside a format.
func (e *exportQuery) read(name string, value []byte, ok bool) bool {
	switch name {
	case "format":
		e.format, ok = export.ParseFormat(string(value))
		ok = ok || string(value) == "json"
	case "asOf":
		day, err := store.ParseDate(string(value))
		e.day, ok = &day, err == nil
	case "limit", "cursor":
		e.paged = name
	}
	return ok
}

// check refuses parameters that do not go together.
func (e *exportQuery) check() problem {
	if e.format != 0 && e.paged != "" {
		return badParameter(e.paged, "a file has every row")
	}
	return problem{}
}

// until is the end of the day of asOf in a zone, in epoch milliseconds; 0: it was not asked for.
func (e *exportQuery) until(zone *time.Location) (millis int64) {
	if e.day == nil {
		return 0
	}
	_, millis = dayIn(zone, *e.day)
	return max(millis, 1) // 0 would be no bound, and nothing is older
}

// dayIn is when a day begins and ends in a zone, in epoch milliseconds.
//
// A day has 23 or 25 hours where the clocks change.
func dayIn(zone *time.Location, day store.Date) (from, to int64) {
	y, m, d := day.Time().Date()
	return time.Date(y, m, d, 0, 0, 0, 0, zone).UnixMilli(),
		time.Date(y, m, d+1, 0, 0, 0, 0, zone).UnixMilli()
}

// file is one export on its way.
type file struct {
	out    io.Writer
	format export.Format
	// begin is called when the first rows are there: from then on no error has a status code. It may
	// be called again.
	begin func()
}

// sendFile answers v with a table as a file. write writes it, on a goroutine of its own: it must
// not use v. done is called when it has ended, or did not begin.
//
// At most maxExports files are made at a time, each on a thread of low priority. A panic of write
// cuts the answer. X-Export-Rows is a trailer: a file that is cut has none.
func (s *service) sendFile(v *serviceRequest, e *exportQuery, table string,
	write func(ctx context.Context, f file) (rows uint64, err error), done func()) problem {
	if !v.ctx.Request.Header.IsHTTP11() {
		done()
		return problemChunks
	}
	if s.exports.Add(1) > maxExports {
		s.exports.Add(-1)
		done()
		return problemExports
	}
	var rows uint64
	p := &streamedAnswer{what: "export of " + table, coding: codingNone,
		trailers: []string{headerExportRows}}
	if e.format == export.CSV { // Parquet is compressed within
		p.coding = acceptedCoding(&v.ctx.Request.Header)
	}
	p.trailer = func(set func(name, value string)) { set(headerExportRows, itoa(rows)) }
	p.done = func() { s.exports.Add(-1); done() }
	p.run = func(ctx context.Context, out io.Writer) error {
		return journal.Politely(journal.Background, func() (err error) {
			rows, err = write(ctx, file{out, e.format, p.begin})
			return err
		})
	}
	if err := s.sendStream(v, p, e.format.MediaType()); errors.Is(err, errNotDurable) {
		return problemSlowDisk
	} else if err != nil {
		return s.failed(err)
	}
	name := table
	if e.day != nil {
		name += "-" + e.day.String()
	}
	header := &v.ctx.Response.Header
	header.Set("Content-Disposition", `attachment; filename="`+name+"."+e.format.String()+`"`)
	header.Set("Vary", "Accept-Encoding")
	return problem{}
}

// exportTrades answers GET /trades with a file of all rows that a filter selects, as they are when
// they are read.
//
// Each page is a snapshot of its own: rows that come or change meanwhile are in the file or not, by
// their trade sequence.
func (q *inquiry) exportTrades(filter store.TradeFilter, e *exportQuery) problem {
	trades := q.p.Trades
	filter.Limit = exportPage
	return q.p.sendFile(&q.serviceRequest, e, "trades",
		func(ctx context.Context, f file) (uint64, error) {
			w := export.Trades(f.format, f.out)
			for {
				page, err := pageOfTrades(ctx, trades, filter)
				if err != nil {
					return 0, err
				}
				f.begin()
				if err := w.Write(page); err != nil {
					return 0, err
				}
				if len(page) < exportPage {
					return w.Rows(), w.Close()
				}
				filter.GoOn(page[len(page)-1].Seq)
			}
		}, func() {})
}

// pageOfTrades reads one page. Its time-out is the longest of a request: a page of a large table
// may wait for the disk.
func pageOfTrades(ctx context.Context, trades Trades, f store.TradeFilter) ([]store.Trade, error) {
	ctx, cancel := context.WithTimeout(ctx, lastingTimeout)
	defer cancel()
	return trades.Trades(ctx, f)
}

// exportBlotter answers GET /recon/trades/blotter with a file of what the blotter holds behind
// since, up to the head as it is now.
//
// The head is taken when the request comes, and everything up to it is durable before the first
// row. Fills that the blotter drops meanwhile are not in the file.
func (x *exchange) exportBlotter(since uint64, e *exportQuery) problem {
	m, head, until := x.m, x.m.Seen(), e.until(x.m.Zone)
	return m.sendFile(&x.serviceRequest, e, "blotter",
		func(_ context.Context, f file) (uint64, error) {
			if m.Durable.Durable() < head && m.Durable.WaitDurable(head, m.ReadTimeout) != nil {
				return 0, errNotDurable
			}
			f.begin()
			w := export.Fills(f.format, f.out, m.Gate.Ticker)
			var page []matcher.Fill
			for more := true; more; {
				page, since, _ = m.Blotter.Page(since, maxPage, page[:0])
				more = len(page) > 0 && page[len(page)-1].InputSeq <= head
				page = slices.DeleteFunc(page, func(fill matcher.Fill) bool {
					return fill.InputSeq > head || until != 0 && fill.TimeMillis >= until
				})
				if err := w.Write(page); err != nil {
					return 0, err
				}
			}
			return w.Rows(), w.Close()
		}, func() {})
}
