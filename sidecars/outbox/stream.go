package outbox

import (
	"context"
	"errors"
)

// Message is a message on the stream.
//
// Data belongs to the receiver.
type Message struct {
	Sequence uint64 // its sequence on the stream
	MsgID    string
	Data     []byte

	Signature string // the source's, "" for none
}

// Outgoing is a message to be published.
type Outgoing struct {
	Data      []byte
	MsgID     string
	Signature string
	// The conditions on the stream's last message: its id must be AfterMsgID unless that is empty, and
	// its sequence must be AfterSequence unless that is nil. The server checks the sequence before it
	// looks for the message's own id among those it has seen, and the id after that.
	AfterMsgID    string
	AfterSequence *uint64
}

// unconditional reports whether the message may follow any last message.
func (o *Outgoing) unconditional() bool { return o.AfterMsgID == "" && o.AfterSequence == nil }

// Ack is the stream's confirmation that it has a message.
type Ack struct {
	Sequence  uint64
	Duplicate bool // the stream had it before
}

// ErrConflict says that the stream's last message is not the expected one.
var ErrConflict = errors.New("unexpected last message")

// Extent is the range of a stream's sequences: none of its messages is outside of it. An empty
// stream may have had messages: First is then above Last.
type Extent struct{ First, Last uint64 }

// Stream is the durable stream of a source. Any error but ErrConflict means: try again later.
//
// Package broker implements it for JetStream. Run's goroutine calls all of it; At is also called by
// goroutines that use Own.
type Stream interface {
	// Ensure makes the stream, or checks the existing one.
	Ensure(ctx context.Context) error
	// Last returns the newest message, false for an empty stream, and the stream's extent.
	Last(ctx context.Context) (m Message, e Extent, found bool, err error)
	// At returns the message at a stream sequence, false when there is none.
	At(ctx context.Context, sequence uint64) (m Message, found bool, err error)
	// Publish stores messages in order and returns an ack for each before the first
	// that failed.
	//
	// acks[i] belongs to messages[i]. An error does not prove that a message is not on the stream: its
	// acknowledgement may have been lost.
	Publish(ctx context.Context, messages []Outgoing) (acks []Ack, err error)
}
