package backups

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"posttrade/journal"
	"posttrade/ring/metric"
	"posttrade/sidecars/store"
)

// The paths of the resources.
//
// They are a part of the program's interface: posttrade backup of another release asks for them.
const (
	JournalPath = "/backup/journal"
	TablesPath  = "/backup/tables"
	FailurePath = "/backup/failure"
)

// streamHeader is the number of a stream of the journal: in its answer, in the request of the rows
// that belong to it, and in the query of FailurePath.
//
// A stream that has begun has no place for an error, and ends early: then the peer asks why.
const (
	streamHeader = "X-Backup-Stream"
	queryStream  = "stream"
)

// aloneHeader is set in the request of a journal whose backup leaves out the rows: nothing follows.
//
// It is a header, because an older server refuses a query that it does not know.
const aloneHeader = "X-Backup-Journal-Only"

// whyHeader says why there are no rows (204).
//
// An answer without content has no body in which it could say so.
const whyHeader = "X-Why"

// ServerOptions of NewServer.
//
// All of them are required.
type ServerOptions struct {
	Journal *journal.Journal
	// Database is the database of this process; nil, and why, when it has none now.
	Database func() (db *store.DB, why string)
	// Rows says that this installation has a database, as a leader or a single node: backups of it
	// should have rows.
	Rows bool
	// Admit says whether a bearer token is valid, whether it is an administrator's, and whose.
	//
	// Any goroutine calls it, once for each request.
	Admit func(token string) (subject string, valid, admin bool)
	// Holds says whether a stream that began with a token may go on: a backup may take longer than a
	// token lives, but a token that was taken back ends it. Called for each write.
	Holds  func(token string) bool
	Data   string // data.dir, which keeps when the last backup was
	Logger *slog.Logger
}

// Server gives a running journal to backups.
//
// Any goroutine may call its methods.
type Server struct {
	o ServerOptions
	// Has room for one token, which is in it while a stream is read: two streams at a time would take
	// twice the disk's time from the path of an order.
	turn chan struct{}

	// Of the streams that have begun: the number of the last one, and why one has ended early; nil:
	// none has.
	begun   atomic.Uint64
	failure atomic.Pointer[failure]

	sent    atomic.Uint64 // bytes
	streams atomic.Uint64 // sent in full since the start
	// The stream that was sent in full last, and whose rows were not asked for yet; nil: none.
	rowless atomic.Pointer[whole]
	last    record
}

// whole is a stream of the journal that was sent in full.
type whole struct {
	stream string // its number
	head   uint64 // its last command
}

// failure is why a stream has ended early.
type failure struct {
	stream string // its number
	why    error
}

// NewServer returns the handlers' owner.
//
// It owns no goroutine and has nothing to close. When the file of the last backup cannot be read
// it says so in the log, and goes on as if there were none.
func NewServer(o ServerOptions) *Server {
	s := &Server{o: o, turn: make(chan struct{}, 1)}
	s.last.path = filepath.Join(o.Data, lastFile)
	head, _ := o.Journal.Head()
	if err := s.last.read(head); err != nil {
		o.Logger.Warn("when the last backup was is not known", "error", err)
	}
	return s
}

// Handlers are the resources by their patterns.
//
// The admin listener puts them beside its own, with patterns as net/http.ServeMux has them.
func (s *Server) Handlers() map[string]http.Handler {
	return map[string]http.Handler{
		"GET " + JournalPath: s.guarded(s.journal),
		"GET " + TablesPath:  s.guarded(s.tables),
		"GET " + FailurePath: s.admitted(s.failed),
	}
}

// guarded asks for an administrator's token, then takes the one place for a stream.
//
// 409 with BACKUP_RUNNING may be tried again.
func (s *Server) guarded(h func(http.ResponseWriter, *http.Request, string)) http.Handler {
	return s.admitted(func(w http.ResponseWriter, r *http.Request, subject string) {
		if !s.begin(r.Context()) {
			w.Header().Set("Retry-After", "1")
			problem(w, http.StatusConflict, "BACKUP_RUNNING", "another backup is being read")
			return
		}
		defer func() { <-s.turn }()
		h(w, r, subject)
	})
}

// admitted asks for an administrator's token, whatever the admin listener itself asks for.
func (s *Server) admitted(h func(http.ResponseWriter, *http.Request, string)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		subject, valid, admin := "", false, false
		if token := bearer(r); token != "" {
			subject, valid, admin = s.o.Admit(token)
		}
		switch {
		case !valid:
			w.Header().Set("WWW-Authenticate", "Bearer")
			problem(w, http.StatusUnauthorized, "UNAUTHORIZED", "a backup needs an admin token")
		case !admin:
			problem(w, http.StatusForbidden, "ADMIN_REQUIRED", "a backup needs an admin token")
		default:
			h(w, r, subject)
		}
	})
}

// bearer is the token of a request, "" without one.
func bearer(r *http.Request) string {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return strings.TrimSpace(token)
}

// turnWait is how long a backup waits for another to end. One that was killed ends in a moment.
//
// The stream of a client that is gone ends at its next write.
const turnWait = 5 * time.Second

// begin waits for the place; false: another stream has it.
//
// The caller takes the token out again when its stream has ended.
func (s *Server) begin(ctx context.Context) bool {
	select {
	case s.turn <- struct{}{}:
		return true
	case <-time.After(turnWait):
	case <-ctx.Done():
	}
	return false
}

// journal streams the journal behind a point.
//
// What is answered before the request is in the stream, and on stable storage: settle waits for
// it. The headers have the exact length, and a stream that cannot be completed breaks the
// connection, so that no peer takes a part for the whole; FailurePath then says why. Before the
// first byte every failure is a problem document:
//
//   - 400 names the member of the query
//   - 409 BASE_UNKNOWN: this journal does not continue the backup
//   - 500: the journal is damaged
//   - 503: it has failed, or the request has ended
//
// It runs on a thread of the lowest priority and holds one buffer of chunkBytes.
func (s *Server) journal(w http.ResponseWriter, r *http.Request, subject string) {
	after, field, err := s.after(r.URL.Query())
	switch {
	case err != nil && field == "":
		problem(w, http.StatusConflict, "BASE_UNKNOWN", err.Error())
		return
	case err != nil:
		problem(w, http.StatusBadRequest, "BAD_REQUEST", field+": "+err.Error())
		return
	}
	begun := time.Now()
	stream := strconv.FormatUint(s.begun.Add(1), 10)
	var size int64
	var head uint64
	began := false
	err = journal.Politely(journal.Bulk, func() error {
		if err := s.settle(r.Context()); err != nil {
			return err
		}
		t, err := s.o.Journal.TransferAfter(after)
		if err != nil {
			return err
		}
		size = t.Size()
		head, _ = t.Head()
		w.Header().Set("Content-Type", "application/octet-stream")
		w.Header().Set("Content-Length", strconv.FormatInt(size, 10))
		w.Header().Set("Cache-Control", "no-store")
		w.Header().Set(streamHeader, stream)
		began = true
		_, err = io.CopyBuffer(s.output(w, r), t, make([]byte, chunkBytes))
		return errors.Join(err, t.Close())
	})
	switch {
	case err == nil:
		s.streams.Add(1)
		s.rowless.Store(&whole{stream, head})
		if r.Header.Get(aloneHeader) != "" {
			s.ended(r, false)
		}
		s.o.Logger.Info("journal sent to a backup", "subject", subject, "address", r.RemoteAddr,
			"after", after.InputSeq, "to", head, "bytes", size,
			"took", time.Since(begun).Round(time.Millisecond))
	case began:
		s.o.Logger.Warn("a backup was cut short", "subject", subject, "address", r.RemoteAddr,
			"error", err)
		s.failure.Store(&failure{stream, err})
		_ = http.NewResponseController(w).Flush() // a peer that is gone asks nothing
		// The status is sent: the peer must see that the stream is not whole.
		panic(http.ErrAbortHandler)
	case errors.Is(err, journal.ErrBase):
		problem(w, http.StatusConflict, "BASE_UNKNOWN", err.Error())
	case errors.Is(err, journal.ErrCorrupt), errors.Is(err, journal.ErrSnapshot):
		s.o.Logger.Error("a backup cannot be made", "error", err)
		problem(w, http.StatusInternalServerError, "INTERNAL_ERROR", err.Error())
	default:
		problem(w, http.StatusServiceUnavailable, "JOURNAL_FAILED", err.Error())
	}
}

// ended keeps the last stream as that of a backup that has read all it asks for, rows too or none,
// when the request is one of that backup. An older program does not say which stream it has read.
func (s *Server) ended(r *http.Request, rows bool) {
	of := s.rowless.Load()
	asked := r.Header.Get(streamHeader)
	if of == nil || asked != "" && asked != of.stream || !s.rowless.CompareAndSwap(of, nil) {
		return
	}
	if err := s.last.ended(of.head, rows, time.Now()); err != nil {
		s.o.Logger.Warn("a restart will not know of this backup", "error", err)
	}
}

// failed says why a stream has ended early, as plain text; 404 when it has not, or another has
// since.
func (s *Server) failed(w http.ResponseWriter, r *http.Request, _ string) {
	f := s.failure.Load()
	if f == nil || f.stream != r.URL.Query().Get(queryStream) {
		problem(w, http.StatusNotFound, "NOT_FOUND", queryStream+": it has not failed")
		return
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = io.WriteString(w, f.why.Error()) // the peer may be gone
}

// settle waits until everything that was answered before the call is on stable storage.
//
// A backup must not have what a power cut could still take from the journal that it is of, and the
// next one must find the commit where it ends: so the commits themselves have to be stable.
func (s *Server) settle(ctx context.Context) error {
	head, _ := s.o.Journal.Head()
	return s.o.Journal.WaitStableEnd(ctx, head)
}

// tables streams the rows that no journal gives again; 204 when this process has none.
//
// The rows are read in one transaction, so they are of one moment. If the database begins the
// transaction again after the first byte was sent, the stream is broken off: two beginnings would
// be in it.
func (s *Server) tables(w http.ResponseWriter, r *http.Request, _ string) {
	if len(r.URL.RawQuery) > 0 {
		for name := range r.URL.Query() {
			problem(w, http.StatusBadRequest, "BAD_REQUEST", name+": unknown parameter")
			return
		}
	}
	db, why := s.o.Database()
	if db == nil {
		w.Header().Set(whyHeader, why)
		w.WriteHeader(http.StatusNoContent)
		s.ended(r, false)
		return
	}
	began := false
	err := journal.Politely(journal.Bulk, func() error {
		return db.Read(r.Context(), func(tx *store.Tx) error {
			if began {
				return errors.New("the database began again")
			}
			w.Header().Set("Content-Type", "application/x-ndjson")
			w.Header().Set("Cache-Control", "no-store")
			out := s.output(w, r)
			return tx.WriteKept(writerFunc(func(p []byte) (int, error) {
				began = true
				return out.Write(p)
			}))
		})
	})
	switch {
	case err == nil:
		s.ended(r, true)
	case began:
		s.o.Logger.Warn("a backup was cut short", "address", r.RemoteAddr, "error", err)
		panic(http.ErrAbortHandler)
	default:
		problem(w, http.StatusServiceUnavailable, "DATABASE_UNAVAILABLE", err.Error())
	}
}

// Metrics shows what was sent.
//
// A stream that was cut short counts in the bytes only.
func (s *Server) Metrics(emit metric.Emit) {
	last := s.last.get()
	emit("svc_backup_sent_bytes_total", "Bytes that backups have read of this process.", true,
		float64(s.sent.Load()))
	emit("svc_backup_streams_total", "Streams of the journal that backups have read to their end.",
		true, float64(s.streams.Load()))
	emit("svc_backup_last_sequence",
		"The last command in the last backup that has read all it asked for; 0: none yet.",
		false, float64(last.Sequence))
	emit("svc_backup_last_seconds",
		"When a backup has last read all it asked for, in seconds since 1970; 0: not yet.",
		false, float64(last.At))
	if s.o.Rows {
		emit("svc_backup_rows_last_seconds",
			"When a backup has last read all, rows of the database too, in seconds since 1970; 0: not yet.",
			false, float64(last.RowsAt))
	}
}
