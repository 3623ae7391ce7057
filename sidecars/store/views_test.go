package store_test

import (
	"fmt"
	"testing"
	"time"

	"posttrade/sidecars/store"
	"posttrade/sidecars/store/storetest"
)

// TestTradesAreShownWithDecimalsAndTimestamps compares every column of trades_v with a row whose
// price needs all decimals and whose times need all digits.
func TestTradesAreShownWithDecimalsAndTimestamps(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		rows := someTrades(1, 3)
		rows[0].Price, rows[0].ExecutedAt = 101_250_001, 1_700_000_000_007
		rows[1].Price, rows[1].BookedAt = 5, 999
		rows[2].UpdatedAt = 1 << 60 // no time at all: the view must still show the other rows
		insert(t, db, rows)
		text := "select id, cast(price as text), executed_at, booked_at, updated_at from " +
			"trades_v order " +
			"by trade_seq"
		if db.Dialect() == store.Postgres {
			text = "select id, price::text, " + utc("executed_at") + ", " + utc("booked_at") + ", " +
				utc("updated_at") + " from trades_v order by trade_seq"
		}
		var got []string
		query(t, db, text, func(r *store.Row) {
			got = append(got, fmt.Sprint(r.Text(0), " ", r.Text(1), " ", r.Text(2), " ", r.Text(3),
				" ", r.Null(4)))
		})
		at := func(millis int64) string {
			return time.UnixMilli(millis).UTC().Format(
				"2006-01-02T15:04:05.000Z")
		}
		price := map[store.Dialect][]string{
			store.SQLite:   {"101.250001", "5.0e-06", ""},
			store.Postgres: {"101.250001", "0.000005", ""},
		}[db.Dialect()]
		for i, want := range []string{
			rows[0].ID + " " + price[0] + " " + at(1_700_000_000_007) + " " + at(rows[0].BookedAt) +
				" false",
			rows[1].ID + " " + price[1] + " " + at(rows[1].ExecutedAt) + " " + at(999) + " false",
		} {
			if len(got) != 3 || got[i] != want {
				t.Errorf("row %d of %d: %q, want %q", i, len(got), got, want)
			}
		}
		if len(got) == 3 && got[2][len(got[2])-4:] != "true" {
			t.Errorf("an impossible time is shown as one: %q", got[2])
		}
		if n := number(t, db, "select count(*) from trades_v where price > 100 and price < 101.3"); n <
			1 {
			t.Error("a price does not compare as a number")
		}
	})
}

// utc formats a timestamp of PostgreSQL as the view of SQLite has it.
func utc(column string) string {
	return "to_char(" + column + ` at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')`
}

// TestBreaksAreShownOneByOne fills the tables of reconciliation and reads them as breaks.
func TestBreaksAreShownOneByOne(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		rows := someTrades(1, 2)
		rows[0].ID, rows[0].Seq = "ext-seen", store.FirstExternal+1
		rows[1].ID, rows[1].Seq = "ext-other", store.FirstExternal+2
		insert(t, db, rows)
		for _, sql := range []string{
			"insert into recon_gaps values (7, 9, 1700000000000, 1), (20, 29, 1700000000000, 0)",
			"insert into recon_mismatches values (3, 4097, 1, 'A', 1, 5, 2500000, 1700000000001, 5, 6)",
			"insert into recon_mismatches values (4, 2049, 1, 'A', 0, 5, 2500000, 1700000000001, 5, 6)",
			"insert into recon_orphans values ('x', 99, 1, 'A', 0, 5, 2500000, 1700000000001, 5, 6, 1)",
			"insert into recon_statement select id, account_id, security, side, quantity, price, " +
				"executed_at, 1 from trades where id = 'ext-seen'",
			"insert into recon_statement values ('ext-absent', 1, 'A', 'Buy', 5, 2500000, 1700000000001, 1)",
		} {
			storetest.Edit(t, db, sql)
		}
		var got []string
		query(t, db, "select class, trade_id, fields, side, quantity from breaks_v order by class,"+
			" trade_id",
			func(r *store.Row) {
				got = append(got, fmt.Sprint(r.Text(0), " ", r.Text(1), " ", r.Text(2), " ", r.Text(3), " ",
					r.Int64(4)))
			})
		side := map[bool]string{false: "Buy", true: "Sell"}[rows[1].Side == 1]
		want := []string{
			"EXTERNAL ext-absent  Buy 5",
			fmt.Sprint("EXTERNAL ext-other  ", side, " ", rows[1].Quantity),
			"FIELD_MISMATCH trd-3 account Sell 5",
			"FIELD_MISMATCH trd-4 account,updatedAt Buy 5",
			"MISSING_IN_PROJECTION trd-7   0", "MISSING_IN_PROJECTION trd-8   0",
			"MISSING_IN_PROJECTION trd-9   0",
			"ORPHAN_IN_PROJECTION x  Buy 5",
		}
		if fmt.Sprintf("%q", got) != fmt.Sprintf("%q", want) {
			t.Errorf("got\n%q\nwant\n%q", got, want)
		}
	})
}

// TestEveryColumnIsExplained reads the comments of PostgreSQL.
func TestEveryColumnIsExplained(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		if db.Dialect() != store.Postgres {
			return // SQLite has no comments; its migrations explain the columns
		}
		columns := 0
		query(t, db, "select c.relname || '.' || a.attname, coalesce(col_description(c.oid, "+
			"a.attnum), '') "+
			"from pg_class c join pg_attribute a on a.attrelid = c.oid "+
			"where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'v') "+
			"and a.attnum > 0 and not a.attisdropped", func(r *store.Row) {
			columns++
			if len(r.Text(1)) < 4 {
				t.Errorf("%s has no comment", r.Text(0))
			}
		})
		if columns < 100 {
			t.Errorf("only %d columns were found", columns)
		}
	})
}
