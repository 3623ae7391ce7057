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
	"posttrade/sidecars/broker"
	"posttrade/sidecars/control"
	"posttrade/sidecars/outbox"
)

// Stream is the durable stream on which the outbox of a source publishes. A full stream refuses new
// messages: rows wait in the outbox, and no old message is dropped.
type Stream struct {
	Broker *broker.Broker
	Source control.Source
}

func streamOf(s control.Source) broker.Stream {
	return broker.Stream{Name: s.Stream(), Subjects: []string{s.Subject()}, RefuseWhenFull: true}
}

// Ensure makes the stream, or checks the existing one.
func (s Stream) Ensure(ctx context.Context) error {
	return s.Broker.EnsureStream(ctx, streamOf(s.Source))
}

// Last returns the newest message of the subject. The message at the stream's last sequence may
// have been deleted, which does not make the stream empty. After damage to its file the server
// counts messages that it does not find by their subject; those are looked up one by one.
func (s Stream) Last(ctx context.Context) (m outbox.Message,
	sequence uint64, found bool, err error) {
	info, err := s.Broker.StreamInfo(ctx, s.Source.Stream())
	if err != nil || info.Messages == 0 {
		return m, info.LastSeq, false, err
	}
	last, err := s.Broker.LastMessage(ctx, s.Source.Stream(), s.Source.Subject())
	switch {
	case err == nil:
		return messageOf(&last), max(info.LastSeq, last.Sequence), true, nil
	case !errors.Is(err, broker.ErrNotFound):
		return m, 0, false, err
	}
	m, found, err = s.lastFrom(ctx, info.LastSeq, max(info.FirstSeq, 1), func(*outbox.Message) bool {
		return true
	})
	return m, info.LastSeq, found, err
}

// lastFrom walks back from one sequence to another and returns the first wanted message.
func (s Stream) lastFrom(ctx context.Context, from, to uint64,
	wanted func(*outbox.Message) bool) (outbox.Message, bool, error) {
	for at := from; at >= to; at-- {
		if m, found, err := s.At(ctx, at); err != nil || found && wanted(&m) {
			return m, found, err
		}
	}
	return outbox.Message{}, false, nil
}

func messageOf(m *broker.Message) outbox.Message {
	return outbox.Message{Sequence: m.Sequence, MsgID: m.MsgID, Data: m.Data, Signature: m.Signature}
}

// At returns the message at a stream sequence, false when there is none.
func (s Stream) At(ctx context.Context, sequence uint64) (outbox.Message, bool, error) {
	m, err := s.Broker.Message(ctx, s.Source.Stream(), sequence)
	if errors.Is(err, broker.ErrNotFound) {
		return outbox.Message{}, false, nil
	}
	return messageOf(&m), err == nil, err
}

// Publish stores messages in order and returns an ack for each before the first that failed.
func (s Stream) Publish(ctx context.Context, messages []outbox.Outgoing) ([]outbox.Ack, error) {
	out := make([]broker.Outgoing, len(messages))
	for i, m := range messages {
		out[i] = broker.Outgoing{Subject: s.Source.Subject(), Data: m.Data,
			PublishOptions: broker.PublishOptions{
				MsgID: m.MsgID, Signature: m.Signature, ExpectLastMsgID: m.AfterMsgID,
				ExpectLastSeq: m.AfterSequence, ExpectStream: s.Source.Stream(),
			}}
	}
	n, given, err := s.Broker.PublishBatch(ctx, out)
	acks := make([]outbox.Ack, n)
	for i := range acks {
		acks[i] = outbox.Ack{Sequence: given[i].Sequence, Duplicate: given[i].Duplicate}
	}
	if errors.Is(err, broker.ErrSequence) {
		err = fmt.Errorf("%w: %w", outbox.ErrConflict, err)
	}
	return acks, err
}

// SnapshotPaths are the paths at which the sources serve their control snapshots.
var SnapshotPaths = map[control.Source]string{
	control.Account:  "/account/control-snapshot",
	control.Security: "/stocks/control-snapshot",
}

// snapshotFetcher gets control snapshots over HTTP from this installation's services.
type snapshotFetcher struct {
	client *http.Client
	scheme string
	room   func(control.Source) int // how many records the engine has room for
	token  func() (string, error)   // "" when the endpoints need none
}

// MaxSnapshotBytes is the length of the longest control snapshot that can be read.
const MaxSnapshotBytes = strictjson.MaxBytes

// ErrSnapshotSize reports a snapshot that is too long to be read.
var ErrSnapshotSize = errors.New("control snapshot is too long")

// NewSnapshotFetcher returns a fetcher that uses TLS when the services do.
func NewSnapshotFetcher(
	serverTLS *tls.Config, room func(control.Source) int, token func() (string, error),
) *snapshotFetcher {
	f := &snapshotFetcher{client: &http.Client{}, scheme: "http", token: token, room: room}
	if serverTLS != nil {
		f.scheme = "https"
		f.client.Transport = &http.Transport{TLSClientConfig: Pinned("http.tls-cert", serverTLS)}
	}
	return f
}

// Pinned returns the configuration for connections to this installation's own services. It accepts
// only the certificate that they were configured with, whatever name it carries and whichever
// authority has signed it. It returns nil for nil: the services do not use TLS.
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
func Reachable(address string) string {
	host, port, err := net.SplitHostPort(address)
	if ip := net.ParseIP(host); err == nil && ip.IsUnspecified() {
		return net.JoinHostPort("127.0.0.1", port)
	}
	return address
}

// Feed is the path of one source into the replica: seeding, publishing, following.
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
