package backups

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"testing"

	"posttrade/journal"
	"posttrade/matcher"
	"posttrade/ring/must"
	"posttrade/sidecars/store"
)

// TestABackupHasWhatWasAnsweredBefore asks for the journal right behind the answer to a command. In
// every mode the stream has that command, and ends at a commit that a power cut leaves.
func TestABackupHasWhatWasAnsweredBefore(t *testing.T) {
	for name, o := range map[string]journal.Options{
		"fsync":             {},
		"fsync with a tail": {Tail: true},
		"os":                {Durability: journal.DurabilityOS},
		"os with a tail":    {Durability: journal.DurabilityOS, Tail: true},
	} {
		t.Run(name, func(t *testing.T) {
			o.Fatal = func(err error) { t.Error(err) }
			j := must.Get(journal.Open(filepath.Join(t.TempDir(), "journal"), o))(t)
			must.OK(t, j.Create([]byte("genesis")))
			s := NewServer(ServerOptions{
				Journal: j, Logger: slog.New(slog.DiscardHandler), Data: t.TempDir(),
				Database: func() (*store.DB, string) { return nil, "none" },
				Admit:    func(string) (string, bool, bool) { return "admin", true, true },
			})
			handler := s.Handlers()["GET "+JournalPath]
			for n := uint64(1); n <= 20; n++ {
				var b journal.Block
				c := matcher.NewCommand(matcher.OrderNew)
				c.InputSeq = n
				b.Command(&c)
				commit := must.Get(j.Append(&b))(t)
				must.OK(t, commit.Wait())
				r := httptest.NewRequest(http.MethodGet, JournalPath, nil)
				r.Header.Set("Authorization", "Bearer token")
				w := httptest.NewRecorder()
				handler.ServeHTTP(w, r)
				if w.Code != http.StatusOK {
					t.Fatalf("%d %s", w.Code, w.Body)
				}
				seen := must.Get(journal.CheckStream(w.Body, j.Seed(), journal.Point{}))(t)
				if seen.To.InputSeq != n || j.StableEnd() < n {
					t.Fatalf("the stream ends at %d, %d is answered; stable commits end at %d",
						seen.To.InputSeq, n, j.StableEnd())
				}
			}
			must.OK(t, j.Close())
		})
	}
}
