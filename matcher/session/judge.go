//perf:hot

package session

import (
	"unsafe"

	"posttrade/matcher"
	"posttrade/matcher/session/wire"
)

// judge turns a request, already copied out of shared memory, into the command that
// is handed in, in the order of checks of the HTTP interface: its form, the order it
// names, the account, readiness, the gate. Decided: hand it in. Refused: the gate's
// reason is in OrderRef, and refusals are not sequenced.
func (p *poller) judge(one *session, r *wire.Request) wire.Code {
	c := &r.Command
	if !readable(r) {
		return wire.Malformed
	}
	c.Version = matcher.SchemaVersion // the client does not choose the rules that decide a command
	if c.Type == matcher.OrderCancel || c.Type == matcher.OrderReplace {
		if code := p.locate(one, c); code != wire.Decided {
			return code
		}
	} else if !one.may(c.AccountID) {
		return wire.NotEntitled
	}
	c.EventTimeMillis = p.now
	if c.Type == matcher.OrderCancel {
		return wire.Decided // an owner can always cancel an order
	}
	c.PriceTicks = int64(p.server.o.Views.ClientKey().Of(c.AccountID, r.ClientID[:clientIDLen(r)]))
	return p.screen(c)
}

// locate finds the order of a cancel or a replace and copies the order's own fields into the
// command.
func (p *poller) locate(one *session, c *matcher.Command) wire.Code {
	row, ok := p.server.o.Views.Order(c.OrderRef)
	if !ok {
		return wire.NotFound
	}
	if !one.may(row.AccountID) {
		return wire.NotEntitled
	}
	if row.AccountID != c.AccountID {
		return wire.NotFound
	}
	c.SecurityID, c.Side = row.SecurityID, row.Side
	if c.Type == matcher.OrderReplace && row.TimeInForce == postOnly {
		c.Flags = matcher.FlagPostOnly
	}
	return wire.Decided
}

// screen asks the gate. A command with a key that was decided before is handed in whatever the
// gate's verdict is now. The engine answers with the first decision or, if it has forgotten the key
// meanwhile, with the verdict that the command carries. A replace and a booking have no field for a
// verdict: the engine judges them again, and they have to wait until the gate is ready.
func (p *poller) screen(c *matcher.Command) wire.Code {
	if !p.server.o.Gate.Ready() {
		if _, known := p.known(c); known && c.Type != matcher.OrderReplace && !books(c) {
			return p.verdict(c, matcher.ControlStateStale)
		}
		return wire.NotReady
	}
	if c.Type == matcher.OrderReplace {
		return wire.Decided
	}
	reason := p.server.o.Gate.Screen(c)
	if reason == matcher.Accepted || p.server.o.SequenceRefusals {
		return p.verdict(c, reason)
	}
	if _, known := p.known(c); known {
		return p.verdict(c, reason)
	}
	c.OrderRef = uint32(reason) // the terms of a booking that is not handed in are not needed any more
	return wire.Refused
}

// verdict stores the gate's reason in a command that has a field for it. The command is handed in.
func (p *poller) verdict(c *matcher.Command, reason matcher.RiskReason) wire.Code {
	if c.Type == matcher.OrderNew || c.Type == matcher.TradeNew {
		c.OrderRef = uint32(reason)
	}
	return wire.Decided
}

// readable reports that a client may send this request: a command of a type for clients, strictly
// formed, with 0 in every field that the server fills in.
func readable(r *wire.Request) bool {
	c := &r.Command
	if c.TemplateID != matcher.TemplateCommand || !wellFormed(c) || !cleanID(r) ||
		c.EventTimeMillis != 0 || c.PriceTicks != 0 || c.LeaderEpoch != 0 {
		return false
	}
	force := c.Flags & (matcher.FlagIOC | matcher.FlagFOK | matcher.FlagPostOnly)
	switch c.Type {
	case matcher.OrderNew:
		return c.OrderRef == 0 && c.Qty > 0 && c.LimitPx >= 0 && c.Flags == force &&
			force&(force-1) == 0 &&
			!(c.LimitPx == 0 && force == matcher.FlagPostOnly)
	case matcher.TradeNew:
		return c.OrderRef == 0 && c.Qty > 0 && c.LimitPx == 0 && c.Flags == 0
	case matcher.OrderReplace:
		return c.OrderRef != 0 && c.Qty > 0 && c.LimitPx > 0 && unnamed(c)
	case matcher.OrderCancel:
		return c.OrderRef != 0 && c.Qty == 0 && c.LimitPx == 0 && unnamed(c) && r.ClientID[0] == 0
	case matcher.SwapBook, matcher.SwaptionBook:
		terms, ok := c.ContractTerms()
		return ok && terms.Representable() && c.Flags == 0
	}
	return false
}

// unnamed reports that the fields known from the order itself are 0.
func unnamed(c *matcher.Command) bool { return c.SecurityID == 0 && c.Side == 0 && c.Flags == 0 }

// cleanID reports that a client id is printable ASCII, padded with zeros.
func cleanID(r *wire.Request) bool {
	n := clientIDLen(r)
	for _, b := range r.ClientID[:n] {
		if b < ' ' || b > '~' {
			return false
		}
	}
	for ; n%8 != 0; n++ {
		if r.ClientID[n] != 0 {
			return false
		}
	}
	words := (*[wire.MaxClientID / 8]uint64)(unsafe.Pointer(&r.ClientID))
	for _, w := range words[n/8:] {
		if w != 0 {
			return false
		}
	}
	return true
}

// clientIDLen is the length of the client id.
func clientIDLen(r *wire.Request) int {
	for n, b := range &r.ClientID {
		if b == 0 {
			return n
		}
	}
	return len(r.ClientID)
}

// books reports that a command books an OTC contract.
func books(c *matcher.Command) bool {
	return c.Type == matcher.SwapBook || c.Type == matcher.SwaptionBook
}
