package outbox

import (
	"context"
	"errors"
)

// Message is a message that the stream has.
type Message struct {
	Sequence uint64 // the stream's
	MsgID    string
	Data     []byte

	Signature string // the source's, "" for none
}

// Outgoing is a message on its way.
type Outgoing struct {
	Data      []byte
	MsgID     string
	Signature string
	// The stream's last message must have this id, if any, and this sequence, unless nil.
	// With neither it may be any. A sequence is checked before the message's own id is
	// sought among those that the stream has seen, an id is not.
	AfterMsgID    string
	AfterSequence *uint64
}

// unconditional reports whether the message goes behind whatever the stream ends with.
func (o *Outgoing) unconditional() bool { return o.AfterMsgID == "" && o.AfterSequence == nil }

// Ack is the stream's word that it has a message.
type Ack struct {
	Sequence  uint64
	Duplicate bool // it had it before
}

// ErrConflict says that the stream's last message is not the expected one.
var ErrConflict = errors.New("unexpected last message")

// Stream is the durable stream of a source. Any error but ErrConflict means: try again later.
type Stream interface {
	// Ensure makes the stream, or checks the one that is there.
	Ensure(ctx context.Context) error
	// Last returns the newest message, false for an empty stream, and the stream's
	// last sequence, which an empty stream may have too.
	Last(ctx context.Context) (m Message, sequence uint64, found bool, err error)
	// At returns the message of a stream sequence, false when it is not there.
	At(ctx context.Context, sequence uint64) (m Message, found bool, err error)
	// Publish stores messages in order and returns an ack for each before the first
	// that failed.
	Publish(ctx context.Context, messages []Outgoing) (acks []Ack, err error)
}
