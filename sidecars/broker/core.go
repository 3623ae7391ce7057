package broker

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"github.com/nats-io/nats.go"
)

// Notify sends a message to the current subscribers. It is neither stored nor acknowledged. Notify
// returns when the server has received the message, in five seconds at most. It waits for the first
// connection, does not wait for a later one, and returns ErrUnavailable.
//
// nil means that the server has the message; there may be no subscriber. After an error the message
// may have been sent all the same.
func (b *Broker) Notify(subject string, data []byte) error {
	ctx, cancel := deadline(b.ctx)
	defer cancel()
	s, err := b.session(ctx)
	if err == nil {
		err = s.notify(ctx, subject, data)
	}
	if err != nil {
		return fmt.Errorf("broker: notify subject=%s: %w", subject, sorted(err))
	}
	return nil
}

// notify flushes because Publish only fills a buffer: on a link that has died silently it succeeds.
func (s *session) notify(ctx context.Context, subject string, data []byte) error {
	ctx, unbind := s.bound(ctx)
	defer unbind()
	if err := s.conn.Publish(subject, data); err != nil {
		return err
	}
	return asked(ctx, s.conn.FlushWithContext(ctx))
}

// Subscribe calls fn for every message of the subject, which may have wildcards, in the order of
// arrival. It may be called before the server is reachable, and continues after the server was
// away; messages sent meanwhile are lost. fn may keep data. After stop has returned, fn is not
// called any more; fn itself must not call stop. When fn is slow the client drops messages and logs
// that.
//
// The error is that of a subject that cannot be, or ErrClosed; a server that is away is none.
func (b *Broker) Subscribe(subject string,
	fn func(subject string, data []byte)) (stop func(), err error) {
	if err := checkSubject(subject); err != nil {
		return nil, fmt.Errorf("broker: subscribe subject=%q: %w", subject, err)
	}
	if _, err := b.dial(); err != nil {
		return nil, fmt.Errorf("broker: subscribe subject=%s: %w", subject, err)
	}
	s := &subscription{b: b, subject: subject, fn: fn}
	b.mu.Lock()
	conn := b.conn
	if conn == nil {
		b.early = append(b.early, s)
	}
	b.mu.Unlock()
	if conn != nil {
		s.begin(conn)
	}
	return s.stop, nil
}

// checkSubject refuses a subject that the server would refuse later, without telling the caller.
//
// The rules are those of the NATS protocol: tokens between dots, none of them empty, without white
// space, and ">" as the last one only.
func checkSubject(subject string) error {
	if strings.ContainsAny(subject, " \t\r\n") {
		return fmt.Errorf("%w: white space", nats.ErrBadSubject)
	}
	tokens := strings.Split(subject, ".")
	for i, token := range tokens {
		if token == "" {
			return fmt.Errorf("%w: empty token", nats.ErrBadSubject)
		}
		if token == ">" && i != len(tokens)-1 {
			return fmt.Errorf("%w: > before the end", nats.ErrBadSubject)
		}
	}
	return nil
}

// subscription is one Subscribe; nats.go renews it after every reconnection.
//
// sub is nil until there is a connection. begin and stop may run on two goroutines; whichever comes
// second sees what the other has done.
type subscription struct {
	b       *Broker
	subject string

	mu      sync.Mutex // held while fn runs, so that stop waits for it
	fn      func(subject string, data []byte)
	stopped bool
	sub     *nats.Subscription
}

// begin subscribes on the connection, unless stop came first.
func (s *subscription) begin(conn *nats.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		return
	}
	sub, err := conn.Subscribe(s.subject, func(msg *nats.Msg) {
		s.mu.Lock()
		defer s.mu.Unlock()
		if !s.stopped {
			s.fn(msg.Subject, msg.Data)
		}
	})
	if err != nil {
		// The subject was checked: the connection is closed, and so is the Broker.
		return
	}
	s.sub = sub
}

// stop waits for a call of fn under way.
func (s *subscription) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopped = true
	if s.sub != nil {
		// An error means that the connection is closed, and the subscription with it.
		_ = s.sub.Unsubscribe()
	}
}
