package broker

import (
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
)

// headerSignature is a header of this program. It carries the publisher's signature.
const headerSignature = "Svc-Signature"

// Header names of the NATS protocol.
const (
	headerMsgID       = "Nats-Msg-Id"
	headerLastMsgID   = "Nats-Expected-Last-Msg-Id"
	headerLastSeq     = "Nats-Expected-Last-Sequence"
	headerStream      = "Nats-Expected-Stream"
	headerStatus      = "Status"
	headerDescription = "Description"
)

// Message is one message of a stream.
//
// A Message of Consume or Follow was delivered. One that Broker.Message or LastMessage has read has
// Delivered 0 and cannot be settled. Data belongs to the receiver. Copies of a delivered Message
// share its settlement.
type Message struct {
	Subject     string
	Data        []byte
	Sequence    uint64 // the stream's
	MsgID       string // "" when it was published without one
	Signature   string // "" when it was published without one
	PublishedAt time.Time
	Delivered   uint64 // how often, this delivery included; 0 when it was read, not delivered

	consumerSeq uint64 // its number in the consumer's deliveries
	pending     uint64 // how many messages the consumer has left
	delivery    *delivery
}

// delivery is the connection of a message to the consumer that delivered it.
//
// settled makes the first of Ack, Nak and Term count; the others get ErrSettled.
type delivery struct {
	msg     *nats.Msg
	settled atomic.Bool
}

// Ack tells the consumer that the message is done. Like Nak and Term it is sent and not confirmed:
// when it is lost, the message comes again.
//
// ErrSettled for a message that is settled or was not delivered. Any other error means a lost
// connection: the message will come again.
func (m *Message) Ack() error { return m.settle("acknowledge", "+ACK") }

// Nak hands the message back; it is delivered again after the delay.
//
// A delay of 0 or less asks for it at once.
func (m *Message) Nak(delay time.Duration) error {
	return m.settle("hand back", fmt.Sprintf(`-NAK {"delay":%d}`, max(delay, 0).Nanoseconds()))
}

// Term ends all deliveries of an unusable message. The reason shows in the server's advisories.
func (m *Message) Term(reason string) error { return m.settle("terminate", "+TERM "+reason) }

// The answers are those of the JetStream protocol. The message counts as settled even when sending
// fails, because the answer may have left.
func (m *Message) settle(verb, answer string) error {
	if m.delivery == nil || !m.delivery.settled.CompareAndSwap(false, true) {
		return fmt.Errorf("broker: %s sequence=%d: %w", verb, m.Sequence, ErrSettled)
	}
	if err := m.delivery.msg.Respond([]byte(answer)); err != nil {
		return fmt.Errorf("broker: %s sequence=%d: %w", verb, m.Sequence, sorted(err))
	}
	return nil
}

// delivered reads what a consumer sent: the message and, from its reply subject, the numbers:
//
//	$JS.ACK.<stream>.<consumer>.<delivered>.<stream seq>.<consumer seq>.<time ns>.<pending>
//
// and the same with <domain>.<account hash> before the stream and perhaps a token at the end.
//
// False for a message that no consumer has sent. ackable is false for a consumer that wants no
// acknowledgements.
func delivered(msg *nats.Msg, ackable bool) (Message, bool) {
	part := strings.Split(msg.Reply, ".")
	if len(part) < 9 || part[0] != "$JS" || part[1] != "ACK" {
		return Message{}, false
	}
	number := part[4:]
	if len(part) >= 11 {
		number = part[6:]
	}
	n, err := numbers(number)
	if err != nil {
		return Message{}, false
	}
	m := Message{
		Subject: msg.Subject, Data: msg.Data, MsgID: msg.Header.Get(headerMsgID),
		Signature: msg.Header.Get(headerSignature),
		Delivered: n[0], Sequence: n[1], consumerSeq: n[2],
		PublishedAt: time.Unix(0, int64(n[3])), pending: n[4],
	}
	if ackable {
		m.delivery = &delivery{msg: msg}
	}
	return m, true
}

// numbers reads the five numbers of an acknowledgement's subject: how often the message was
// delivered, its sequences in the stream and of the consumer, its time, and what is pending.
func numbers(text []string) (n [5]uint64, err error) {
	for i := range n {
		if n[i], err = strconv.ParseUint(text[i], 10, 64); err != nil {
			break
		}
	}
	return n, err
}
