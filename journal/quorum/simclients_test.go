package quorum

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/anishathalye/porcupine"

	"posttrade/matcher"
)

// simOperation is an operation of a client: a booking, with its key and the reference of its order,
// or a read of the last reference given.
type simOperation struct {
	client    int
	read      bool
	key       int64
	ref       uint32
	decision  simDecision
	call, end int64
	tries     int
}

// simClient books orders, each under a key of its own until it has an answer, and reads.
type simClient struct {
	s   *simulation
	id  int
	rng *rand.Rand
	n   int64
}

// run works until over is closed, and finishes the operation that it has begun.
func (c *simClient) run(over <-chan struct{}) {
	for {
		select {
		case <-over:
			return
		default:
		}
		if c.rng.IntN(4) == 0 {
			c.read(over)
		} else {
			c.book()
		}
		pause(time.Duration(c.rng.Int64N(int64(40 * time.Millisecond))))
	}
}

// book submits one order until it is decided.
func (c *simClient) book() {
	c.n++
	op := simOperation{client: c.id, key: int64(c.id+1)<<32 | c.n, call: c.s.clock.Add(1)}
	cmd := matcher.NewCommand(matcher.OrderNew)
	cmd.EventTimeMillis = time.Now().UnixMilli()
	cmd.PriceTicks = op.key
	cmd.AccountID, cmd.SecurityID = 1+c.rng.Uint32N(8), 1+c.rng.Uint32N(3)
	cmd.Side, cmd.Qty = matcher.Side(c.rng.IntN(2)), 1+c.rng.Int32N(100)
	cmd.LimitPx = 100_000_000 + 1000*c.rng.Int64N(10)
	id := fmt.Sprintf("client-%d-%d", c.id, c.n)
	for {
		op.tries++
		o, known := c.any().submit(cmd, id, 2*time.Second)
		if known && !o.refused {
			op.ref, op.decision = o.decision.orderRef, o.decision
			c.s.done(op)
			return
		}
		pause(time.Duration(1 + c.rng.Int64N(int64(30*time.Millisecond))))
	}
}

// read reads the last reference of an order from a member that leads. That member must confirm that
// it leads.
func (c *simClient) read(over <-chan struct{}) {
	op := simOperation{client: c.id, read: true, call: c.s.clock.Add(1)}
	for {
		l := c.any()
		if l.confirm() == nil {
			l.host.mu.Lock()
			op.ref = l.host.engine.lastRef
			l.host.mu.Unlock()
			if !l.end.gone() {
				c.s.done(op)
				return
			}
		}
		select {
		case <-over: // a read that has no answer promises nothing
			return
		case <-time.After(time.Duration(1 + c.rng.Int64N(int64(30*time.Millisecond)))):
		}
	}
}

// any waits for a member that leads. Sometimes it returns one that does not.
func (c *simClient) any() *simLife {
	for {
		stray := c.rng.IntN(20) == 0
		for range 3 {
			l := c.s.members[c.rng.IntN(3)].life.Load()
			if l == nil || l.end.gone() {
				continue
			}
			select {
			case <-l.ready:
				if stray || l.node.Leads() {
					return l
				}
			default:
			}
		}
		pause(time.Duration(1 + c.rng.Int64N(int64(10*time.Millisecond))))
	}
}

// done records an operation that has its answer.
func (s *simulation) done(op simOperation) {
	s.mu.Lock()
	defer s.mu.Unlock()
	op.end = s.clock.Add(1)
	s.history = append(s.history, op)
}

// simModel is what the clients may observe: references ascend in the order of the decisions, and a
// read observes every decision before it.
func simModel() porcupine.Model {
	return porcupine.Model{
		Init: func() any { return uint32(0) },
		Step: func(state, input, output any) (bool, any) {
			last, ref := state.(uint32), output.(uint32)
			if input.(bool) { // a read
				return ref >= last, max(ref, last)
			}
			return ref > last, ref
		},
		DescribeOperation: func(input, output any) string {
			if input.(bool) {
				return fmt.Sprint("read -> ", output)
			}
			return fmt.Sprint("book -> ", output)
		},
	}
}

// linearizable checks the clients' history.
func linearizable(history []simOperation) porcupine.CheckResult {
	var ops []porcupine.Operation
	for _, op := range history {
		ops = append(ops, porcupine.Operation{ClientId: op.client, Input: op.read, Call: op.call,
			Output: op.ref, Return: op.end})
	}
	return porcupine.CheckOperationsTimeout(simModel(), ops, 20*time.Second)
}
