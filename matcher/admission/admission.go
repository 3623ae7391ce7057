//perf:hot

package admission

import (
	"posttrade/blotter"
	"posttrade/matcher"
	"posttrade/matcher/desk"
	"posttrade/matcher/gate"
)

// Verdict is what becomes of a request.
type Verdict uint8

// The verdicts. Only an Admitted request goes to the engine.
const (
	Admitted Verdict = iota
	// Of the request: it is answered without the engine, and nothing is sequenced.
	Repeated // its key is known: Request.First is the answer
	Differs  // its key is known with other terms
	Ended    // the order that it names can no longer change
	// Of this moment: the same request may be admitted later.
	Failed   // the journal has failed
	Full     // the journal's reserve is used up
	Held     // the database knows more of the history than the journal
	NotReady // a control source is not ready
	// For Request.Reason: by the gate, or in Settle by the engine.
	Refused
)

// Decider is what admission is decided from. All fields are set before its first use and constant
// then. The functions are called on the goroutine of every request, so they must be cheap and safe
// for any goroutine.
type Decider struct {
	Gate  *gate.Gate
	Views *blotter.Views

	Failed      func() error // the error of a failed journal, else nil
	StorageFull func() bool  // the journal's reserve is used up
	Held        func() bool  // the database knows more than the journal; nil: never

	Enforced         bool // risk.entitlement.enforced
	SequenceRefusals bool // audit.sequence-refusals
}

// Request is a decoded request, and the verdict on it. The caller fills in the upper fields and
// calls Prepare, then Decide or DecideAll; Settle comes after the answer. The byte slices are the
// caller's and are read during these calls only.
type Request struct {
	Command  *matcher.Command
	ClientID []byte // the client order id, empty for none
	Ticker   []byte // the security as the client wrote it; nil when the command has only its number
	Gone     bool   // of an amendment: its order can no longer change; see About

	Verdict Verdict
	Reason  matcher.RiskReason // why the gate, or in Settle the engine, refuses; else Accepted
	First   blotter.KeyRow     // of Repeated, and of Ended for a known key: the first decision
}

// May reports whether a caller may act for an account and see it: every caller while entitlement is
// not enforced. An edge asks before Prepare, because Decide answers a repeated request without
// asking again.
func (r *Decider) May(caller *gate.Claims, account uint32) bool {
	return !r.Enforced || caller.Entitled(account)
}

// Security returns what an order's record has for a ticker: the security's number, or, if no
// security has that ticker, a number that stands for it.
func (r *Decider) Security(ticker []byte) uint32 {
	if id, ok := r.Gate.Security(ticker); ok {
		return id
	}
	return matcher.UnknownTicker(ticker)
}

// About makes the request an amendment of an order: its command gets the order's own fields, so
// that a client names nothing but the order. A post-only order stays one through a replace. The row
// may be older than the order; the engine decides what it is by then.
func (q *Request) About(order *blotter.OrderRow) {
	c := q.Command
	c.OrderRef, c.AccountID = order.Ref, order.AccountID
	c.SecurityID, c.Side = order.SecurityID, order.Side
	if c.Type == matcher.OrderReplace && order.TimeInForce == blotter.PostOnly {
		c.Flags = matcher.FlagPostOnly
	}
	q.Gone = !order.Open()
}

// Prepare gives the command its key and starts the look-up of it, so that those of many requests
// overlap. Decide comes next. The account of the command is already set, because the key is made
// from it.
func (r *Decider) Prepare(q *Request) {
	key := r.Views.ClientKey().Of(q.Command.AccountID, q.ClientID)
	q.Command.PriceTicks = int64(key)
	r.Views.ExpectKey(matcher.KeyOrder, key)
}

// Decide judges a prepared request and keeps the verdict in it. After Repeated First has the first
// decision; after Refused Reason says why. The steps are those of doc.go.
func (r *Decider) Decide(q *Request) Verdict {
	if q.Verdict = r.known(q); q.Verdict != Admitted {
		return q.Verdict
	}
	if q.Verdict = r.closed(q); q.Verdict == Admitted {
		r.screen(q)
	}
	return q.Verdict
}

// DecideAll judges a batch of prepared new orders. Admitted: each has its own verdict. Any other
// verdict is that of the whole batch, and nothing of it may be handed in.
//
// A batch in which every order is a repetition needs no open journal: all answers are known.
func (r *Decider) DecideAll(batch []Request) Verdict {
	var fresh *Request
	for i := range batch {
		q := &batch[i]
		if q.Verdict = r.known(q); q.Verdict == Admitted {
			fresh = q
		}
	}
	if fresh == nil {
		return Admitted
	}
	if v := r.closed(fresh); v != Admitted {
		return v
	}
	for i := range batch {
		if q := &batch[i]; q.Verdict == Admitted {
			r.screen(q)
		}
	}
	return Admitted
}

// Settle judges the engine's answer to a request that was handed in. Admitted: the answer is the
// decision on this request. Repeated: another request with the key was decided first, and First has
// its decision. Ended: the order that it names was not open by then. Refused: for Reason.
func (r *Decider) Settle(q *Request, a *desk.Answer) Verdict {
	q.Verdict, q.Reason = Admitted, a.Reason
	switch {
	case !a.Refused():
	case a.Duplicate(): // it repeats one that was still under way when it was admitted
		if q.Verdict = r.known(q); q.Verdict == Admitted {
			q.Verdict = Differs // the key was forgotten between the decision and now
		}
	case q.Command.Type == matcher.OrderCancel, r.ended(q, a.Reason):
		q.Verdict = Ended
	default:
		q.Verdict = Refused
	}
	return q.Verdict
}

// ended reports that a replace was refused because its order had ended before the engine reached
// it. The engine's INVALID alone does not tell that from wrong terms. The terms and the filled
// quantity, which only rises, do: terms off the grid or not above what is filled are wrong whatever
// the order's state. A post-only order may have been refused for its price at the time, so its
// refusal always counts as one for its terms. So a refusal is judged alike whenever it is asked.
func (r *Decider) ended(q *Request, reason matcher.RiskReason) bool {
	c := q.Command
	if c.Type != matcher.OrderReplace || reason != matcher.Invalid ||
		c.Flags&matcher.FlagPostOnly != 0 || c.LimitPx%r.Gate.Tick() != 0 {
		return false
	}
	order, ok := r.Views.Order(c.OrderRef)
	return !ok || !order.Open() && c.Qty > order.Qty-order.Leaves
}

// known looks the key up among the first decisions: Admitted for a new key, Repeated for the same
// request again, Differs for another request under the same key. Terms are compared as the client
// sent them. A cancel has no key: it may be repeated.
func (r *Decider) known(q *Request) Verdict {
	c := q.Command
	if c.PriceTicks == 0 || c.Type == matcher.OrderCancel {
		return Admitted
	}
	space := matcher.KeyOrder
	if c.Type == matcher.SwapBook || c.Type == matcher.SwaptionBook {
		space = matcher.KeyContract
	}
	var ok bool
	if q.First, ok = r.Views.Key(space, c.AccountID, uint64(c.PriceTicks)); !ok {
		return Admitted
	}
	if !q.First.Repeats(c, q.ClientID, q.Ticker) {
		return Differs
	}
	if r.ended(q, q.First.Reason) { // as Settle has answered it
		return Ended
	}
	return Repeated
}

// closed says why the request cannot be sequenced now, Admitted if it can. A cancel does not need
// the sources to be ready.
func (r *Decider) closed(q *Request) Verdict {
	if q.Gone {
		q.First = blotter.KeyRow{} // the request may have been another one's before
		return Ended
	}
	if v := r.Open(); v != Admitted || q.Command.Type == matcher.OrderCancel {
		return v
	}
	if !r.Gate.Ready() {
		return NotReady
	}
	return Admitted
}

// Open says why nothing at all can be sequenced, Admitted if it can.
func (r *Decider) Open() Verdict {
	switch {
	case r.Failed() != nil:
		return Failed
	case r.StorageFull():
		return Full
	case r.Held != nil && r.Held():
		return Held
	}
	return Admitted
}

// screen asks the gate, and puts its reason into a command that has a field for it. A replace is
// left to the engine (doc.go, step 5).
func (r *Decider) screen(q *Request) {
	c := q.Command
	if q.Reason = matcher.Accepted; c.Type == matcher.OrderReplace {
		return
	}
	q.Reason = r.Gate.Screen(c)
	if q.Reason != matcher.Accepted && !r.SequenceRefusals {
		q.Verdict = Refused
		return
	}
	if c.Type == matcher.OrderNew || c.Type == matcher.TradeNew {
		c.OrderRef = uint32(q.Reason)
	}
}
