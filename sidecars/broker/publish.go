package broker

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
)

const (
	// A batch keeps at most this much unacknowledged in flight. JetStream refuses messages when ten
	// thousand wait for a stream.
	//
	// windowMessages also bounds the room for answers: an answer to each message in flight fits.
	windowMessages = 512
	windowBytes    = 1 << 20
)

// PublishOptions are the conditions of one message.
type PublishOptions struct {
	// MsgID makes a second copy within the stream's duplicates window a no-op, which is acknowledged
	// with Ack.Duplicate.
	MsgID string
	// ExpectLastMsgID is the MsgID that the stream's last message must have, "" for any. It also holds
	// after the duplicates window. The server looks for duplicates first: a repeated message gets an
	// Ack with Duplicate, whatever the stream's last message is.
	ExpectLastMsgID string
	// ExpectLastSeq is the stream's last sequence, nil for any. The server checks it before it looks
	// for duplicates: a repeated message is ErrSequence, not a duplicate.
	ExpectLastSeq *uint64
	// ExpectStream is the stream that must answer, "" for any.
	ExpectStream string
	// Signature is sent with the message unchanged, "" for none.
	Signature string
}

// Ack is the stream's confirmation that a message is stored.
type Ack struct {
	Stream   string
	Sequence uint64
	// Duplicate: the stream already had the message id, at Sequence; nothing was stored now.
	Duplicate bool
}

// Outgoing is one message of a batch.
type Outgoing struct {
	Subject string
	Data    []byte
	PublishOptions
}

// Publish stores one message and returns the stream's acknowledgement.
//
//   - ErrSequence: the stream's last message is not the expected one. ErrFull: no space. In both
//     cases nothing is stored.
//   - ErrUnavailable: no connection, no stream behind the subject, or no answer within five seconds
//     or ctx. The message may be stored.
//
// It costs one round trip and, on the embedded server, one sync of the disk.
func (b *Broker) Publish(ctx context.Context, subject string, data []byte,
	o PublishOptions) (Ack, error) {
	_, acks, err := b.PublishBatch(ctx, []Outgoing{{Subject: subject, Data: data, PublishOptions: o}})
	if err != nil {
		return Ack{}, err
	}
	return acks[0], nil
}

// PublishBatch stores messages in order, with many in flight at a time. It returns how many were
// acknowledged before the first failure; acks has that many. The error, if any, is that of the
// first failure, as Publish returns it.
//
// Messages behind a failed one may have been sent already. When each names its predecessor's id in
// ExpectLastMsgID, the stream refuses them.
//
// It needs about one round trip for each window of messages. data is not copied and must not change
// before it returns. A message that was sent behind the failed one may be stored, and out does not
// tell: after any error the caller looks at the stream's end.
func (b *Broker) PublishBatch(ctx context.Context,
	out []Outgoing) (acked int, acks []Ack, err error) {
	if len(out) == 0 {
		return 0, nil, nil
	}
	s, err := b.session(ctx)
	if err != nil {
		return 0, nil, fmt.Errorf("broker: publish subject=%s: %w", out[0].Subject, err)
	}
	f := &flight{out: out, acks: make([]Ack, len(out)), done: make([]bool, len(out)), end: len(out)}
	err = f.fly(ctx, s)
	if f.acked < len(out) {
		if err == nil {
			err = f.failure // else the flight ended before it was certain that this is the first
		}
		o := &out[f.acked]
		return f.acked, f.acks[:f.acked],
			fmt.Errorf("broker: publish subject=%s msgID=%s: %w", o.Subject, o.MsgID, sorted(err))
	}
	return f.acked, f.acks, nil
}

// flight is one batch under way. Acknowledgements may come in any order; those of [0, acked) have
// come without a gap.
type flight struct {
	out  []Outgoing
	acks []Ack
	// done marks messages with an answer, of either kind.
	done    []bool
	acked   int
	sent    int
	bytes   int // of [acked, sent)
	end     int // messages from here on do not count: the first failure, or len(out)
	failure error
}

// fly sends while the window has room and takes answers until the first failure is certain: every
// message before it has its acknowledgement. The timeout is for silence, not for the whole batch.
func (f *flight) fly(ctx context.Context, s *session) error {
	inbox := s.conn.NewRespInbox()
	answers := make(chan *nats.Msg, windowMessages)
	sub, err := s.conn.ChanSubscribe(inbox+".*", answers)
	if err != nil {
		return err
	}
	defer sub.Unsubscribe()
	silence := time.NewTimer(requestTimeout)
	defer silence.Stop()
	for f.acked < f.end {
		for f.sent < f.end && f.sent-f.acked < windowMessages &&
			(f.bytes < windowBytes || f.sent == f.acked) {
			if err := f.send(s, inbox); err != nil {
				f.fail(f.sent, err)
				break
			}
		}
		if f.acked >= f.end {
			break
		}
		select {
		case msg := <-answers:
			f.take(msg, len(inbox)+1)
			silence.Reset(requestTimeout)
		case <-s.ctx.Done():
			return fmt.Errorf("%w: %w", ErrUnavailable, errLost)
		case <-ctx.Done():
			return ctx.Err()
		case <-silence.C:
			return nats.ErrTimeout
		}
	}
	return nil
}

// send publishes the next message. The last token of its reply subject is its number in the batch.
func (f *flight) send(s *session, inbox string) error {
	o := &f.out[f.sent]
	header := make(nats.Header, 5)
	set := func(name, value string) {
		if value != "" {
			header[name] = []string{value}
		}
	}
	set(headerMsgID, o.MsgID)
	set(headerLastMsgID, o.ExpectLastMsgID)
	set(headerStream, o.ExpectStream)
	set(headerSignature, o.Signature)
	if o.ExpectLastSeq != nil {
		set(headerLastSeq, strconv.FormatUint(*o.ExpectLastSeq, 10))
	}
	err := s.conn.PublishMsg(&nats.Msg{
		Subject: o.Subject, Reply: inbox + "." + strconv.Itoa(f.sent), Header: header, Data: o.Data,
	})
	if err == nil {
		f.sent++
		f.bytes += len(o.Data)
	}
	return err
}

// fail records i as the first failure unless there is an earlier one.
func (f *flight) fail(i int, err error) {
	if i < f.end {
		f.end, f.failure = i, err
	}
}

// pubAck is the server's answer to a publish: either Error or the other fields.
type pubAck struct {
	Error     *apiError `json:"error"`
	Stream    string    `json:"stream"`
	Sequence  uint64    `json:"seq"`
	Duplicate bool      `json:"duplicate"`
}

// take records one answer; its subject ends with the message's number.
//
// prefix is the length of the reply subject before that number. A status without data comes from
// the server itself: no stream listens on the subject. Answers that cannot be placed are ignored.
func (f *flight) take(msg *nats.Msg, prefix int) {
	i, err := strconv.Atoi(msg.Subject[prefix:])
	if err != nil || i < 0 || i >= f.sent || f.done[i] {
		return
	}
	f.done[i] = true
	var ack pubAck
	switch {
	case msg.Header.Get(headerStatus) != "" && len(msg.Data) == 0:
		f.fail(i, fmt.Errorf("%w: no stream answers (%s)", ErrUnavailable, msg.Header.Get(headerStatus)))
	case json.Unmarshal(msg.Data, &ack) != nil:
		f.fail(i, fmt.Errorf("%w: unreadable acknowledgement", ErrUnavailable))
	case ack.Error != nil:
		f.fail(i, ack.Error)
	case ack.Stream == "" || ack.Sequence == 0:
		// A service that is not a stream answered.
		f.fail(i, fmt.Errorf("%w: the answer is no acknowledgement", ErrUnavailable))
	default:
		f.acks[i] = Ack{Stream: ack.Stream, Sequence: ack.Sequence, Duplicate: ack.Duplicate}
	}
	for f.acked < f.end && f.done[f.acked] {
		f.bytes -= len(f.out[f.acked].Data)
		f.acked++
	}
}
