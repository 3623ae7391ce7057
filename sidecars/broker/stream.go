package broker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Stream holds the settings of a stream on which this program relies. Storage is always files and
// retention is always by limits.
type Stream struct {
	Name     string
	Subjects []string
	// Duplicates is the window in which a message id is stored once; 0 is the server's two minutes.
	Duplicates time.Duration
	// MaxAge, MaxBytes and MaxMessages apply when the stream is created; 0 is no limit. The operator
	// may change them, Replicas, and every other setting that EnsureStream does not name.
	MaxAge      time.Duration
	MaxBytes    int64
	MaxMessages int64
	// RefuseWhenFull makes a stream at its limits refuse new messages (ErrFull) instead
	// of dropping the oldest.
	RefuseWhenFull bool
	// Replicas is for a cluster; 0 is 1.
	Replicas int
}

// StreamInfo describes the content of a stream at one moment.
type StreamInfo struct {
	Name             string
	FirstSeq         uint64 // first and last stream sequence; FirstSeq = LastSeq+1 when it is empty
	LastSeq          uint64
	Messages         uint64
	Bytes            uint64
	Consumers        int
	CreatedAt        time.Time
	DuplicatesWindow time.Duration
}

// EnsureStream creates the stream, or checks the existing one. It never changes a stream. A
// difference that breaks a promise is ErrStream and names the field: storage other than files,
// retention other than limits, other subjects (additional ones too: foreign messages would stand
// between ours), a shorter duplicates window, a limit of messages per subject, no acknowledgements,
// sealed, a mirror, sources or a subject transform. The operator may choose limits of age, size and
// count, replicas, placement, compression, discard policy and descriptions.
func (b *Broker) EnsureStream(ctx context.Context, want Stream) error {
	ctx, cancel := deadline(ctx)
	defer cancel()
	s, err := b.session(ctx)
	if err != nil {
		return fmt.Errorf("broker: ensure stream=%s: %w", want.Name, err)
	}
	ctx, unbind := s.bound(ctx)
	defer unbind()
	if err := s.ensure(ctx, want); err != nil {
		return fmt.Errorf("broker: ensure stream=%s: %w", want.Name, err)
	}
	return nil
}

// storePause is the pause before the next attempt to make a store.
const storePause = 20 * time.Millisecond

// ensure looks first. Creating a stream that exists would succeed with the same settings, and with
// others would fail without naming them.
func (s *session) ensure(ctx context.Context, want Stream) error {
	for looks := 0; looks < 2; {
		there, err := s.js.Stream(ctx, want.Name)
		if err == nil {
			return want.differs(there.CachedInfo().Config)
		}
		if err = asked(ctx, err); !errors.Is(err, ErrNotFound) {
			return err
		}
		made, err := s.js.CreateStream(ctx, want.config())
		if err == nil {
			return want.differs(made.CachedInfo().Config)
		}
		var api *apiError
		if err = asked(ctx, err); errors.As(err, &api) && api.ErrCode == codeSubjectsOverlap {
			return fmt.Errorf("%w: subjects=%v belong to another stream", ErrStream, want.Subjects)
		} else if !errors.As(err, &api) ||
			api.ErrCode != codeStreamNameInUse && api.ErrCode != codeNoStore {
			return err
		}
		if api.ErrCode == codeStreamNameInUse {
			looks++ // another client made it between the two requests
			continue
		}
		// The files of a deleted stream of this name may still be in removal.
		select {
		case <-ctx.Done():
			return err
		case <-time.After(storePause):
		}
	}
	return fmt.Errorf("%w: it comes and goes", ErrUnavailable)
}

func (want Stream) config() jetstream.StreamConfig {
	unlimited := func(n int64) int64 {
		if n <= 0 {
			return -1
		}
		return n
	}
	c := jetstream.StreamConfig{
		Name: want.Name, Subjects: want.Subjects, Duplicates: want.Duplicates,
		Storage: jetstream.FileStorage, Retention: jetstream.LimitsPolicy,
		MaxAge: want.MaxAge, MaxBytes: unlimited(want.MaxBytes), MaxMsgs: unlimited(want.MaxMessages),
		MaxMsgsPerSubject: -1, MaxMsgSize: -1, MaxConsumers: -1, Replicas: max(want.Replicas, 1),
	}
	if want.RefuseWhenFull {
		c.Discard = jetstream.DiscardNew
	}
	return c
}

// differs compares a stream's settings with those on which this program relies.
func (want Stream) differs(have jetstream.StreamConfig) error {
	subjects := func(list []string) []string { return slices.Sorted(slices.Values(list)) }
	differ := func(field string, have, want any) error {
		return fmt.Errorf("%w: %s is %v, want %v", ErrStream, field, have, want)
	}
	switch {
	case have.Storage != jetstream.FileStorage:
		return differ("storage", have.Storage, jetstream.FileStorage)
	case have.Retention != jetstream.LimitsPolicy:
		return differ("retention", have.Retention, jetstream.LimitsPolicy)
	case !slices.Equal(subjects(have.Subjects), subjects(want.Subjects)):
		return differ("subjects", have.Subjects, want.Subjects)
	case have.Duplicates < want.Duplicates:
		return differ("duplicate_window", have.Duplicates, fmt.Sprintf("at least %v", want.Duplicates))
	case have.MaxMsgsPerSubject > 0:
		return differ("max_msgs_per_subject", have.MaxMsgsPerSubject, "none")
	case have.NoAck:
		return differ("no_ack", true, false)
	case have.Sealed:
		return differ("sealed", true, false)
	case have.Mirror != nil:
		return differ("mirror", have.Mirror.Name, "none")
	case len(have.Sources) > 0:
		return differ("sources", len(have.Sources), "none")
	case have.SubjectTransform != nil:
		return differ("subject_transform", have.SubjectTransform.Destination, "none")
	}
	return nil
}

// StreamInfo returns what a stream holds; ErrNotFound when there is no such stream.
func (b *Broker) StreamInfo(ctx context.Context, stream string) (StreamInfo, error) {
	ctx, cancel := deadline(ctx)
	defer cancel()
	s, err := b.session(ctx)
	if err != nil {
		return StreamInfo{}, fmt.Errorf("broker: info stream=%s: %w", stream, err)
	}
	ctx, unbind := s.bound(ctx)
	defer unbind()
	there, err := s.js.Stream(ctx, stream)
	if err != nil {
		return StreamInfo{}, fmt.Errorf("broker: info stream=%s: %w", stream, asked(ctx, err))
	}
	i := there.CachedInfo()
	return StreamInfo{
		Name: i.Config.Name, FirstSeq: i.State.FirstSeq, LastSeq: i.State.LastSeq,
		Messages: i.State.Msgs, Bytes: i.State.Bytes, Consumers: i.State.Consumers,
		CreatedAt: i.Created, DuplicatesWindow: i.Config.Duplicates,
	}, nil
}

// Message reads the message at a stream sequence; ErrNotFound when it never existed or is gone. The
// stream's leader answers, not a replica that may lag.
func (b *Broker) Message(ctx context.Context, stream string, sequence uint64) (Message, error) {
	m, err := b.get(ctx, stream, storedRequest{Sequence: max(sequence, 1)})
	if err == nil && m.Sequence != sequence {
		err = ErrNotFound // sequences begin at 1
	}
	if err != nil {
		return Message{}, fmt.Errorf("broker: read stream=%s sequence=%d: %w", stream, sequence, err)
	}
	return m, nil
}

// LastMessage reads the newest message of a subject, which may have wildcards; an empty subject is
// the whole stream. ErrNotFound when there is none.
func (b *Broker) LastMessage(ctx context.Context, stream, subject string) (Message, error) {
	if subject == "" {
		subject = ">"
	}
	m, err := b.get(ctx, stream, storedRequest{LastBySubject: subject})
	if err != nil {
		return Message{}, fmt.Errorf("broker: read last stream=%s subject=%s: %w", stream, subject, err)
	}
	return m, nil
}

type storedRequest struct {
	Sequence      uint64 `json:"seq,omitempty"`
	LastBySubject string `json:"last_by_subj,omitempty"`
}

type storedResponse struct {
	Error   *apiError `json:"error"`
	Message struct {
		Subject  string    `json:"subject"`
		Sequence uint64    `json:"seq"`
		Header   []byte    `json:"hdrs"`
		Data     []byte    `json:"data"`
		Time     time.Time `json:"time"`
	} `json:"message"`
}

func (b *Broker) get(ctx context.Context, stream string, request storedRequest) (Message, error) {
	ctx, cancel := deadline(ctx)
	defer cancel()
	s, err := b.session(ctx)
	if err != nil {
		return Message{}, err
	}
	ctx, unbind := s.bound(ctx)
	defer unbind()
	body, err := json.Marshal(request)
	if err != nil {
		return Message{}, err
	}
	answer, err := s.conn.RequestWithContext(ctx, "$JS.API.STREAM.MSG.GET."+stream, body)
	if err != nil {
		return Message{}, asked(ctx, err)
	}
	var r storedResponse
	if err := json.Unmarshal(answer.Data, &r); err != nil {
		return Message{}, fmt.Errorf("%w: unreadable answer: %w", ErrUnavailable, err)
	}
	if r.Error != nil {
		return Message{}, r.Error
	}
	m := Message{
		Subject: r.Message.Subject, Data: r.Message.Data,
		Sequence: r.Message.Sequence, PublishedAt: r.Message.Time,
	}
	if len(r.Message.Header) > 0 {
		header, err := nats.DecodeHeadersMsg(r.Message.Header)
		if err != nil {
			return Message{}, fmt.Errorf("%w: unreadable header: %w", ErrUnavailable, err)
		}
		m.MsgID, m.Signature = header.Get(headerMsgID), header.Get(headerSignature)
	}
	return m, nil
}
