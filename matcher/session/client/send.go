//perf:hot

package client

import (
	"posttrade/matcher"
	"posttrade/matcher/session/wire"
	"posttrade/ring"
)

// NewOrder is a new order. LimitPx is x 1e6; 0 makes it a market order. Security is the id that
// Client.Security returns.
type NewOrder struct {
	Account  uint32
	Security uint32
	Side     matcher.Side
	Qty      int32
	LimitPx  int64
	Flags    uint16 // at most one of matcher.FlagIOC, FlagFOK, FlagPostOnly
}

// Order writes a new order into the ring; the server sees it after Flush. clientID may be empty.
// Errors: ErrFull, ErrClientID, ErrRole, the reason of the session's end. No allocation.
func (c *Client) Order(correlation uint64, o *NewOrder, clientID string) error {
	cmd := matcher.NewCommand(matcher.OrderNew)
	cmd.AccountID, cmd.SecurityID, cmd.Side = o.Account, o.Security, o.Side
	cmd.Qty, cmd.LimitPx, cmd.Flags = o.Qty, o.LimitPx, o.Flags
	return c.Send(correlation, &cmd, clientID)
}

// Cancel asks for an order to be taken off the book. The errors are those of Order. account is the
// order's, orderRef the reference in its Answer.
func (c *Client) Cancel(correlation uint64, account, orderRef uint32) error {
	cmd := matcher.NewCommand(matcher.OrderCancel)
	cmd.AccountID, cmd.OrderRef = account, orderRef
	return c.Send(correlation, &cmd, "")
}

// Replace gives an order a new total quantity and limit. The errors are those of Order. qty is the
// total over the order's life, what has traded included.
func (c *Client) Replace(correlation uint64, account, orderRef uint32, qty int32, limitPx int64,
	clientID string) error {
	cmd := matcher.NewCommand(matcher.OrderReplace)
	cmd.AccountID, cmd.OrderRef, cmd.Qty, cmd.LimitPx = account, orderRef, qty, limitPx
	return c.Send(correlation, &cmd, clientID)
}

// Trade books a trade at the last known price. The errors are those of Order.
func (c *Client) Trade(correlation uint64, account, security uint32, side matcher.Side, qty int32,
	clientID string) error {
	cmd := matcher.NewCommand(matcher.TradeNew)
	cmd.AccountID, cmd.SecurityID, cmd.Side, cmd.Qty = account, security, side, qty
	return c.Send(correlation, &cmd, clientID)
}

// Send writes any command that a client may send, such as an OTC booking
// (matcher.ContractTerms.Command). The errors are those of Order. It copies cmd, sets the
// correlation id in the copy and judges nothing else: the server answers a malformed command.
func (c *Client) Send(correlation uint64, cmd *matcher.Command, clientID string) error {
	if err := c.sendable(clientID); err != nil {
		return err
	}
	slot := c.send.Claim()
	if slot == nil {
		return ErrFull
	}
	slot.Command = *cmd
	slot.Command.InputSeq = correlation
	n := copy(slot.ClientID[:], clientID)
	clear(slot.ClientID[n:])
	return nil
}

// sendable is the reason why no command can be sent, or none with this client id; nil if there is
// none.
func (c *Client) sendable(clientID string) error {
	why := c.ended.Load()
	switch {
	case why != nil:
		return *why
	case len(clientID) > wire.MaxClientID:
		return ErrClientID
	case c.role != wire.Orders:
		return ErrRole
	}
	return nil
}

// Flush makes every written command visible to the server, in one store, and wakes the server if it
// sleeps.
func (c *Client) Flush() { c.send.Publish() }

// Poll copies the records that are there into dst, at most len(dst), and returns how many. It never
// waits. Reader only.
func (c *Client) Poll(dst []wire.Record) int {
	n := c.inbox.Next(dst)
	for i := range dst[:n] {
		if dst[i].Kind == wire.Answer {
			c.answers++
		}
	}
	return n
}

// InFlight is how many flushed commands have no answer among the records read so far. Reader only.
// Fills do not count; each command has one Answer.
func (c *Client) InFlight() int { return int(c.send.Published() - c.answers) }

// Next waits for a record, which is valid until the next call. The error is the reason of the
// session's end; Next returns it after every record that came before. No allocation. Reader only.
func (c *Client) Next() (*wire.Record, error) {
	for {
		if c.Poll(c.one[:]) == 1 {
			c.idler.Reset()
			c.looks = 0
			return &c.one[0], nil
		}
		if why := c.ended.Load(); why != nil {
			if c.Poll(c.one[:]) == 1 {
				return &c.one[0], nil
			}
			return nil, *why
		}
		c.wait()
	}
}

// wait makes one step of idle time: look again, give the core away, sleep. The answer to a single
// command arrives sooner than a core can be given away and taken back. Under a flow, the server's
// threads need this core too.
func (c *Client) wait() {
	if c.looks == 0 {
		c.first = c.spins
		if c.InFlight() > 1 {
			c.first = 0
		}
	}
	switch {
	case c.looks < c.first:
		c.looks++
		ring.Pause()
	case c.looks < c.first+c.yields:
		c.looks++
		yield()
	default:
		c.idler.Idle(c.inbox)
	}
}
