package backups

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"time"
)

// chunkTime is how long a peer may take for one write. A peer that is gone must not hold the one
// place that there is.
//
// The time counts from each write anew, so a slow network does not end a long stream.
const chunkTime = time.Minute

// chunkBytes is how much is handed to the network at a time.
const chunkBytes = 256 << 10

// errWithdrawn ends a stream.
var errWithdrawn = errors.New("the token of the backup was taken back")

// output writes to the peer for as long as the request lives, its token was not taken back, and
// each write takes no longer than chunkTime.
//
// It counts the bytes that have been handed to the network.
func (s *Server) output(w http.ResponseWriter, r *http.Request) io.Writer {
	control, token := http.NewResponseController(w), bearer(r)
	return writerFunc(func(p []byte) (int, error) {
		if err := r.Context().Err(); err != nil {
			return 0, err
		}
		if !s.o.Holds(token) {
			return 0, errWithdrawn
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

// writerFunc is a function as an io.Writer.
type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

// problem answers with a problem document, as the services do.
//
// code is in capitals with underscores; the type is made of it. It must be called before a byte of
// the body.
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
