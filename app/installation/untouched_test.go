package installation

import (
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"posttrade/app/apptest"
	"posttrade/app/settings"
	"posttrade/ring/must"
)

// TestARefusedStartLeavesTheJournalAlone flips bits in every file of a journal and starts
// everything on it. When the start is refused, every file is byte for byte as it was, and no file
// is new. The refusal is one line that names a file or a key.
func TestARefusedStartLeavesTheJournalAlone(t *testing.T) {
	t.Logf("-args -crashseed=%d", *crashSeed)
	random := rand.New(rand.NewPCG(*crashSeed, 16))
	data := t.TempDir()
	for range 3 { // tables of three runs, a snapshot, and a log
		s := startServer(t, data, "sidecars.enabled", "false")
		for range 5 {
			call(t, "POST", s.url+"/orders", strings.Replace(sellOrder, `"clientOrderId":"a",`, "", 1))
		}
		s.stop(t)
		if code, _, errs := apptest.Run("snapshot", "--data.dir="+data); code != settings.ExitOK {
			t.Fatal(errs)
		}
	}
	flips := 5
	if testing.Short() {
		flips = 2
	}
	root := filepath.Join(data, "journal")
	whole := contents(t, root)
	refusals := 0
	for name, text := range whole {
		for range min(flips, len(text)) {
			b := []byte(text)
			at := random.IntN(len(b))
			b[at] ^= 1 << random.IntN(8)
			damaged := t.TempDir()
			copyTree(t, root, filepath.Join(damaged, "journal"))
			path := filepath.Join(damaged, "journal", name)
			must.OK(t, os.WriteFile(path, b, 0o644))
			before := contents(t, filepath.Join(damaged, "journal"))
			c := apptest.Settled(t, append(anyPorts(damaged), "sidecars.enabled", "false")...)
			o := EngineOptions(c)
			o.Fatal = func(err error) { t.Errorf("byte %d of %s: found while it ran: %v", at, name, err) }
			in, err := Open(t.Context(), c, o, slog.New(slog.NewTextHandler(io.Discard, nil)))
			if err == nil {
				if err := in.Stop(); err != nil {
					t.Errorf("byte %d of %s: stop: %v", at, name, err)
				}
				continue
			}
			refusals++
			sameContents(t, fmt.Sprintf("byte %d of %s: refused with %v", at, name, err),
				before, contents(t, filepath.Join(damaged, "journal")))
			text := err.Error()
			named := strings.Contains(text, damaged) || strings.Contains(text, "key=")
			if !named || strings.Contains(text, "carrier") {
				t.Errorf("byte %d of %s: %q", at, name, text)
			}
		}
	}
	if refusals == 0 {
		t.Error("nothing was refused")
	}
	t.Logf("%d refusals", refusals)
}
