package perf

import (
	"context"
	"errors"
	"fmt"
	"time"

	"posttrade/app/latency"
	"posttrade/matcher"
	"posttrade/matcher/session/client"
	"posttrade/matcher/session/wire"
	"posttrade/perf/load"
	"posttrade/ring"
)

// sessionClient is a client of a serving process on this machine, over shared memory, for a row of
// the performance table. It sends sells and buys at the same prices in turns. So every second order
// trades, and the book stays small for a flow of any length.
//
// As the target of a load (Send, Poll) it never waits. Only one goroutine may use it.
type sessionClient struct {
	// client is the session. Its ring is where order writes; the server sees it after a Flush.
	client *client.Client
	// clock stamps the answers of a load; round trips and windows use the machine's clock.
	clock load.Clock
	// security is the server's id of perfTicker.
	security uint32
	// sent is the number of orders since the start. The orders' correlation ids count from 0, so it is
	// the next one's.
	sent uint64
	// base is the correlation id of request 0 of the load under way.
	base uint64
	// open is the number of orders without an answer.
	open int
	// records is the memory that Poll and window read into.
	records []wire.Record
}

// The session's orders: accounts and a ticker that every installation has from its seed.
const (
	// perfSeller and perfBuyer are accounts of the default seed, and perfTicker is a security of it.
	// perfPx is in matcher's fixed point.
	perfSeller = 1
	perfBuyer  = 2
	perfTicker = "AAPL"
	perfPx     = 187 * matcher.PriceScale
	// perfSlots is the number of slots of each of the session's rings.
	perfSlots    = 1 << 14
	perfDialTime = 10 * time.Second
	// perfRecords is how many records one call of Poll reads at most.
	perfRecords = 256
	// perfPxSteps prices, perfPxStep apart, follow each other from pair to pair of orders.
	perfPxSteps    = 8
	perfPxStep     = matcher.PriceScale / 100
	perfOrderQty   = 10
	perfFlushEvery = 16 // maximum number of orders of a window that are shown at once
)

// errPerfAnswer reports an order that was not accepted: the measurement is then not of an order's
// path. The error names the order's correlation id, the server's code and the reason.
var errPerfAnswer = errors.New("order was not accepted")

// dialSession opens a session. idle is how roundTrips waits for answers; another word than the
// ring's strategies is an error, and so is a server that does not know perfTicker.
func dialSession(socket, idle string, clock load.Clock) (_ *sessionClient, err error) {
	strategy, err := ring.ParseStrategy(idle)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), perfDialTime)
	defer cancel()
	c, err := client.Dial(ctx, socket, "",
		client.Options{CommandSlots: perfSlots, EventSlots: perfSlots, Idle: strategy, IdleSet: true})
	if err != nil {
		return nil, err
	}
	s := &sessionClient{client: c, clock: clock, records: make([]wire.Record, perfRecords)}
	if s.security, err = c.Security(ctx, perfTicker); err == nil && s.security == 0 {
		err = fmt.Errorf("session: the server does not know the security %s", perfTicker)
	}
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return s, nil
}

// Close ends the session.
func (s *sessionClient) Close() error { return s.client.Close() }

// roundTrips sends n orders, each after the answer to the one before, and returns the time that
// each took, from before the order is written until its answer is read. Fills of an order come
// behind its answer and are read after the time was taken.
func (s *sessionClient) roundTrips(n int) (*latency.Summary, error) {
	took := latency.NewRecorder()
	for range n {
		begun := time.Now()
		if err := s.order(); err != nil {
			return nil, err
		}
		s.client.Flush()
		for s.open > 0 {
			r, err := s.client.Next()
			if err != nil {
				return nil, err
			}
			if _, err := s.taken(r); err != nil {
				return nil, err
			}
			if s.open == 0 {
				took.Record(time.Since(begun))
			}
		}
		s.drain()
	}
	return latency.Merge(took), nil
}

// drain takes the records after the last answer: its fills.
func (s *sessionClient) drain() {
	for s.client.Poll(s.records) > 0 {
	}
}

// window keeps up to window orders in flight until n are answered, and returns how many were
// answered in a second. It shows the server 16 orders at a time, so that a flush is paid once for
// them; before it waits for an answer it has shown all.
func (s *sessionClient) window(n, window int) (perSecond float64, err error) {
	begun := time.Now()
	for sent := 0; sent < n || s.open > 0; {
		batch := 0
		for sent < n && s.open < window && batch < perfFlushEvery {
			if err := s.order(); errors.Is(err, client.ErrFull) {
				break
			} else if err != nil {
				return 0, err
			}
			sent++
			batch++
		}
		s.client.Flush()
		if batch == perfFlushEvery {
			continue
		}
		r, err := s.client.Next()
		if err != nil {
			return 0, err
		}
		s.records[0] = *r
		for _, r := range s.records[:1+s.client.Poll(s.records[1:])] {
			if _, err := s.taken(&r); err != nil {
				return 0, err
			}
		}
	}
	perSecond = float64(n) / time.Since(begun).Seconds()
	s.drain()
	return perSecond, nil
}

// order writes the next order. The server sees it after a Flush. client.ErrFull says that the ring
// has no room now; nothing was written then.
func (s *sessionClient) order() error {
	o := client.NewOrder{Account: perfSeller, Security: s.security, Side: matcher.Sell,
		Qty:     perfOrderQty,
		LimitPx: perfPx + int64(s.sent/2%perfPxSteps)*perfPxStep}
	if s.sent%2 == 1 {
		o.Account, o.Side = perfBuyer, matcher.Buy
	}
	err := s.client.Order(s.sent, &o, "")
	if err == nil {
		s.sent++
		s.open++
	}
	return err
}

// taken notes a record and reports whether it was an answer. Fills and other records are not
// counted. An answer without an acceptance is an error.
func (s *sessionClient) taken(r *wire.Record) (bool, error) {
	if r.Kind != wire.Answer {
		return false, nil
	}
	s.open--
	if r.Code != wire.Decided || r.Reason != matcher.Accepted {
		return true, fmt.Errorf("session: order=%d: %w: %s %s", r.Correlation, errPerfAnswer, r.Code,
			r.Reason)
	}
	return true, nil
}

// Send starts request n of a load; number 0 begins another load. It flushes every order, because in
// an open loop the next one may be far away. false: the ring has no room.
func (s *sessionClient) Send(n int) (bool, error) {
	if n == 0 {
		s.base = s.sent
	}
	err := s.order()
	if errors.Is(err, client.ErrFull) {
		return false, nil
	}
	s.client.Flush()
	return err == nil, err
}

// Poll takes in the answers that have come. All of one call have the time of the call, taken after
// they were read. It returns the session's error when it has ended.
func (s *sessionClient) Poll(answered func(n int, at time.Duration)) error {
	n := s.client.Poll(s.records)
	if n == 0 {
		return s.client.Err()
	}
	at := s.clock.Now()
	for i := range s.records[:n] {
		r := &s.records[i]
		answer, err := s.taken(r)
		if err != nil {
			return err
		}
		if answer {
			answered(int(r.Correlation-s.base), at)
		}
	}
	return nil
}
