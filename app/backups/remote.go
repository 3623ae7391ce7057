package backups

import (
	"context"
	"crypto/tls"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"posttrade/journal"
)

// Remote is the source of a backup of a process that runs: its admin listener.
//
// It implements what package backup wants of a source. One goroutine uses it.
type Remote struct {
	// scheme://host:port of the admin listener, without a slash at the end.
	address string
	// Makes a bearer token for each request, because a long backup can outlive one.
	token  func() (string, error)
	client http.Client
	// JournalOnly says that Tables is not called: the server counts the backup when it has sent the
	// journal. It is set before the first call.
	JournalOnly bool
	// number is that of the last stream; "" before it.
	number string
}

// NewRemote returns a source. token is called for every request.
//
// address is the admin listener's, token gives an administrator's token. secure is nil for the
// system's certificate authorities. NewRemote connects to nothing.
func NewRemote(address string, token func() (string, error), secure *tls.Config) *Remote {
	transport := &http.Transport{
		TLSClientConfig: secure, ResponseHeaderTimeout: headerTime, DisableCompression: true,
		ReadBufferSize: chunkBytes,
	}
	return &Remote{address: strings.TrimRight(address, "/"), token: token,
		client: http.Client{Transport: transport}}
}

// headerTime is how long a server may take to begin: it verifies a snapshot first.
//
// After the headers there is no limit on the whole: a journal can be large. The server's own limit
// for each write ends a stream that stands still.
const headerTime = 5 * time.Minute

// Journal is the stream behind a point.
//
// after is the commit that the backup already has, zero for all of the journal; genesis is that of
// the backup, in hex. journal.ErrBase says that this journal does not go on from there: a full
// backup is needed. The stream has its own framing and hash, so an answer that was cut short is
// noticed by its reader; ErrUnread says that the server itself could not go on. The caller closes
// it.
func (r *Remote) Journal(ctx context.Context, genesis string,
	after journal.Point) (io.ReadCloser, error) {
	query := url.Values{}
	if after.InputSeq > 0 {
		query.Set(queryGenesis, genesis)
		query.Set(querySequence, strconv.FormatUint(after.InputSeq, 10))
		query.Set(queryTrade, strconv.FormatUint(after.TradeSeq, 10))
		query.Set(queryChain, hex.EncodeToString(after.Chain[:]))
	}
	answer, err := r.get(ctx, JournalPath, query)
	if err != nil {
		return nil, err
	}
	r.number = answer.Header.Get(streamHeader)
	return &stream{ReadCloser: answer.Body, why: func() error {
		return r.failure(ctx, answer.Header.Get(streamHeader))
	}}, nil
}

// ErrUnread: the server could not read its own journal. The error that wraps it says what and why,
// in the server's words.
var ErrUnread = errors.New("the server could not read its journal")

// stream is an answer that asks the server when it ends early.
type stream struct {
	io.ReadCloser
	why func() error // nil: not known
}

// Read reads the answer. After its first error it may be called again.
func (s *stream) Read(p []byte) (int, error) {
	n, err := s.ReadCloser.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		if why := s.why(); why != nil {
			err = why
		}
	}
	return n, err
}

// failure is why a stream has ended early; nil when the server does not say, as one that has ended
// or that is older.
func (r *Remote) failure(ctx context.Context, number string) error {
	if number == "" {
		return nil
	}
	answer, err := r.get(ctx, FailurePath, url.Values{queryStream: {number}})
	if err != nil {
		return nil
	}
	defer answer.Body.Close()
	why, err := io.ReadAll(io.LimitReader(answer.Body, 1<<16))
	if err != nil {
		return nil
	}
	return fmt.Errorf("%s%s: %w: %s", r.address, JournalPath, ErrUnread, why)
}

// Tables are the rows that no journal gives again.
//
// A nil reader without an error means that this process has no rows; why is the reason. The caller
// closes rows.
func (r *Remote) Tables(ctx context.Context) (rows io.ReadCloser, why string, err error) {
	answer, err := r.get(ctx, TablesPath, nil)
	if err != nil {
		return nil, "", err
	}
	if answer.StatusCode == http.StatusNoContent {
		return nil, answer.Header.Get(whyHeader), answer.Body.Close()
	}
	return answer.Body, "", nil
}

// get asks for a resource; an answer other than 2xx is an error.
//
// The error has the code and detail of the problem document, if there is one.
func (r *Remote) get(ctx context.Context, path string, query url.Values) (*http.Response, error) {
	at := r.address + path
	if len(query) > 0 {
		at += "?" + query.Encode()
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, at, nil)
	if err != nil {
		return nil, err
	}
	token, err := r.token()
	if err != nil {
		return nil, err
	}
	request.Header.Set("Authorization", "Bearer "+token)
	if r.number != "" {
		request.Header.Set(streamHeader, r.number)
	}
	if r.JournalOnly {
		request.Header.Set(aloneHeader, "1")
	}
	answer, err := r.client.Do(request)
	if err != nil {
		return nil, err
	}
	if answer.StatusCode/100 == 2 {
		return answer, nil
	}
	defer answer.Body.Close()
	var said struct {
		Code   string `json:"code"`
		Detail string `json:"detail"`
	}
	body, _ := io.ReadAll(io.LimitReader(answer.Body, 1<<16)) // without it the status has to do
	_ = json.Unmarshal(body, &said)
	err = fmt.Errorf("%s%s answers %d %s %s", r.address, path, answer.StatusCode, said.Code,
		said.Detail)
	if said.Code == "BASE_UNKNOWN" {
		err = fmt.Errorf("%w: %w", journal.ErrBase, err)
	}
	return nil, err
}
