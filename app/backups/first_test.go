package backups

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"posttrade/journal/backup"
	"posttrade/ring/must"
	"posttrade/sidecars/store"
)

// TestOlderRowsMayHaveWaitedInVain: an act that waits in rows older than the journal may be in the
// journal, so it is looked for from the end of the rows' backup on.
func TestOlderRowsMayHaveWaitedInVain(t *testing.T) {
	for origin, want := range map[string]uint64{
		`{"inputSequence":9,"from":["/mon","/tue"],"rowsFrom":"/mon","rowsSequence":7}`: 8,
		`{"inputSequence":9,"from":["/mon","/tue"],"rowsFrom":"/tue","rowsSequence":9}`: 0,
		`{"inputSequence":9,"from":["/mon","/tue"]}`:                                    0,
	} {
		data := t.TempDir()
		folder := filepath.Join(data, backup.RestoredName)
		must.OK(t, os.Mkdir(folder, 0o700))
		must.OK(t, os.WriteFile(filepath.Join(folder, "origin.json"), []byte(origin), 0o600))
		must.OK(t, os.WriteFile(filepath.Join(folder, "tables.ndjson"), []byte(
			`{"table":"operator_acts","columns":["act","kind","subject","address","reason","object",`+
				`"old","new","made_at","sought_from"]}`+"\n"+
				`[1,"epoch","s","a","r","{}","","{}",5,null]`+"\n"+`{"rows":1}`+"\n"), 0o600))
		db := must.Get(store.Open(store.Options{Dir: data}))(t)
		f := must.Get(NewFirst(FirstOptions{Data: data, DB: db, Log: slog.New(slog.DiscardHandler)}))(t)
		must.OK(t, f.Load(t.Context()))
		must.OK(t, db.Read(t.Context(), func(tx *store.Tx) error {
			a, found, err := tx.FirstAct()
			if !found || a.Sought != want {
				t.Errorf("%s: %+v, want sought from %d", origin, a, want)
			}
			return err
		}))
		must.OK(t, db.Close())
	}
}

// TestAFirstStartSaysWhyItWaits: it tries again for as long as it fails. The log says the error
// once, not each time and not never.
func TestAFirstStartSaysWhyItWaits(t *testing.T) {
	data := t.TempDir()
	must.OK(t, os.Mkdir(filepath.Join(data, backup.RestoredName), 0o700))
	must.OK(t, os.WriteFile(filepath.Join(data, backup.RestoredName, "origin.json"),
		[]byte(`{"inputSequence":3,"tradeSequence":2}`), 0o600))
	db := must.Get(store.Open(store.Options{Dir: data}))(t)
	defer db.Close()
	ctx, cancel := context.WithCancel(t.Context())
	tries := 0
	var log bytes.Buffer
	f := must.Get(NewFirst(FirstOptions{Data: data, DB: db,
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
