package broker

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
)

// Message reads the message at a stream sequence; ErrNotFound when it never existed or is gone. The
// stream's leader answers, not a replica that may lag.
//
// One round trip, five seconds at most.
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

// storedRequest and storedResponse are the bodies of the server's $JS.API.STREAM.MSG.GET. One of
// the two fields of the request is set.
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

// get sends one request. It does not use the client's own call, which may ask a replica that lags.
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
