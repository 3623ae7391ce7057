package why

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"posttrade/blotter"
	"posttrade/journal"
	"posttrade/journal/asof"
	"posttrade/matcher"
)

// Errors of an Explainer.
var (
	// ErrNoContract reports the id of a contract that was never booked.
	ErrNoContract = errors.New("no such contract")
	// ErrBusy: as many explanations as may be are being made.
	ErrBusy = errors.New("too many explanations at a time")
)

// MaxConcurrent is how many explanations are made at a time: each may read far back.
const MaxConcurrent = 2

// Explainer explains the decisions of one history, at a low priority.
type Explainer struct {
	h      *asof.History
	j      *journal.Journal
	places chan struct{}
}

// New returns an Explainer.
func New(h *asof.History) *Explainer {
	return &Explainer{h, h.Journal(), make(chan struct{}, MaxConcurrent)}
}

// quietly makes an explanation on a thread of low priority, when there is a place for it. A caller
// waits for a place as long as a shadow may take; then it gets ErrBusy.
func (e *Explainer) quietly(ctx context.Context,
	make func() (*Explanation, error)) (x *Explanation, err error) {
	patience := time.NewTimer(asof.DefaultPatience)
	defer patience.Stop()
	select {
	case e.places <- struct{}{}:
		defer func() { <-e.places }()
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-patience.C:
		return nil, ErrBusy
	}
	err = journal.Politely(journal.Background, func() (err error) {
		x, err = make()
		return err
	})
	return x, err
}

// Order explains what became of an order. asof.ErrNoOrder for the number of none.
func (e *Explainer) Order(ctx context.Context, number uint64) (*Explanation, error) {
	return e.quietly(ctx, func() (*Explanation, error) {
		inputSeq, err := e.h.OrderCommand(ctx, number)
		if err != nil {
			return nil, err
		}
		return e.command(ctx, inputSeq)
	})
}

// Contract explains the booking of a contract.
func (e *Explainer) Contract(ctx context.Context, swaption bool, id uint64) (*Explanation, error) {
	if id > e.h.Head() {
		return nil, ErrNoContract
	}
	x, err := e.Command(ctx, id)
	if err == nil && (x.ContractID == nil || *x.ContractID != matcher.ContractID(swaption, id)) {
		return nil, ErrNoContract
	}
	return x, err
}

// Command explains the decision on any command. A sequence beyond the head is an
// *asof.BeyondError.
func (e *Explainer) Command(ctx context.Context, inputSeq uint64) (*Explanation, error) {
	return e.quietly(ctx, func() (*Explanation, error) { return e.command(ctx, inputSeq) })
}

// inquiry is one explanation that is being made.
type inquiry struct {
	*Explainer
	ctx context.Context
	x   *Explanation

	cmd      matcher.Command
	ticker   string
	judged   matcher.Judgement
	before   snapshot
	events   []matcher.Event
	number   uint64 // of the order that the command made
	canceled string // how the order was cancelled
}

// snapshot is what is kept of the state before the command.
type snapshot struct {
	tradeSeq uint64
	security blotter.Security
	policy   blotter.Policy
	position blotter.Position
	open     []blotter.OrderRow // the account's open orders on the side
	key      blotter.KeyRow
	hasKey   bool
	own      matcher.LimitSet // the account's own limits
	limits   matcher.RiskLimits
}

// command is Command on the caller's goroutine.
func (e *Explainer) command(ctx context.Context, inputSeq uint64) (*Explanation, error) {
	q := &inquiry{Explainer: e, ctx: ctx,
		x: &Explanation{InputSeq: inputSeq, Because: []Cause{}, Against: []Against{}}}
	err := e.h.Journal().ReplayTo(ctx, inputSeq, inputSeq,
		func(cmds []matcher.Command, _ journal.ClientIDs) error {
			q.cmd = cmds[0]
			return nil
		})
	if err == nil {
		q.events, err = e.h.Command(ctx, inputSeq, func(s asof.Scene) error {
			q.look(s)
			return nil
		})
	}
	if err != nil {
		return nil, err
	}
	return q.x, q.explain()
}

// look keeps what the explanation needs of the state before the command.
func (q *inquiry) look(s asof.Scene) {
	c := &q.cmd
	q.judged = s.Engine.Judge(c)
	b := &q.before
	b.tradeSeq, b.policy = s.Engine.TradeSeq(), s.Views.Policy()
	b.limits = s.Engine.RiskLimits()
	s.Engine.EachOwnLimits(func(o matcher.OwnLimits) bool {
		if o.AccountID == c.AccountID {
			b.own, b.limits = o.Own, o.Own.Over(&b.limits, &o.Values)
		}
		return o.AccountID != c.AccountID
	})
	if c.TemplateID != matcher.TemplateCommand {
		return
	}
	if c.Type == matcher.SwapBook || c.Type == matcher.SwaptionBook {
		b.key, b.hasKey = s.Views.Key(matcher.KeyContract, c.AccountID, uint64(c.PriceTicks))
	} else {
		b.key, b.hasKey = s.Views.Key(matcher.KeyOrder, c.AccountID, uint64(c.PriceTicks))
		b.security, _ = s.Views.Security(c.SecurityID)
		b.position, _ = s.Views.Position(c.AccountID, c.SecurityID)
		q.ticker = b.security.Ticker
	}
	var after uint64
	for {
		var rows []blotter.OrderRow
		rows, after = s.Views.Orders(blotter.OrderFilter{Accounts: []uint32{c.AccountID},
			Statuses: blotter.OpenOrders}, after, 1000, nil)
		b.open = append(b.open, rows...)
		if after == 0 {
			return
		}
	}
}

// explain fills in the explanation.
func (q *inquiry) explain() error {
	first, x := &q.events[0], q.x
	x.Account, x.ForAdmin = q.cmd.AccountID, q.forAdmin()
	x.Decision, x.DecidedBy = "ACCEPTED", "engine"
	if first.Kind == matcher.EventRejected {
		return q.refused(first)
	}
	switch first.Kind {
	case matcher.EventContract:
		id := matcher.ContractID(q.cmd.Type == matcher.SwaptionBook, x.InputSeq)
		x.ContractID = &id
	case matcher.EventAccepted:
		q.number = first.Order()
		id := matcher.OrderID(q.number)
		x.OrderID = &id
		if err := q.follow(); err != nil {
			return err
		}
	default:
		if n := first.Order(); n != 0 && q.cmd.AboutOrder() {
			id := matcher.OrderID(n)
			x.OrderID = &id
		}
	}
	x.Text = q.acceptedText()
	return nil
}

// forAdmin reports a command that acts for no account.
func (q *inquiry) forAdmin() bool {
	if q.cmd.TemplateID != matcher.TemplateCommand {
		return true
	}
	switch q.cmd.Type {
	case matcher.OrderNew, matcher.OrderCancel, matcher.OrderReplace, matcher.TradeNew,
		matcher.SwapBook, matcher.SwaptionBook:
		return false
	}
	return true
}

// refused explains a refusal.
func (q *inquiry) refused(first *matcher.Event) error {
	x, c := q.x, &q.cmd
	x.Decision = "REJECTED"
	reason := first.Reason.String()
	x.Reason = &reason
	if c.TemplateID == matcher.TemplateCommand && c.Type == matcher.OrderNew {
		if n := first.Order(); n != 0 {
			id := matcher.OrderID(n)
			x.OrderID = &id
		}
	} else if n := first.Named(); n != 0 && c.TemplateID == matcher.TemplateCommand &&
		(c.Type == matcher.OrderReplace || c.Type == matcher.OrderCancel || c.Type == matcher.ForceFill) {
		id := matcher.OrderID(n)
		x.OrderID = &id
	}
	if q.verdict() && first.Reason != matcher.Duplicate {
		x.DecidedBy = "gate"
	}
	if q.judged.Reason != first.Reason {
		return q.gateRefused(first.Reason)
	}
	if j := &q.judged; j.Rule != "" {
		x.Rule = &j.Rule
		x.Observed, x.Limit = sideOf(j.Observed), sideOf(j.Limit)
	}
	if err := q.causes(first.Reason); err != nil {
		return err
	}
	x.Text = q.refusedText(first.Reason)
	return nil
}

// verdict reports that the record carries the gate's refusal.
func (q *inquiry) verdict() bool {
	return q.cmd.TemplateID == matcher.TemplateCommand && q.cmd.OrderRef != 0 &&
		(q.cmd.Type == matcher.OrderNew || q.cmd.Type == matcher.TradeNew)
}

// what names the command for a sentence.
func (q *inquiry) what() string {
	c := &q.cmd
	subject := fmt.Sprintf("command %d", q.x.InputSeq)
	if q.x.OrderID != nil {
		subject = *q.x.OrderID
	}
	if c.TemplateID != matcher.TemplateCommand {
		return subject
	}
	side := "Buy "
	if c.Side == matcher.Sell {
		side = "Sell "
	}
	security := q.ticker
	if security == "" {
		security = "an unknown security"
	}
	price := " at the market"
	if c.LimitPx > 0 {
		price = " at " + decimal(c.LimitPx)
	}
	account := " for account " + strconv.FormatUint(uint64(c.AccountID), 10)
	qty := strconv.Itoa(int(c.Qty))
	switch c.Type {
	case matcher.OrderNew:
		return subject + " (" + side + qty + " " + security + price + account + ")"
	case matcher.OrderReplace:
		return "the replace of " + subject + " (to " + qty + price + account + ")"
	case matcher.OrderCancel:
		return "the cancel of " + subject + " (" + account[1:] + ")"
	case matcher.TradeNew:
		return "the market trade at sequence " + strconv.FormatUint(q.x.InputSeq, 10) + " (" + side +
			qty + " " + security + account + ")"
	case matcher.SwapBook, matcher.SwaptionBook:
		product := "the swap"
		if c.Type == matcher.SwaptionBook {
			product = "the swaption"
		}
		return product + " at sequence " + strconv.FormatUint(q.x.InputSeq, 10) + " (notional " + qty +
			account + ")"
	}
	return "the control at sequence " + strconv.FormatUint(q.x.InputSeq, 10) + " (" +
		describe(c, q.ticker) + ")"
}
