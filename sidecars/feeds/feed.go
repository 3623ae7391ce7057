package feeds

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"posttrade/matcher/strictjson"
	"posttrade/sidecars/bootstrap"
	"posttrade/sidecars/control"
	"posttrade/sidecars/outbox"
)

// SnapshotPaths are the paths at which the sources serve their control snapshots.
//
// They are a part of the HTTP interface. Nothing writes to the map.
var SnapshotPaths = map[control.Source]string{
	control.Account:  "/account/control-snapshot",
	control.Security: "/stocks/control-snapshot",
}

// snapshotFetcher gets control snapshots over HTTP from this installation's services.
//
// The services are in this process or in another of this installation; the way is HTTP in both
// cases, so that the snapshot is exactly what other replicas get.
type snapshotFetcher struct {
	client *http.Client
	scheme string
	room   func(control.Source) int // how many records the engine has room for
	token  func() (string, error)   // "" when the endpoints need none
}

// MaxSnapshotBytes is the length of the longest control snapshot that can be read.
//
// The reader refuses longer input, so reading more would be in vain.
const MaxSnapshotBytes = strictjson.MaxBytes

// ErrSnapshotSize reports a snapshot that is too long to be read.
var ErrSnapshotSize = errors.New("control snapshot is too long")

// NewSnapshotFetcher returns a fetcher that uses TLS when the services do.
//
// serverTLS is the configuration of the services' own listeners, nil without TLS. room and token
// are called by Fetch, on its caller's goroutine.
func NewSnapshotFetcher(
	serverTLS *tls.Config, room func(control.Source) int, token func() (string, error),
) *snapshotFetcher {
	// The transport has no Proxy: the requests carry a token of this installation, which a proxy of
	// the environment must not see.
	f := &snapshotFetcher{scheme: "http", token: token, room: room,
		client: &http.Client{Transport: &http.Transport{
			TLSClientConfig: Pinned("http.tls-cert", serverTLS)}}}
	if serverTLS != nil {
		f.scheme = "https"
	}
	return f
}

// Pinned returns the configuration for connections to this installation's own services. It accepts
// only the certificate that they were configured with, whatever name it carries and whichever
// authority has signed it. It returns nil for nil: the services do not use TLS.
//
// setting names the certificate in the error of a server that shows another one. A certificate that
// was renewed on disk is accepted as soon as the listener uses it.
func Pinned(setting string, serverTLS *tls.Config) *tls.Config {
	if serverTLS == nil {
		return nil
	}
	own := func() (*tls.Config, error) { return serverTLS, nil }
	if renewed := serverTLS.GetConfigForClient; renewed != nil { // its certificate can change
		own = func() (*tls.Config, error) { return renewed(nil) }
	}
	return &tls.Config{
		MinVersion:         tls.VersionTLS12,
		InsecureSkipVerify: true, // VerifyConnection is stricter: it accepts this one certificate
		VerifyConnection: func(state tls.ConnectionState) error {
			now, err := own()
			if err != nil {
				return err
			}
			if string(state.PeerCertificates[0].Raw) != string(now.Certificates[0].Certificate[0]) {
				return errors.New("another certificate than " + setting)
			}
			return nil
		},
	}
}

// Fetch reads and verifies the snapshot of a source; its service listens on address.
//
// It takes as long as ctx allows. Errors: those of control.ParseSnapshot, ErrSnapshotSize, and
// those of the way; bootstrap takes each of the latter for a disconnection.
func (f *snapshotFetcher) Fetch(ctx context.Context, s control.Source,
	address string) (control.Snapshot, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet,
		f.scheme+"://"+Reachable(address)+SnapshotPaths[s], nil)
	if err != nil {
		return control.Snapshot{}, err
	}
	token, err := f.token()
	if err != nil {
		return control.Snapshot{}, err
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	answer, err := f.client.Do(request)
	if err != nil {
		return control.Snapshot{}, err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return control.Snapshot{}, fmt.Errorf("control snapshot of %s: status %d", s, answer.StatusCode)
	}
	body, err := f.read(s, answer.Body)
	if err != nil {
		return control.Snapshot{}, err
	}
	return control.ParseSnapshot(s, body)
}

// read reads a snapshot and never cuts it. The error for one that is too long names the setting
// that allows for more records than can be read.
func (f *snapshotFetcher) read(s control.Source, from io.Reader) ([]byte, error) {
	body, err := io.ReadAll(io.LimitReader(from, MaxSnapshotBytes+1))
	if err == nil && len(body) > MaxSnapshotBytes {
		err = fmt.Errorf(
			"control snapshot of %s: more than the %d bytes that can be read, although %s is %d: %w",
			s, MaxSnapshotBytes, RoomSettings[s], f.room(s), ErrSnapshotSize)
	}
	return body, err
}

// Reachable returns an address at which a listener can be called: one on all interfaces is called
// over the loopback.
//
// An address that is not host:port is returned as it is.
func Reachable(address string) string {
	host, port, err := net.SplitHostPort(address)
	if ip := net.ParseIP(host); err == nil && ip.IsUnspecified() {
		return net.JoinHostPort("127.0.0.1", port)
	}
	return address
}

// Feed is the path of one source into the replica: seeding, publishing, following.
//
// Source, Stream, Seed, Outbox and Log are set before any goroutine uses it.
type Feed struct {
	Source control.Source
	Stream Stream
	Seed   func(context.Context) (int, error)
	Outbox *outbox.Outbox
	// Nil: seeds only, or does not follow yet; writer: replicate.
	Bootstrap atomic.Pointer[bootstrap.Bootstrap]
	Sink      atomic.Pointer[Sink]
	Log       *slog.Logger
}

// The back-off of seeding while the database is not available.
const (
	seedBackoff    = 100 * time.Millisecond
	seedBackoffMax = 5 * time.Second
)

// Follow seeds the source's tables when they are empty, then follows the source: a replica must
// never take the universe of tables that are not filled yet.
//
// It returns nil, after ctx ended. Without a Bootstrap it only seeds. Seed changes nothing when a
// table has records, so every start calls it.
func (f *Feed) Follow(ctx context.Context) error {
	for backoff := seedBackoff; ; backoff = min(2*backoff, seedBackoffMax) {
		n, err := f.Seed(ctx)
		if err == nil {
			if n > 0 {
				f.Log.Info("seeded", "source", string(f.Source), "records", n)
			}
			break
		}
		if backoff == seedBackoff && ctx.Err() == nil { // a stop is not an error
			f.Log.Warn("seeding waits", "source", string(f.Source), "error", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(backoff):
		}
	}
	b := f.Bootstrap.Load()
	if b == nil {
		<-ctx.Done()
		return nil
	}
	return b.Run(ctx)
}
