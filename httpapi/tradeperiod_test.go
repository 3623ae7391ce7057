package httpapi

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"posttrade/ring/must"
	"posttrade/sidecars/store"
)

// TestTradesOfAPeriod asks a real database for trades by when they were executed: to the
// millisecond, by day in the zone of trade dates, page by page.
func TestTradesOfAPeriod(t *testing.T) {
	zone := must.Get(time.LoadLocation("America/New_York"))(t)
	at := func(text string) int64 {
		return must.Get(time.Parse(time.RFC3339Nano, text))(t).UnixMilli()
	}
	rows := testTrades()
	for i, executed := range []string{
		"2026-03-08T04:59:59.999Z", // the last moment of March 7 in New York
		"2026-03-08T05:00:00Z",
		"2026-03-09T03:59:59.999Z", // the last one of March 8, a day of 23 hours
		"2026-03-09T04:00:00Z",
		"2026-03-09T12:00:00.001Z",
		"2026-03-09T12:00:00.002Z",
		"2026-03-08T12:00:00Z", // of a booking from outside
	} {
		rows[i].ExecutedAt = at(executed)
	}
	void := rows[1] // given up: no list has it
	void.ID, void.Seq = "void-0-trd-7", store.FirstVoid
	rows = append(rows, void)
	db := must.Get(store.Open(store.Options{Dir: t.TempDir()}))(t)
	defer db.Close()
	insertTrades(t, db, rows)
	r := newProcessorRig(t, func(d *ProcessorDeps) { d.Trades, d.Zone = StoreTrades{db}, zone })
	for _, tt := range []struct{ query, want string }{
		{"tradeDate=2026-03-07", "trd-1"},
		{"tradeDate=2026-03-08", "trd-2 trd-3 ext-A.1"},
		{"tradeDate=2026-03-09", "trd-4 trd-5 trd-6"},
		{"tradeDate=2026-03-10", ""},
		{"tradeDate=0001-01-01", ""},
		{"tradeDate=9999-12-31", ""},
		{"from=2026-03-09T12:00:00.001Z", "trd-5 trd-6"},
		{"from=2026-03-09T13:00:00.0011%2B01:00", "trd-6"},
		{"to=2026-03-08T05:00:00Z", "trd-1"},
		{"from=2026-03-08&to=2026-03-09", "trd-1 trd-2 ext-A.1"},
		{"from=2026-03-09T12:00:00.001Z&to=2026-03-09T12:00:00.001Z", ""},
		{"tradeDate=2026-03-09&from=2026-03-09T12:00:00Z&to=2026-03-09T12:00:00.002Z", "trd-5"},
		{"tradeDate=2026-03-08&to=2026-03-08T13:00:00Z", "trd-2 ext-A.1"},
		{"tradeDate=2026-03-08&from=2026-03-10", ""},
		{"tradeDate=2026-03-08&accountId=1&security=BRK.B&status=Settled&settlementDate=2026-03-04" +
			"&from=2026-01-01&to=2027-01-01&limit=5&cursor=" + cursorOf(cursorTrades, 1), "trd-2"},
		{"order=oldest", "trd-1 trd-2 trd-3 trd-4 trd-5 trd-6 ext-A.1"},
		{"order=newest", "trd-6 trd-5 trd-4 trd-3 trd-2 trd-1 ext-A.1"},
		{"order=newest&tradeDate=2026-03-08", "trd-3 trd-2 ext-A.1"},
		{"cursor=" + cursorOf(cursorNewest, 3) + "&limit=5&order=newest", "trd-2 trd-1 ext-A.1"},
	} {
		for _, limit := range []string{"", "&limit=1", "&limit=2"} {
			if strings.Contains(tt.query, "limit") {
				limit = ""
			}
			var got []string
			for cursor, more := "", true; more; {
				a := r.get("/trades?"+tt.query+limit+cursor, "admin").want(t, 200, "")
				for _, item := range a.field(t, "items").([]any) {
					got = append(got, item.(map[string]any)["id"].(string))
				}
				cursor, more = a.field(t, "nextCursor").(string)
				cursor = "&cursor=" + cursor
			}
			if !slices.Equal(got, strings.Fields(tt.want)) {
				t.Errorf("%s%s: %v, want %s", tt.query, limit, got, tt.want)
			}
		}
	}
	for _, tt := range []struct{ query, name string }{
		{"tradeDate=2026-3-8", "tradeDate"}, {"from=now", "from"}, {"to=2026-03-08T05:00", "to"},
		{"from=2026-03-09&to=2026-03-08", "from"}, {"order=desc", "order"},
		{"order=newest&cursor=" + cursorOf(cursorTrades, 3), "cursor"},
		{"cursor=" + cursorOf(cursorNewest, 3), "cursor"},
		{"format=csv&order=newest&cursor=" + cursorOf(cursorNewest, 3), "cursor"},
	} {
		a := r.get("/trades?"+tt.query, "admin").want(t, 400, CodeBadRequest)
		if want := fmt.Sprintf("parameter %q: ", tt.name); !strings.HasPrefix(
			a.field(t, "detail").(string), want) {
			t.Errorf("%s: %s", tt.query, a.body)
		}
	}
}
