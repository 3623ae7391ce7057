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
