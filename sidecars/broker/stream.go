package broker

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// Stream holds the settings of a stream on which this program relies. Storage is always files and
// retention is always by limits.
type Stream struct {
	Name string
	// Subjects must be exactly the stream's: EnsureStream refuses one that takes more.
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
//
// Messages is less than LastSeq-FirstSeq+1 when messages in between were deleted.
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
//
// It may be called at any time and by any number of processes. Errors: ErrStream, ErrUnavailable,
// or that of a server that refuses to create the stream.
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
//
// Two looks are enough for two clients that create the stream at once. A stream that is created and
// deleted all the time is ErrUnavailable, not a loop.
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

// config are the settings of a new stream. JetStream writes "no limit" as -1.
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
//
// It names the first difference, with both values, for an operator.
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
