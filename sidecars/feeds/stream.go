package feeds

import (
	"context"
	"errors"
	"fmt"

	"posttrade/sidecars/broker"
	"posttrade/sidecars/control"
	"posttrade/sidecars/outbox"
)

// Stream is the durable stream on which the outbox of a source publishes. A full stream refuses new
// messages: rows wait in the outbox, and no old message is dropped.
//
// It implements outbox.Stream. It is a value without state; any goroutine.
type Stream struct {
	Broker *broker.Broker
	Source control.Source
}

// streamOf are the settings of a source's stream. It has one subject, so that the sequences of a
// subscription show every hole.
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
	e outbox.Extent, found bool, err error) {
	info, err := s.Broker.StreamInfo(ctx, s.Source.Stream())
	e = outbox.Extent{First: info.FirstSeq, Last: info.LastSeq}
	if err != nil || info.Messages == 0 {
		return m, e, false, err
	}
	last, err := s.Broker.LastMessage(ctx, s.Source.Stream(), s.Source.Subject())
	switch {
	case err == nil:
		e.Last = max(e.Last, last.Sequence)
		return messageOf(&last), e, true, nil
	case !errors.Is(err, broker.ErrNotFound):
		return m, e, false, err
	}
	m, found, err = s.lastFrom(ctx, e.Last, max(e.First, 1), func(*outbox.Message) bool {
		return true
	})
	return m, e, found, err
}

// lastFrom walks back from one sequence to another and returns the first wanted message.
//
// It costs a round trip for each sequence. to is at least 1.
func (s Stream) lastFrom(ctx context.Context, from, to uint64,
	wanted func(*outbox.Message) bool) (outbox.Message, bool, error) {
	for at := from; at >= to; at-- {
		if m, found, err := s.At(ctx, at); err != nil || found && wanted(&m) {
			return m, found, err
		}
	}
	return outbox.Message{}, false, nil
}

// messageOf shares the data with m.
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
