package broker

import (
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
)

// statusRoom is the room in a pull's channel besides messages. It holds heartbeats and the end of
// the request while the reader does other work.
const statusRoom = 128

// pull asks a consumer for messages, one request at a time. It belongs to one goroutine and to one
// session.
//
// Requests for messages are what bounds the flow: the server sends no more than was asked for, and
// the channel has room for all of it, so nats.go never drops a message of a slow reader.
type pull struct {
	s       *session
	subject string // of the request
	inbox   string
	sub     *nats.Subscription
	arrived chan *nats.Msg

	// requests numbers the requests, so that the end of an earlier one is told from that of the
	// current.
	requests int
	reply    string // the subject for the answers of the current request
	left     int    // messages that the request may still bring; 0: request again
}

// newPull subscribes to the answers and asks for nothing yet. batch is the most that ask may
// request.
func newPull(s *session, stream, consumer string, batch int) (*pull, error) {
	p := &pull{
		s: s, subject: "$JS.API.CONSUMER.MSG.NEXT." + stream + "." + consumer,
		inbox: s.conn.NewRespInbox(), arrived: make(chan *nats.Msg, batch+statusRoom),
	}
	var err error
	if p.sub, err = s.conn.ChanSubscribe(p.inbox+".*", p.arrived); err != nil {
		return nil, err
	}
	return p, nil
}

// stop ends the subscription; messages under way are dropped.
func (p *pull) stop() {
	// An error means that the connection is closed already.
	_ = p.sub.Unsubscribe()
}

// ask requests up to batch messages, delivered as they come, until the request expires.
//
// It sends and does not wait. The body is that of the server's $JS.API.CONSUMER.MSG.NEXT.
func (p *pull) ask(batch int, expires, heartbeat time.Duration) error {
	body, err := json.Marshal(struct {
		Batch     int           `json:"batch"`
		Expires   time.Duration `json:"expires"`
		Heartbeat time.Duration `json:"idle_heartbeat"`
	}{batch, expires, heartbeat})
	if err != nil {
		return err
	}
	p.requests++
	p.reply = p.inbox + "." + strconv.Itoa(p.requests)
	if err := p.s.conn.PublishRequest(p.subject, p.reply, body); err != nil {
		return err
	}
	p.left = batch
	return nil
}

// sort classifies what arrived. A message of the stream is ok. A heartbeat or the regular end of a
// request is neither ok nor an error. An error means that the consumer, or the connection to it, is
// gone.
//
// The statuses are the server's: 100 heartbeat, 404 no message, 408 expired, 409 a condition with a
// description. Any other one, and a 409 with another description (consumer deleted, leadership
// changed), is an error.
func (p *pull) sort(msg *nats.Msg, ackable bool) (m Message, ok bool, err error) {
	status := msg.Header.Get(headerStatus)
	if status == "" || len(msg.Data) > 0 || msg.Reply != "" {
		if m, ok = delivered(msg, ackable); ok && p.left > 0 {
			p.left--
		}
		return m, ok, nil
	}
	said := msg.Header.Get(headerDescription)
	switch {
	case status == "100": // idle heartbeat
	case status == "404", status == "408", // no more came before the request expired
		status == "409" && (said == "Batch Completed" || said == "Message Size Exceeds MaxBytes"):
		if msg.Subject == p.reply {
			p.left = 0
		}
	default:
		return m, false, fmt.Errorf("consumer answers %s %s", status, said)
	}
	return m, false, nil
}
