package main

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

// controlStream is a source's durable stream as its outbox publishes on it. A
// full stream refuses: rows wait in the outbox, and nothing old is dropped.
type controlStream struct {
	broker *broker.Broker
	source control.Source
}

func streamOf(s control.Source) broker.Stream {
	return broker.Stream{Name: s.Stream(), Subjects: []string{s.Subject()}, RefuseWhenFull: true}
}

func (s controlStream) Ensure(ctx context.Context) error {
	return s.broker.EnsureStream(ctx, streamOf(s.source))
}

// Last asks for the newest message of the subject: the one at the stream's last
// sequence may have been deleted, which does not make the stream empty. From a
// damaged file the server counts messages that it does not find by their subject;
// they are looked for one by one.
func (s controlStream) Last(ctx context.Context) (m outbox.Message, sequence uint64, found bool, err error) {
	info, err := s.broker.StreamInfo(ctx, s.source.Stream())
	if err != nil || info.Messages == 0 {
		return m, info.LastSeq, false, err
	}
	last, err := s.broker.LastMessage(ctx, s.source.Stream(), s.source.Subject())
	switch {
	case err == nil:
		return messageOf(&last), max(info.LastSeq, last.Sequence), true, nil
	case !errors.Is(err, broker.ErrNotFound):
		return m, 0, false, err
	}
	m, found, err = s.lastFrom(ctx, info.LastSeq, max(info.FirstSeq, 1), func(*outbox.Message) bool { return true })
	return m, info.LastSeq, found, err
}

// lastFrom walks back from a sequence to another and returns the first message
// that is wanted.
func (s controlStream) lastFrom(ctx context.Context, from, to uint64, wanted func(*outbox.Message) bool) (outbox.Message, bool, error) {
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

func (s controlStream) At(ctx context.Context, sequence uint64) (outbox.Message, bool, error) {
	m, err := s.broker.Message(ctx, s.source.Stream(), sequence)
	if errors.Is(err, broker.ErrNotFound) {
		return outbox.Message{}, false, nil
	}
	return messageOf(&m), err == nil, err
}

func (s controlStream) Publish(ctx context.Context, messages []outbox.Outgoing) ([]outbox.Ack, error) {
	out := make([]broker.Outgoing, len(messages))
	for i, m := range messages {
		out[i] = broker.Outgoing{Subject: s.source.Subject(), Data: m.Data, PublishOptions: broker.PublishOptions{
			MsgID: m.MsgID, Signature: m.Signature, ExpectLastMsgID: m.AfterMsgID, ExpectLastSeq: m.AfterSequence, ExpectStream: s.source.Stream(),
		}}
	}
	n, given, err := s.broker.PublishBatch(ctx, out)
	acks := make([]outbox.Ack, n)
	for i := range acks {
		acks[i] = outbox.Ack{Sequence: given[i].Sequence, Duplicate: given[i].Duplicate}
	}
	if errors.Is(err, broker.ErrSequence) {
		err = fmt.Errorf("%w: %w", outbox.ErrConflict, err)
	}
	return acks, err
}

// snapshotPaths are where the sources show their control snapshots.
var snapshotPaths = map[control.Source]string{
	control.Account:  "/account/control-snapshot",
	control.Security: "/stocks/control-snapshot",
}

// snapshotFetcher gets control snapshots over HTTP from this installation's services.
type snapshotFetcher struct {
	client *http.Client
	scheme string
	room   func(control.Source) int // records that the engine has room for
	token  func() (string, error)   // "" when the endpoints ask for none
}

// maxSnapshotBytes is how long the text of a control snapshot can be for its reader.
const maxSnapshotBytes = strictjson.MaxBytes

// errSnapshotSize is a snapshot that is longer than can be read.
var errSnapshotSize = errors.New("control snapshot is too long")

// newSnapshotFetcher talks TLS when the services do.
func newSnapshotFetcher(
	serverTLS *tls.Config, room func(control.Source) int, token func() (string, error),
) *snapshotFetcher {
	f := &snapshotFetcher{client: &http.Client{}, scheme: "http", token: token, room: room}
	if serverTLS != nil {
		f.scheme = "https"
		f.client.Transport = &http.Transport{TLSClientConfig: pinned(serverTLS)}
	}
	return f
}

// pinned is how this installation's own services are dialled: the certificate is the
// very one that they were given, whatever name it carries and whoever has signed it.
// Nil for nil: they do not talk TLS.
func pinned(serverTLS *tls.Config) *tls.Config {
	if serverTLS == nil {
		return nil
	}
	own := serverTLS.Certificates[0].Certificate[0]
	return &tls.Config{
		MinVersion:         tls.VersionTLS12,
		InsecureSkipVerify: true, // VerifyConnection is stricter: it wants this one certificate
		VerifyConnection: func(state tls.ConnectionState) error {
			if string(state.PeerCertificates[0].Raw) != string(own) {
				return errors.New("another certificate than http.tls-cert")
			}
			return nil
		},
	}
}

// fetch reads and verifies the snapshot of a source whose service listens on address.
func (f *snapshotFetcher) fetch(ctx context.Context, s control.Source, address string) (control.Snapshot, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, f.scheme+"://"+reachable(address)+snapshotPaths[s], nil)
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

// read reads a snapshot, which is never cut: one that is too long is an error that
// says so, and which setting allows for more records than can be read.
func (f *snapshotFetcher) read(s control.Source, from io.Reader) ([]byte, error) {
	body, err := io.ReadAll(io.LimitReader(from, maxSnapshotBytes+1))
	if err == nil && len(body) > maxSnapshotBytes {
		err = fmt.Errorf("control snapshot of %s: more than the %d bytes that can be read, although %s is %d: %w",
			s, maxSnapshotBytes, roomSettings[s], f.room(s), errSnapshotSize)
	}
	return body, err
}

// reachable is an address at which a listener can be called: one on all
// interfaces is called over the loopback.
func reachable(address string) string {
	host, port, err := net.SplitHostPort(address)
	if ip := net.ParseIP(host); err == nil && ip.IsUnspecified() {
		return net.JoinHostPort("127.0.0.1", port)
	}
	return address
}

// controlFeed is one source on its way into the replica: seeding, publishing,
// following.
type controlFeed struct {
	source    control.Source
	stream    controlStream
	seed      func(context.Context) (int, error)
	outbox    *outbox.Outbox
	bootstrap atomic.Pointer[bootstrap.Bootstrap] // nil: seeds only, or it does not follow yet; writer: replicate
	sink      atomic.Pointer[controlSink]
	log       *slog.Logger
}

// The back-off of seeding, which waits for a database that is not there yet.
const (
	seedBackoff    = 100 * time.Millisecond
	seedBackoffMax = 5 * time.Second
)

// follow seeds the source's tables when they are empty, then follows the source:
// a replica must never take the universe of tables that are not filled yet.
func (f *controlFeed) follow(ctx context.Context) error {
	for backoff := seedBackoff; ; backoff = min(2*backoff, seedBackoffMax) {
		n, err := f.seed(ctx)
		if err == nil {
			if n > 0 {
				f.log.Info("seeded", "source", string(f.source), "records", n)
			}
			break
		}
		if backoff == seedBackoff && ctx.Err() == nil { // a stop is no finding
			f.log.Warn("seeding waits", "source", string(f.source), "error", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(backoff):
		}
	}
	b := f.bootstrap.Load()
	if b == nil {
		<-ctx.Done()
		return nil
	}
	return b.Run(ctx)
}
