package installation

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"posttrade/app/apptest"
	"posttrade/journal/backup"
	"posttrade/ring/must"
	"posttrade/sidecars/riskextract"
	"posttrade/sidecars/store"
	"posttrade/sidecars/store/storetest"
)

// TestAnEarlyRequestFindsTheRowsOfTheBackup: a client's first request after a restore may be faster
// than the loop that puts the rows back, and waits for it. A control snapshot has the accounts of
// the backup, not an epoch drawn for an empty table; closing marks that the backup has are there
// already.
func TestAnEarlyRequestFindsTheRowsOfTheBackup(t *testing.T) {
	session := store.DateOf(2026, 11, 20)
	marks := []store.Mark{{Security: "AAPL", Price: 5}, {Security: "MSFT", Price: 6}}
	storetest.Each(t, func(t *testing.T, original *store.DB) {
		var rows strings.Builder
		tables := NewControlSources(original, nil, time.Second, nil, slog.New(slog.DiscardHandler))
		must.Get(tables.accounts.Seed(t.Context(), nil))(t)
		must.OK(t, original.Write(t.Context(), func(tx *store.Tx) error {
			_, err := tx.Exec("insert into accounts (id, display_name, enabled, version) values "+
				"(977, 'of the backup', $1, 1)", true)
			return err
		}))
		must.OK(t, (&riskextract.SQLMarks{DB: original}).PutMarks(t.Context(), session, 1, marks))
		must.OK(t, original.Read(t.Context(), func(tx *store.Tx) error {
			rows.Reset()
			return tx.WriteKept(&rows)
		}))
		epoch := must.Get(tables.accounts.Snapshot(t.Context()))(t).Epoch

		for name, request := range map[string]func(d *downstream) error{
			"snapshot": func(d *downstream) error {
				is, err := d.sources.accounts.Snapshot(t.Context())
				if len(is.Records) != 1 || is.Records[0].ID != 977 || is.Epoch != epoch {
					t.Errorf("the snapshot is %+v, want account 977 of epoch %d", is, epoch)
				}
				return err
			},
			"marks": func(d *downstream) error {
				return (&riskextract.SQLMarks{DB: d.Db}).PutMarks(t.Context(), session, 1, marks)
			},
		} {
			data := t.TempDir()
			folder := filepath.Join(data, backup.RestoredName)
			must.OK(t, os.Mkdir(folder, 0o700))
			must.OK(t, os.WriteFile(filepath.Join(folder, "origin.json"),
				[]byte(`{"inputSequence":3,"tradeSequence":2}`), 0o600))
			must.OK(t, os.WriteFile(filepath.Join(folder, "tables.ndjson"), []byte(rows.String()), 0o600))
			d := &downstream{Db: storetest.Open(t, original.Dialect())}
			log := slog.New(slog.DiscardHandler)
			d.sources = NewControlSources(d.Db, nil, time.Second, nil, log)
			must.OK(t, d.afterRestore(apptest.Settled(t, anyPorts(data)...), noJournal{}, log))
			ended, end := context.WithCancel(t.Context())
			end()
			must.Be(t, d.Db.Mine(ended), context.Canceled)
			d.first.Bump = func(context.Context, string) error { return nil }
			d.Db.RequestsAfter(func(ctx context.Context) error {
				return errors.Join(d.first.Run(ctx), d.first.Wait(ctx))
			})
			if err := request(d); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			var text strings.Builder
			must.OK(t, d.Db.Read(t.Context(), func(tx *store.Tx) error {
				text.Reset()
				return tx.WriteKept(&text)
			}))
			if text.String() != rows.String() {
				t.Errorf("%s: the database has\n%s\nthe backup\n%s", name, &text, &rows)
			}
		}
	})
}

// noJournal is one that notes without a genesis fit.
type noJournal struct{}

func (noJournal) Seed() (none [32]byte)             { return none }
func (noJournal) Head() (inputSeq, tradeSeq uint64) { return 0, 0 }

// TestExtractsAfterARestoreHaveTheMarksOfTheBackup: what an extract is made from is pinned at its
// first attempt, so none is made before the closing marks are back. Here the first start finds rows
// that it cannot read.
func TestExtractsAfterARestoreHaveTheMarksOfTheBackup(t *testing.T) {
	data, night := t.TempDir(), filepath.Join(t.TempDir(), "night")
	in := install(t, data)
	in.announced(data)
	in.trade(1)
	for _, request := range [][4]string{
		{"PUT", "trade-processor", "/eod/prices/2026-11-20/v1", `[{"security":"AAPL","price":77}]`},
		{"POST", "order-matcher", "/risk/extract", `{"sessionDate":"2026-11-20"}`},
	} {
		if status, text := requested(in, in.token, request[0], request[1], request[2],
			request[3]); status/100 != 2 {
			t.Fatalf("%v: %d %s", request, status, text)
		}
	}
	marker := in.Core.Journal.Answered()
	program(t, "backup", night, "--data.dir="+data)
	in.stop()
	data = filepath.Join(t.TempDir(), "data")
	program(t, "restore", night, "--data.dir="+data)
	path := filepath.Join(data, backup.RestoredName, "tables.ndjson")
	rows := must.Get(os.ReadFile(path))(t)
	must.OK(t, os.WriteFile(path, []byte("{}\n"), 0o600))

	in = install(t, data)
	apptest.Until(t, "the rows cannot be read", func() (bool, any) {
		err := in.Beside.Load().loops.err("restored")
		return err != nil, err
	})
	in.trade(20)
	in.stop()
	must.OK(t, os.WriteFile(path, rows, 0o600))
	in = install(t, data)
	must.OK(t, in.Beside.Load().extracts.Extractor.Wait(t.Context(), marker))
	files := must.Get(filepath.Glob(filepath.Join(in.config.ExtractSink(), "*", "*", "*.csv")))(t)
	text := ""
	for _, file := range files {
		text += string(must.Get(os.ReadFile(file))(t))
	}
	if !strings.Contains(text, ",EOD_SNAPSHOT,") ||
		strings.Contains(text, ",CLUSTER_LAST_TRADE_AT_N,") {
		t.Errorf("%v have\n%s", files, text)
	}
}
