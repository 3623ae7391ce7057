package installation

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"posttrade/app/apptest"
	"posttrade/httpapi/client"
	"posttrade/journal/backup"
	"posttrade/matcher"
	"posttrade/ring/must"
	"posttrade/sidecars/store"
)

// TestBackupHasWhatOnlySQLHas: bookings from outside, the statement and the records of repairs come
// back from a chain of backups, each once, also when the first start after the restore is killed
// behind its last step but one, and when an older restore has left them out. The rows of trades
// have the settlement dates that they had, although other rules are in force at each start.
func TestBackupHasWhatOnlySQLHas(t *testing.T) {
	eachDatabase(t, func(t *testing.T, d store.Dialect) {
		data, nights := t.TempDir(), t.TempDir()
		days := 365
		on := func(data string, database []string) *installed { // which settles nothing by itself
			days--
			return install(t, data, append(slices.Clone(database), "settlement.sweep.interval-ms",
				"86400000", "settlement.t-plus-days", fmt.Sprint(days))...)
		}
		original := databaseFlags(t, d)
		in := on(data, original)
		in.announced(data)
		night := func(n int) string { return filepath.Join(nights, fmt.Sprint("night", n)) }
		in.trade(1)
		first := in.Core.Journal.Answered()
		in.trade(4)
		in.awaitMatched()
		outside(in, "ext-a", "ext-b")
		mend(in, 2, 4)
		program(t, "backup", night(1), "--data.dir="+data)
		before := ofSQLAlone(in)
		middle := in.Core.Journal.Answered()
		in.stop()
		in = on(data, original)
		in.announced(data)
		in.trade(3)
		in.awaitMatched()
		outside(in, "ext-c")
		mend(in, 7, 8)
		program(t, "backup", night(2), "--since="+night(1), "--data.dir="+data)
		rows, kept := madeAgain(in), ofSQLAlone(in)
		repairs := in.acts("repair")
		in.stop()

		restored := func(to uint64) (data string) {
			t.Helper()
			data = filepath.Join(t.TempDir(), "data")
			program(t, "restore", night(1), night(2), "--data.dir="+data, fmt.Sprint("--to-seq=", to))
			return data
		}
		whole := func(in *installed, data string) {
			t.Helper()
			apptest.Until(t, "nothing is left to do", func() (bool, any) {
				left, err := backup.Restored(data)
				return left == nil && err == nil, left
			})
			in.awaitMatched()
		}
		copied, database := restored(0), databaseFlags(t, d)
		left, aside := filepath.Join(copied, backup.RestoredName), filepath.Join(t.TempDir(), "left")
		must.OK(t, os.CopyFS(aside, os.DirFS(left)))
		for range 2 { // the second start finds the work of the first one not noted
			again := on(copied, database)
			whole(again, copied)
			if got := ofSQLAlone(again); got != kept || !strings.Contains(got, `"ext-c"`) {
				t.Errorf("what only SQL has is\n%s\nbefore\n%s", got, kept)
			}
			if got := madeAgain(again); !slices.Equal(got, rows) {
				t.Errorf("%d rows, %d before", len(got), len(rows))
			}
			if got := again.acts("repair"); got != repairs || strings.Count(got, "\n") != 2 {
				t.Errorf("on record are %s, before %s", got, repairs)
			}
			again.stop()
			must.OK(t, os.CopyFS(left, os.DirFS(aside)))
		}
		// The numbers go on behind those of the backup.
		last := on(copied, database)
		whole(last, copied)
		outside(last, "ext-d")
		mend(last, 1, 1)
		if got := ofSQLAlone(last); !strings.Contains(got, fmt.Sprint(`["ext-d",`,
			store.FirstExternal+3)) || !strings.Contains(got, "\n[3,1,1,") {
			t.Errorf("behind the backup:\n%s", got)
		}
		last.stop()

		// To the end of the first backup, and to a sequence within it.
		exact := on(restored(middle), databaseFlags(t, d))
		apptest.Until(t, "the rows of the first backup", func() (bool, any) {
			got := ofSQLAlone(exact)
			return got == before, got
		})
		exact.stop()
		early := on(restored(first), databaseFlags(t, d))
		apptest.Until(t, "what is not about later trades", func() (bool, any) {
			got := ofSQLAlone(early)
			return strings.Contains(got, `["ext-b",`) && strings.Contains(got, "[1,2,4,") &&
				strings.Contains(got, "[1,2,0,") && !strings.Contains(got, "[1,3,0,"), got
		})
	})
}

// acts are the acts of a kind, as GET /audit has them.
func (i *installed) acts(kind string) string {
	i.t.Helper()
	_, text := i.get("order-matcher", "/audit?kind="+kind)
	return string(text)
}

// outside books trades from outside, and states them.
func outside(in *installed, ids ...string) {
	in.t.Helper()
	for _, id := range ids {
		body := `{"id":"` + id + `","accountId":1,"security":"AAPL","side":"Buy","quantity":5,` +
			`"price":1.5,"timestamp":"2026-11-20T10:00:00.000Z"}`
		if new, err := in.Beside.Load().projection.BookLegacy(in.t.Context(), []byte(body)); err != nil ||
			!new {
			in.t.Fatal(new, err)
		}
		lines := []client.StatementLine{{ID: id, AccountID: 1, Security: "AAPL", Side: "Buy", Quantity: 5,
			Price: 1_500_000, Timestamp: time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)}}
		must.Get(in.processor.TakeStatement(in.t.Context(), lines))(in.t)
	}
}

// mend damages the rows of trades and repairs them.
func mend(in *installed, from, to uint64) {
	in.t.Helper()
	err := in.Beside.Load().Db.Write(in.t.Context(), func(tx *store.Tx) error {
		_, err := tx.Exec("update trades set price = price + 1 where trade_seq between $1 and $2", from,
			to)
		return err
	})
	must.OK(in.t, err)
	done, err := in.processor.RepairRows(in.t.Context(), client.RepairQuery{
		From: matcher.TradeID(from), To: matcher.TradeID(to)})
	if err != nil || done.Repaired != to-from+1 {
		in.t.Fatalf("%+v %v", done, err)
	}
}

// ofSQLAlone are the kept rows of trades from outside, the statement and the repairs, as a backup
// has them.
func ofSQLAlone(in *installed) string {
	in.t.Helper()
	var text strings.Builder
	err := in.Beside.Load().Db.Read(in.t.Context(), func(tx *store.Tx) error {
		text.Reset()
		return tx.WriteKept(&text)
	})
	must.OK(in.t, err)
	_, kept, _ := strings.Cut(text.String(), `{"table":"trades"`)
	kept, _, _ = strings.Cut(kept, `{"table":"operator_acts"`)
	return kept
}
