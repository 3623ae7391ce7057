package backups

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"posttrade/journal"
	"posttrade/journal/backup"
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
				Holds:    func(string) bool { return true },
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

// damagedJournal is a journal that opens, with a table of commands that is damaged in the middle.
func damagedJournal(t *testing.T) (j *journal.Journal, table string) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "journal")
	o := journal.Options{Durability: journal.DurabilityOS, Fatal: func(err error) { t.Log(err) }}
	j = must.Get(journal.Open(dir, o))(t)
	must.OK(t, j.Create([]byte("genesis")))
	for n := uint64(1); n <= 3000; n++ {
		var b journal.Block
		c := matcher.NewCommand(matcher.OrderNew)
		c.InputSeq = n
		b.Command(&c)
		must.Get(j.Append(&b))(t)
	}
	must.OK(t, j.Close())
	j = must.Get(journal.Open(dir, o))(t) // what was in the log goes into tables
	must.OK(t, j.Close())
	var text []byte
	for _, name := range must.Get(filepath.Glob(filepath.Join(dir, "store", "*.sst")))(t) {
		if b := must.Get(os.ReadFile(name))(t); len(b) > len(text) {
			table, text = name, b
		}
	}
	text[len(text)/2] ^= 1
	must.OK(t, os.WriteFile(table, text, 0o600))
	j = must.Get(journal.Open(dir, o))(t)
	t.Cleanup(func() { must.OK(t, j.Close()) })
	return j, table
}

// TestABackupOfADamagedJournalSaysWhatIsDamaged, and does not accuse the transfer. A server that
// does not know why leaves it at the stream that is not whole.
func TestABackupOfADamagedJournalSaysWhatIsDamaged(t *testing.T) {
	j, table := damagedJournal(t)
	s := NewServer(ServerOptions{
		Journal: j, Logger: slog.New(slog.DiscardHandler), Data: t.TempDir(),
		Database: func() (*store.DB, string) { return nil, "none" },
		Admit:    func(token string) (string, bool, bool) { return "ann", token != "", token == "admin" },
		Holds:    func(string) bool { return true },
	})
	mux := http.NewServeMux()
	for pattern, h := range s.Handlers() {
		mux.Handle(pattern, h)
	}
	older := func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == FailurePath {
			http.NotFound(w, r)
			return
		}
		mux.ServeHTTP(w, r)
	}
	const notWhole = "transfer is not whole"
	for name, tt := range map[string]struct {
		server http.Handler
		unread bool
		says   string
	}{
		"this build":     {mux, true, table},
		"an older build": {http.HandlerFunc(older), false, notWhole},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(tt.server)
			defer server.Close()
			remote := NewRemote(server.URL, func() (string, error) { return "admin", nil }, nil)
			_, err := backup.Write(context.Background(), filepath.Join(t.TempDir(), "b"), remote,
				backup.Options{Now: time.Now})
			if errors.Is(err, ErrUnread) != tt.unread || !strings.Contains(fmt.Sprint(err), tt.says) ||
				tt.unread && strings.Contains(err.Error(), notWhole) {
				t.Error(err)
			}
		})
	}
	for asked, want := range map[[2]string]int{
		{"?stream=9", "admin"}: 404, {"", "admin"}: 404, {"?stream=2", "admin"}: 200,
		{"?stream=2", "user"}: 403, {"?stream=2", ""}: 401,
	} {
		r := httptest.NewRequest(http.MethodGet, FailurePath+asked[0], nil)
		r.Header.Set("Authorization", "Bearer "+asked[1])
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, r)
		if w.Code != want {
			t.Errorf("%s: %d %s", asked, w.Code, must.Get(io.ReadAll(w.Body))(t))
		}
	}
}

// cutShort is a source that is gone before its rows are asked for.
type cutShort struct{ *Remote }

func (cutShort) Tables(context.Context) (io.ReadCloser, string, error) {
	return nil, "", context.Canceled
}

// TestABackupCountsWhenAllIsRead: the journal alone is half of a backup, unless it asks for no
// more. Of two at a time the one whose rows are asked for counts.
func TestABackupCountsWhenAllIsRead(t *testing.T) {
	j := must.Get(journal.Open(filepath.Join(t.TempDir(), "journal"),
		journal.Options{Fatal: func(err error) { t.Error(err) }}))(t)
	must.OK(t, j.Create([]byte("genesis")))
	db := must.Get(store.Open(store.Options{Dir: t.TempDir()}))(t)
	t.Cleanup(func() { must.OK(t, errors.Join(db.Close(), j.Close())) })
	grow := func(n uint64) {
		var b journal.Block
		c := matcher.NewCommand(matcher.OrderNew)
		c.InputSeq = n
		b.Command(&c)
		must.OK(t, must.Get(j.Append(&b))(t).Wait())
	}
	var has *store.DB
	s := NewServer(ServerOptions{
		Journal: j, Logger: slog.New(slog.DiscardHandler), Data: t.TempDir(),
		Database: func() (*store.DB, string) { return has, "none" },
		Admit:    func(string) (string, bool, bool) { return "ann", true, true },
		Holds:    func(string) bool { return true },
	})
	mux := http.NewServeMux()
	for pattern, h := range s.Handlers() {
		mux.Handle(pattern, h)
	}
	server := httptest.NewServer(mux)
	defer server.Close()
	remote := func() *Remote {
		return NewRemote(server.URL, func() (string, error) { return "admin", nil }, nil)
	}
	write := func(from backup.Contents, alone bool) error {
		_, err := backup.Write(t.Context(), filepath.Join(t.TempDir(), "b"), from,
			backup.Options{Now: time.Now, JournalOnly: alone})
		return err
	}
	counted := func(what string, want uint64) {
		t.Helper()
		s.turn <- struct{}{} // the handler has returned
		<-s.turn
		if got := s.last.get(); got.Sequence != want {
			t.Errorf("%s: the last backup ends at %d, want %d", what, got.Sequence, want)
		}
	}
	grow(1)
	if err := write(cutShort{remote()}, false); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	counted("cut short", 0)
	must.OK(t, write(remote(), false))
	counted("without a database", 1)
	if got := s.last.get(); got.At == 0 || got.RowsAt != 0 {
		t.Errorf("without rows %+v", got)
	}
	grow(2)
	has = db
	must.OK(t, write(remote(), false))
	counted("with rows", 2)
	if got := s.last.get(); got.RowsAt != got.At {
		t.Errorf("with rows %+v", got)
	}
	grow(3)
	alone := remote()
	alone.JournalOnly = true
	must.OK(t, write(alone, true))
	counted("journal only", 3)
	grow(4)
	first, second := remote(), remote()
	read := func(r *Remote) {
		stream := must.Get(r.Journal(t.Context(), "", journal.Point{}))(t)
		must.Get(io.Copy(io.Discard, stream))(t)
		must.OK(t, stream.Close())
	}
	rows := func(r *Remote) {
		rows, _, err := r.Tables(t.Context())
		must.OK(t, err)
		must.Get(io.Copy(io.Discard, rows))(t)
		must.OK(t, rows.Close())
	}
	read(first)
	grow(5)
	read(second)
	rows(first)
	counted("one of two", 3)
	rows(second)
	counted("the other", 5)
}

// TestABackupEndsWithItsToken that is taken back while the journal is read: the peer sees a stream
// that is not whole, and may learn why with another token.
func TestABackupEndsWithItsToken(t *testing.T) {
	j := must.Get(journal.Open(filepath.Join(t.TempDir(), "journal"),
		journal.Options{Durability: journal.DurabilityOS, Fatal: func(err error) { t.Error(err) }}))(t)
	must.OK(t, j.Create([]byte("genesis")))
	defer func() { must.OK(t, j.Close()) }()
	asked := 0
	s := NewServer(ServerOptions{
		Journal: j, Logger: slog.New(slog.DiscardHandler), Data: t.TempDir(),
		Database: func() (*store.DB, string) { return nil, "none" },
		Admit:    func(string) (string, bool, bool) { return "ann", true, true },
		Holds: func(token string) bool {
			asked++
			return token == "admin" && asked < 2
		},
	})
	r := httptest.NewRequest(http.MethodGet, JournalPath, nil)
	r.Header.Set("Authorization", "Bearer admin")
	w := httptest.NewRecorder()
	func() {
		defer func() {
			if cause := recover(); cause != http.ErrAbortHandler {
				t.Errorf("the connection was not broken off: %v", cause)
			}
		}()
		s.Handlers()["GET "+JournalPath].ServeHTTP(w, r)
	}()
	if f := s.failure.Load(); asked != 2 || f == nil || !errors.Is(f.why, errWithdrawn) {
		t.Errorf("asked %d times, sent %d bytes, failure %+v", asked, w.Body.Len(), f)
	}
}
