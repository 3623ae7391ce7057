package installation

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"posttrade/app/apptest"
	"posttrade/ring/must"
	"posttrade/sidecars/store"
)

// A database that only a person can repair refuses the start with its code, and nothing of it or of
// the journal changes. When the file is away, the next start makes the rows again.
func TestADatabaseThatIsDamagedRefusesTheStart(t *testing.T) {
	data := t.TempDir()
	file := filepath.Join(data, "posttrade.db")
	in := traded(t, data, 1, 20)
	in.awaitMatched()
	rows := len(in.rows())
	in.stop()
	whole := must.Get(os.ReadFile(file))(t)
	rubbish := bytes.Repeat([]byte{0xa5}, 4096)
	newer := func() {
		db := must.Get(store.Open(store.Options{Dir: data}))(t)
		must.OK(t, db.Write(t.Context(), func(tx *store.Tx) error {
			_, err := tx.Exec(`insert into schema_migrations (version, name, checksum, applied_at)
				values (9999, 'later', 'x', 0)`)
			return err
		}))
		must.OK(t, db.Close())
	}
	for _, x := range []struct {
		what, code string
		plant      func()
	}{
		{"the schema's pages", "DATABASE_DAMAGED", func() {
			writeFile(t, file, append(append(bytes.Clone(whole[:4096]), bytes.Repeat(rubbish, 9)...),
				whole[10*4096:]...))
		}},
		{"the first page", "DATABASE_DAMAGED", func() {
			writeFile(t, file, append(bytes.Clone(rubbish), whole[4096:]...))
		}},
		{"the end", "DATABASE_DAMAGED", func() { writeFile(t, file, whole[:len(whole)/2]) }},
		{"a newer schema", "DATABASE_SCHEMA", newer},
	} {
		writeFile(t, file, whole)
		x.plant()
		before := must.Get(os.ReadFile(file))(t)
		c := apptest.Settled(t, append(anyPorts(data), quick...)...)
		opened, err := Open(t.Context(), c, EngineOptions(c), slog.New(slog.DiscardHandler))
		if err == nil {
			t.Errorf("%s: it starts, and stops with %v", x.what, opened.Stop())
			continue
		}
		if code := codeOfRefusal(err); code != x.code || !strings.Contains(err.Error(), file) {
			t.Errorf("%s: %s, %v", x.what, code, err)
		}
		if now := must.Get(os.ReadFile(file))(t); !bytes.Equal(now, before) {
			t.Errorf("%s: the file has changed", x.what)
		}
	}
	must.OK(t, os.Rename(file, file+".damaged"))
	in = install(t, data)
	in.awaitMatched()
	if n := len(in.rows()); n != rows {
		t.Errorf("%d rows of %d are made again", n, rows)
	}
}
