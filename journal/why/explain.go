package why

import (
	"context"
	"errors"
	"time"

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

// MaxConcurrent is how many explanations are made at a time: each may read far back, and each needs
// warm shadows, of which there are asof.MaxWarm.
const MaxConcurrent = 2

// Explainer explains the decisions of one history, at a low priority.
//
// Any goroutine may use it. It keeps nothing between two explanations.
type Explainer struct {
	h *asof.History
	j *journal.Journal
	// places has a place for each explanation that may be made at a time.
	places chan struct{}
}

// New returns an Explainer. It needs no Close; h must stay open as long as it is used.
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

// Order explains what became of an order, a refused one too.
//
// Errors: asof.ErrNoOrder for the number of none; ErrBusy, asof.ErrBusy; those of ctx and the
// journal.
func (e *Explainer) Order(ctx context.Context, number uint64) (*Explanation, error) {
	return e.quietly(ctx, func() (*Explanation, error) {
		inputSeq, err := e.h.OrderCommand(ctx, number)
		if err != nil {
			return nil, err
		}
		return e.command(ctx, inputSeq)
	})
}

// Contract explains the booking of a contract. id is the sequence of the booking, so any other
// command of that sequence, a refused booking too, is ErrNoContract.
func (e *Explainer) Contract(ctx context.Context, swaption bool, id uint64) (*Explanation, error) {
	if id == 0 || id > e.h.Head() {
		return nil, ErrNoContract
	}
	x, err := e.Command(ctx, id)
	if err == nil && (x.ContractID == nil || *x.ContractID != matcher.ContractID(swaption, id)) {
		return nil, ErrNoContract
	}
	return x, err
}

// Command explains the decision on any command. A sequence beyond the head, or 0, is an
// *asof.BeyondError.
func (e *Explainer) Command(ctx context.Context, inputSeq uint64) (*Explanation, error) {
	return e.quietly(ctx, func() (*Explanation, error) { return e.command(ctx, inputSeq) })
}

// explain fills in the explanation, from the first event of the command on: that one says whether
// the command was refused.
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

// refused explains a refusal. When the checks give another reason than the history has, they did
// not make the decision, and no two sides can be shown: see gateRefused.
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
