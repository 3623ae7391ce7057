package broker

import (
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
)

// statusRoom is what a pull's channel holds besides messages: heartbeats and
// the end of the request, while the reader is busy elsewhere.
const statusRoom = 128

// pull asks a consumer for messages, one request at a time. It belongs to one
// goroutine and to one session.
type pull struct {
	s       *session
	subject string // of the request
	inbox   string
	sub     *nats.Subscription
	arrived chan *nats.Msg

	requests int
	reply    string // where the request of now is answered
	left     int    // messages it may still bring; 0: ask again
}

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

// stop ends the subscription; messages on their way are dropped.
func (p *pull) stop() {
	// An error means that the connection is closed already.
	_ = p.sub.Unsubscribe()
}

// ask requests up to batch messages, as they come, until it expires.
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

// sort says what arrived. A message of the stream is ok; a heartbeat or the
// regular end of a request is neither ok nor an error; an error means that the
// consumer, or the way to it, is gone.
func (p *pull) sort(msg *nats.Msg, ackable bool) (m Message, ok bool, err error) {
	status := msg.Header.Get(headerStatus)
	if status == "" || len(msg.Data) > 0 || msg.Reply != "" {
		if m, ok = delivered(msg, ackable); ok && p.left > 0 {
			p.left--
		}
		return m, ok, nil
	}
	switch status {
	case "100": // idle heartbeat
		return m, false, nil
	case "404", "408": // nothing more came before the request expired
		if msg.Subject == p.reply {
			p.left = 0
		}
		return m, false, nil
	case "409":
		if d := msg.Header.Get(headerDescription); d == "Batch Completed" || d == "Message Size Exceeds MaxBytes" {
			if msg.Subject == p.reply {
				p.left = 0
			}
			return m, false, nil
		}
	}
	return m, false, fmt.Errorf("consumer answers %s %s", status, msg.Header.Get(headerDescription))
}
