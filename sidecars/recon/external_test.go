package recon

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"posttrade/ring/must"
	"posttrade/sidecars/store"
	"posttrade/sidecars/store/storetest"
)

// TestBookingFromOutsideIsSeenSinceBothSidesAreThere, and last by the reading that shows it.
func TestBookingFromOutsideIsSeenSinceBothSidesAreThere(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		g := settlementRig(t, db, 2)
		booked := g.journal.fills[0].TimeMillis + 1000
		g.millis = booked
		g.book(1, 2, 1)
		g.edit("update trades set id = 'ext-1', trade_seq = $1 where trade_seq = 2",
			int64(store.FirstExternal))
		want := func(first int64, fields ...string) {
			t.Helper()
			found := g.breaks(External)
			if len(found) != 1 || len(found[0].Fields) != len(fields) ||
				found[0].FirstSeenMillis != first || found[0].LastSeenMillis != g.millis {
				t.Errorf("%+v, want one since %d that differs in %v", found, first, fields)
			}
		}
		g.millis += 500
		want(booked)
		row := g.breaks(External)[0].Projection
		line := StatementLine{ID: "ext-1", Trade: *row}
		line.Quantity++
		must.Get(g.TakeStatement(t.Context(), []StatementLine{line}))(t)
		loaded := g.millis
		g.millis += 500
		want(loaded, "quantity")
		line.Trade = *row
		must.Get(g.TakeStatement(t.Context(), []StatementLine{line}))(t)
		if left := g.breaks(External); len(left) != 0 {
			t.Errorf("confirmed: %+v", left)
		}
	})
}

// TestTheViewShowsBookingsFromOutsideAlike compares breaks_v with what the list of breaks says: for
// a booking without a line, one for each field that differs, and a line without a booking.
func TestTheViewShowsBookingsFromOutsideAlike(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		g := settlementRig(t, db, 2)
		g.millis = g.journal.fills[0].TimeMillis + 1000
		g.book(1, 2, 1)
		g.edit("update trades set id = 'ext-1', trade_seq = $1 where trade_seq = 2",
			int64(store.FirstExternal))
		shown := func(what string) {
			t.Helper()
			begun := g.shownTime(time.Now().UnixMilli())
			var want, got []string
			for _, b := range g.breaks(External) {
				want = append(want, fmt.Sprint(b.TradeID, " ", strings.Join(b.Fields, ","), " ",
					g.shownTime(b.FirstSeenMillis)))
			}
			first, last := "first_seen_at", "last_seen_at"
			if db.Dialect() == store.Postgres {
				const utc = `to_char(%s at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')`
				first, last = fmt.Sprintf(utc, first), fmt.Sprintf(utc, last)
			}
			g.must(db.Read(t.Context(), func(tx *store.Tx) error {
				return tx.Query("select trade_id, fields, "+first+", "+last+
					" from breaks_v where class = 'EXTERNAL' order by trade_id", func(r *store.Row) error {
					got = append(got, fmt.Sprint(r.Text(0), " ", r.Text(1), " ", r.Text(2)))
					if r.Text(3) < begun { // it is seen last by this reading
						t.Errorf("%s: seen last at %s, read at %s", what, r.Text(3), begun)
					}
					return nil
				})
			}))
			if len(got) == 0 || !slices.Equal(got, want) {
				t.Errorf("%s: the view has %q, the list %q", what, got, want)
			}
		}
		shown("no line")
		row := *g.breaks(External)[0].Projection
		for name, change := range map[string]func(*Trade){
			"account":   func(t *Trade) { t.AccountID++ },
			"security":  func(t *Trade) { t.Security += "X" },
			"side":      func(t *Trade) { t.Side ^= 1 },
			"quantity":  func(t *Trade) { t.Quantity++ },
			"price":     func(t *Trade) { t.Price++ },
			"timestamp": func(t *Trade) { t.TimeMillis++ },
			"all": func(t *Trade) {
				*t = Trade{t.AccountID + 1, t.Side ^ 1, "Y", t.Quantity + 1, t.Price + 1, t.TimeMillis + 1}
			},
		} {
			g.millis += 500
			line := StatementLine{ID: "ext-1", Trade: row}
			change(&line.Trade)
			absent := StatementLine{ID: "ext-2", Trade: row}
			must.Get(g.TakeStatement(t.Context(), []StatementLine{line, absent}))(t)
			shown(name)
		}
	})
}

// shownTime is a time as both databases write it.
func (g *rig) shownTime(millis int64) string {
	return time.UnixMilli(millis).UTC().Format("2006-01-02T15:04:05.000Z")
}
