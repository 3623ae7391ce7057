//perf:hot

package session

import (
	"unsafe"

	"posttrade/matcher"
	"posttrade/matcher/admission"
	"posttrade/matcher/session/wire"
)

// judge turns request i, already copied out of shared memory, into a command for admission: its
// form, the order that it names, the account. Decided: admission is asked next. Any other code is
// the answer, and nothing is sequenced.
//
// The server sets the version and the event time; it takes over the correlation id as it is.
func (p *poller) judge(one *session, i int) wire.Code {
	r, q := &one.requests[i], &one.asks[i]
	if !readable(r) {
		return wire.Malformed
	}
	c := &r.Command
	q.ClientID, q.Gone = r.ClientID[:clientIDLen(r)], false // admission sets the rest
	// The client does not choose the rules that decide a command.
	c.Version = matcher.SchemaVersion
	c.EventTimeMillis = p.now
	if c.Type == matcher.OrderCancel || c.Type == matcher.OrderReplace {
		if code := p.locate(one, q); code != wire.Decided {
			return code
		}
	} else if !one.may(c.AccountID) {
		return wire.NotEntitled
	}
	p.server.o.Prepare(q)
	return wire.Decided
}

// locate finds the order of a cancel or a replace and gives the request its terms. An order of an
// account that the session may not see is NotEntitled; one of another account than the command
// names is NotFound.
func (p *poller) locate(one *session, q *admission.Request) wire.Code {
	row, ok := p.server.o.Views.Order(q.Command.OrderRef)
	switch {
	case !ok:
		return wire.NotFound
	case !one.may(row.AccountID):
		return wire.NotEntitled
	case row.AccountID != q.Command.AccountID:
		return wire.NotFound
	}
	q.About(&row)
	return wire.Decided
}

// codes are the answer codes of the verdicts. Decided: the command is handed in. shown: the answer
// comes from the views.
var codes = [...]wire.Code{
	admission.Admitted: wire.Decided, admission.Repeated: shown, admission.Ended: shown,
	admission.Differs: wire.Conflict, admission.NotReady: wire.NotReady,
	admission.Failed: wire.Unavailable, admission.Full: wire.Unavailable,
	admission.Held: wire.Unavailable, admission.Refused: wire.Refused,
}

// shown is the outcome of a command whose answer shows what the views have: see deferredAnswer. It
// is above all codes of the wire and never written there.
const shown = wire.Code(wire.Codes)

// readable reports that a client may send this request: a command of a type for clients, strictly
// formed, with 0 in every field that the server fills in. It is stricter than Decode, which lets
// the unused fields of most types hold anything.
func readable(r *wire.Request) bool {
	c := &r.Command
	if c.TemplateID != matcher.TemplateCommand || !wellFormed(c) || !cleanID(r) || !unfilled(c) {
		return false
	}
	switch c.Type {
	case matcher.OrderNew:
		return c.OrderRef == 0 && c.Qty > 0 && c.LimitPx >= 0 && oneForce(c)
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

// unfilled reports that the fields that the server fills in are 0.
func unfilled(c *matcher.Command) bool {
	return c.EventTimeMillis == 0 && c.PriceTicks == 0 && c.LeaderEpoch == 0
}

// oneForce reports that an order has one time in force at most, and that it suits its type.
func oneForce(c *matcher.Command) bool {
	const force = matcher.FlagIOC | matcher.FlagFOK | matcher.FlagPostOnly
	return c.Flags&^force == 0 && matcher.Coherent(c.Flags, c.LimitPx == 0)
}

// unnamed reports that the fields known from the order itself are 0.
func unnamed(c *matcher.Command) bool { return c.SecurityID == 0 && c.Side == 0 && c.Flags == 0 }

// cleanID reports that a client id is printable ASCII, padded with zeros. It tests the padding by
// words of eight bytes, because most ids are short and the test runs for every command.
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

// clientIDLen is the length of the client id, 0 to 64: the bytes before the first zero.
func clientIDLen(r *wire.Request) int {
	for n, b := range &r.ClientID {
		if b == 0 {
			return n
		}
	}
	return len(r.ClientID)
}
