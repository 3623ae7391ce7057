package backups

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"posttrade/journal"
	"posttrade/ring/metric"
	"posttrade/sidecars/store"
)

// The paths of the resources.
const (
	JournalPath = "/backup/journal"
	TablesPath  = "/backup/tables"
)

// The names of the members of the query of JournalPath: the commit that the stream goes on from.
const (
	queryGenesis  = "genesis"
	querySequence = "sequence"
	queryTrade    = "trade"
	queryChain    = "chain"
)

// whyHeader says why there are no rows (204).
const whyHeader = "X-Why"

// chunkTime is how long a peer may take for one write. A peer that is gone must not hold the one
// place that there is.
const chunkTime = time.Minute

// ServerOptions of NewServer.
type ServerOptions struct {
	Journal *journal.Journal
	// Database is the database of this process; nil, and why, when it has none now.
	Database func() (db *store.DB, why string)
	// Admit says whether a bearer token is valid, whether it is an administrator's, and whose.
	Admit  func(token string) (subject string, valid, admin bool)
	Logger *slog.Logger
}

// Server gives a running journal to backups.
type Server struct {
	o    ServerOptions
	turn chan struct{} // has a token while a stream is read

	sent     atomic.Uint64 // bytes
	streams  atomic.Uint64 // sent in full
	lastSeq  atomic.Uint64 // of the last stream that was sent in full
	lastSent atomic.Int64  // when that was, epoch seconds
}

// NewServer returns the handlers' owner.
func NewServer(o ServerOptions) *Server { return &Server{o: o, turn: make(chan struct{}, 1)} }

// Handlers are the resources by their patterns.
func (s *Server) Handlers() map[string]http.Handler {
	return map[string]http.Handler{
		"GET " + JournalPath: s.guarded(s.journal),
		"GET " + TablesPath:  s.guarded(s.tables),
	}
}

// guarded asks for an administrator's token.
func (s *Server) guarded(h func(http.ResponseWriter, *http.Request, string)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
		subject, valid, admin := "", false, false
		if strings.EqualFold(scheme, "Bearer") {
			subject, valid, admin = s.o.Admit(strings.TrimSpace(token))
		}
		switch {
		case !valid:
			w.Header().Set("WWW-Authenticate", "Bearer")
			problem(w, http.StatusUnauthorized, "UNAUTHORIZED", "a backup needs an admin token")
		case !admin:
			problem(w, http.StatusForbidden, "ADMIN_REQUIRED", "a backup needs an admin token")
		case !s.begin(r.Context()):
			w.Header().Set("Retry-After", "1")
			problem(w, http.StatusConflict, "BACKUP_RUNNING", "another backup is being read")
		default:
			defer func() { <-s.turn }()
			h(w, r, subject)
		}
	})
}

// turnWait is how long a backup waits for another to end. One that was killed ends in a moment.
const turnWait = 5 * time.Second

// begin waits for the place; false: another stream has it.
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
		began = true
		_, err = io.CopyBuffer(s.output(w, r), t, make([]byte, chunkBytes))
		return errors.Join(err, t.Close())
	})
	switch {
	case err == nil:
		s.streams.Add(1)
		s.lastSeq.Store(head)
		s.lastSent.Store(time.Now().Unix())
		s.o.Logger.Info("journal sent to a backup", "subject", subject, "address", r.RemoteAddr,
			"after", after.InputSeq, "to", head, "bytes", size,
			"took", time.Since(begun).Round(time.Millisecond))
	case began:
		s.o.Logger.Warn("a backup was cut short", "subject", subject, "address", r.RemoteAddr,
			"error", err)
		panic(http.ErrAbortHandler) // the status is sent: the peer must see that the stream is not whole
	case errors.Is(err, journal.ErrBase):
		problem(w, http.StatusConflict, "BASE_UNKNOWN", err.Error())
	case errors.Is(err, journal.ErrCorrupt), errors.Is(err, journal.ErrSnapshot):
		s.o.Logger.Error("a backup cannot be made", "error", err)
		problem(w, http.StatusInternalServerError, "INTERNAL_ERROR", err.Error())
	default:
		problem(w, http.StatusServiceUnavailable, "JOURNAL_FAILED", err.Error())
	}
}

// chunkBytes is how much is handed to the network at a time.
const chunkBytes = 256 << 10

// settle waits until everything that was answered before the call is on stable storage.
func (s *Server) settle(ctx context.Context) error {
	head, _ := s.o.Journal.Head()
	return s.o.Journal.WaitStable(ctx, head)
}

// after reads the point that the stream goes on from; the zero point without a query. An error
// without a field is about a genesis that is not the journal's.
func (s *Server) after(q url.Values) (p journal.Point, field string, err error) {
	for name, values := range q {
		switch {
		case name != queryGenesis && name != querySequence && name != queryTrade && name != queryChain:
			return p, name, errors.New("unknown parameter")
		case len(values) > 1:
			return p, name, errors.New("given twice")
		}
	}
	if len(q) == 0 {
		return p, "", nil
	}
	p.InputSeq, err = strconv.ParseUint(q.Get(querySequence), 10, 62)
	if err != nil || p.InputSeq == 0 {
		return p, querySequence, errors.New("want a sequence from 1 on")
	}
	if p.TradeSeq, err = strconv.ParseUint(q.Get(queryTrade), 10, 62); err != nil {
		return p, queryTrade, errors.New("want a trade sequence")
	}
	for _, h := range []struct {
		name string
		into []byte
	}{{queryChain, p.Chain[:]}, {queryGenesis, make([]byte, len(p.Chain))}} {
		text := q.Get(h.name)
		if len(text) != hex.EncodedLen(len(h.into)) {
			return p, h.name, errors.New("want 64 hexadecimal digits")
		}
		if _, err := hex.Decode(h.into, []byte(text)); err != nil {
			return p, h.name, errors.New("want 64 hexadecimal digits")
		}
	}
	seed := s.o.Journal.Seed()
	if got := hex.EncodeToString(seed[:]); got != strings.ToLower(q.Get(queryGenesis)) {
		return p, "", fmt.Errorf("this journal is of genesis %s: %w", got, journal.ErrBase)
	}
	return p, "", nil
}

// tables streams the rows that no journal gives again; 204 when this process has none.
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
	case began:
		s.o.Logger.Warn("a backup was cut short", "address", r.RemoteAddr, "error", err)
		panic(http.ErrAbortHandler)
	default:
		problem(w, http.StatusServiceUnavailable, "DATABASE_UNAVAILABLE", err.Error())
	}
}

// output writes to the peer for as long as the request lives and each write takes no longer than
// chunkTime.
func (s *Server) output(w http.ResponseWriter, r *http.Request) io.Writer {
	control := http.NewResponseController(w)
	return writerFunc(func(p []byte) (int, error) {
		if err := r.Context().Err(); err != nil {
			return 0, err
		}
		if err := control.SetWriteDeadline(time.Now().Add(chunkTime)); err != nil &&
			!errors.Is(err, http.ErrNotSupported) {
			return 0, err
		}
		n, err := w.Write(p)
		s.sent.Add(uint64(n))
		return n, err
	})
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

// problem answers with a problem document, as the services do.
func problem(w http.ResponseWriter, status int, code, detail string) {
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(status)
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(map[string]any{ // the peer may be gone
		"type":  "urn:posttrade:problem:" + strings.ToLower(strings.ReplaceAll(code, "_", "-")),
		"title": http.StatusText(status), "status": status, "code": code, "detail": detail,
	})
}

// Metrics shows what was sent.
func (s *Server) Metrics(emit metric.Emit) {
	emit("svc_backup_sent_bytes_total", "Bytes that backups have read of this process.", true,
		float64(s.sent.Load()))
	emit("svc_backup_streams_total", "Streams of the journal that backups have read to their end.",
		true, float64(s.streams.Load()))
	emit("svc_backup_last_sequence",
		"The last command in the last stream that a backup has read to its end; 0: none since the start.",
		false, float64(s.lastSeq.Load()))
	emit("svc_backup_last_seconds",
		"When a backup has last read a stream to its end, in seconds since 1970; 0: not since the start.",
		false, float64(s.lastSent.Load()))
}
