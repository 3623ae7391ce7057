package backups

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"posttrade/journal/backup"
	"posttrade/ring/must"
	"posttrade/sidecars/store"
)

// TestOlderRowsMayHaveWaitedInVain: the journal may have gone on since the rows, with what waits
// among them: such an act is looked for from the end of the rows' backup on.
func TestOlderRowsMayHaveWaitedInVain(t *testing.T) {
	for origin, want := range map[string]uint64{
		`{"inputSequence":9,"from":["/mon","/tue"],"rowsFrom":"/mon","rowsSequence":7}`: 8,
		`{"inputSequence":9,"from":["/mon","/tue"],"rowsFrom":"/tue","rowsSequence":9}`: 10,
		`{"inputSequence":9,"from":["/mon","/tue"]}`:                                    0,
	} {
		data := t.TempDir()
		folder := filepath.Join(data, backup.RestoredName)
		must.OK(t, os.Mkdir(folder, 0o700))
		must.OK(t, os.WriteFile(filepath.Join(folder, "origin.json"), []byte(origin), 0o600))
		must.OK(t, os.WriteFile(filepath.Join(folder, "tables.ndjson"), []byte(
			`{"table":"sources","columns":["source","epoch","version"]}`+"\n"+`["account",1,2]`+"\n"+
				`{"table":"operator_acts","columns":["act","kind","subject","address","reason","object",`+
				`"old","new","made_at","sought_from"]}`+"\n"+
				`[1,"epoch","s","a","r","{}","","{}",5,null]`+"\n"+`{"rows":2}`+"\n"), 0o600))
		db := must.Get(store.Open(store.Options{Dir: data}))(t)
		starts := func(want uint64) {
			t.Helper()
			f := must.Get(NewFirst(FirstOptions{Data: data, DB: db, Journal: journalTo(9),
				Log: slog.New(slog.DiscardHandler)}))(t)
			must.OK(t, f.load(t.Context()))
			must.OK(t, db.Read(t.Context(), func(tx *store.Tx) error {
				a, found, err := tx.FirstAct()
				if !found || a.Sought != want {
					t.Errorf("%s: %+v, want sought from %d", origin, a, want)
				}
				return err
			}))
		}
		starts(want)
		must.OK(t, db.Write(t.Context(), func(tx *store.Tx) error { // one that was made since
			_, err := tx.Exec("update operator_acts set sought_from = null")
			return err
		}))
		starts(0) // again, for whatever came behind the rows
		must.OK(t, db.Close())
	}
}

// TestAFirstStartSaysWhyItWaits: it tries again for as long as it fails. The log says the error
// once, not each time and not never.
func TestAFirstStartSaysWhyItWaits(t *testing.T) {
	data := t.TempDir()
	restoredTo(t, data, "")
	db := must.Get(store.Open(store.Options{Dir: data}))(t)
	defer db.Close()
	ctx, cancel := context.WithCancel(t.Context())
	tries := 0
	var log bytes.Buffer
	f := must.Get(NewFirst(FirstOptions{Data: data, DB: db, Journal: journalTo(3),
		Log: slog.New(slog.NewTextHandler(&log, nil)),
		Bump: func(context.Context, string) error {
			if tries++; tries == 3 {
				cancel()
			}
			return os.ErrPermission
		},
	}))(t)
	must.OK(t, f.Run(ctx))
	if n := strings.Count(log.String(), "what a restore has left waits"); tries != 3 || n != 1 {
		t.Errorf("%d tries, said %d times: %s", tries, n, &log)
	}
	if origin, err := backup.Restored(data); origin == nil || err != nil {
		t.Errorf("the notes of the restore are gone: %v", err)
	}
}

// restoredTo leaves in data what a restore leaves for the first start.
func restoredTo(t *testing.T, data, rows string) {
	t.Helper()
	folder := filepath.Join(data, backup.RestoredName)
	must.OK(t, os.Mkdir(folder, 0o700))
	must.OK(t, os.WriteFile(filepath.Join(folder, "origin.json"),
		[]byte(`{"inputSequence":3,"tradeSequence":2}`), 0o600))
	if rows != "" {
		must.OK(t, os.WriteFile(filepath.Join(folder, "tables.ndjson"), []byte(rows), 0o600))
	}
}

// TestRowsThatAreNotPutBackAreKept: a database that another has filled before keeps its rows. Those
// of the backup are not lost, and the log says where they are. Rows that were put back are not
// kept, also when the start that has done so did not come to its end.
func TestRowsThatAreNotPutBackAreKept(t *testing.T) {
	data := t.TempDir()
	db := must.Get(store.Open(store.Options{Dir: data}))(t)
	defer db.Close()
	write := func(statements ...string) {
		t.Helper()
		must.OK(t, db.Write(t.Context(), func(tx *store.Tx) (err error) {
			for _, sql := range statements {
				_, e := tx.Exec(sql)
				err = errors.Join(err, e)
			}
			return err
		}))
	}
	const account = "insert into accounts (id, display_name, enabled, version) values "
	var rows strings.Builder
	write(account + "(7, 'of the backup', 1, 1)")
	must.OK(t, db.Read(t.Context(), func(tx *store.Tx) error { return tx.WriteKept(&rows) }))
	write("delete from accounts")
	var log bytes.Buffer
	start := func() {
		t.Helper()
		log.Reset()
		restoredTo(t, data, rows.String())
		f := must.Get(NewFirst(FirstOptions{Data: data, DB: db, Journal: journalTo(3),
			Log:  slog.New(slog.NewTextHandler(&log, nil)),
			Bump: func(context.Context, string) error { return nil },
		}))(t)
		must.OK(t, f.Run(t.Context()))
		if origin, err := backup.Restored(data); origin != nil || err != nil {
			t.Errorf("there is still work to do: %v %v", origin, err)
		}
	}
	for range 2 {
		start()
		if kept, _ := filepath.Glob(filepath.Join(data, "restored*")); len(kept) != 0 {
			t.Fatalf("rows that are back are kept: %v", kept)
		}
	}
	write("delete from accounts", "delete from cursors", account+"(8, 'seeded', 1, 1)")
	for _, name := range []string{"restored-1", "restored-2"} {
		start()
		kept := filepath.Join(data, name)
		text := must.Get(os.ReadFile(filepath.Join(kept, "tables.ndjson")))(t)
		if string(text) != rows.String() {
			t.Errorf("%s has %q", name, text)
		}
		if said := log.String(); !strings.Contains(said, "level=ERROR") || !strings.Contains(said, kept) {
			t.Errorf("the log: %s", said)
		}
	}
}
