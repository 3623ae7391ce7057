package asof

import (
	"context"
	"errors"
	"slices"

	"posttrade/blotter"
	"posttrade/journal"
	"posttrade/matcher"
)

// ErrNoOrder reports the number of an order that was never made.
var ErrNoOrder = errors.New("no such order")

// StateBefore is the state before a command. It is the callback's alone and only until it returns:
// no reader shares it, so the callback may also judge commands with the engine.
type StateBefore struct {
	// Engine and Views stand behind the command before the one that is asked for.
	Engine *matcher.Engine
	Views  *blotter.Views
}

// Command replays one command from the state before it: before sees that state, and the events of
// the command are returned, in the caller's own memory. Afterwards the shadow stands behind the
// command, where At finds it.
//
// When other readers look at the same moment, a shadow of its own is made for this call, because a
// moment does not move under its readers. Errors: those of At, also a *BeyondError for sequence 0;
// that of before, and the command is not replayed then.
func (h *History) Command(ctx context.Context, inputSeq uint64,
	before func(StateBefore) error) (events []matcher.Event, err error) {
	if head := h.Head(); inputSeq == 0 || inputSeq > head {
		return nil, &BeyondError{inputSeq, head}
	}
	m, err := h.At(ctx, inputSeq-1)
	if err != nil {
		return nil, err
	}
	h.mu.Lock()
	alone := m.p.readers == 1
	if alone {
		m.p.readers, m.p.moving = 0, true
	}
	h.mu.Unlock()
	sh := m.p.shadow
	replaying := false
	if alone {
		defer func() {
			if replaying { // and has panicked
				m.p.drop()
			}
			h.settle(m.p)
		}()
	} else { // others read this moment: they must not see it move
		m.Release()
		if sh, err = h.Shadow(ctx, inputSeq-1); err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, sh.Close()) }()
	}
	views := sh.Views().(Image).Views
	if err := before(StateBefore{sh.Engine().(*matcher.Engine), views}); err != nil {
		return nil, err
	}
	replaying = true
	err = sh.Follow(ctx, inputSeq, func(some []matcher.Event) error {
		events = append(events, some...)
		return nil
	})
	replaying = false
	return events, err
}

// settle ends a move of a shadow that no caller reads. Where the replay failed, the warmShadow has
// the sequence that the shadow has reached.
func (h *History) settle(p *warmShadow) {
	if p.shadow != nil {
		p.at = p.shadow.Applied()
	}
	h.put(p, false, false)
}

// OrderCommand returns the sequence of the command that made an order, also of one that the views
// have dropped since.
//
// Errors: ErrNoOrder, and those of At. Cost: a look at the head; for an order that the views have
// dropped also some moments at checkpoints, and the replay between two of them.
func (h *History) OrderCommand(ctx context.Context, number uint64) (inputSeq uint64, err error) {
	if number == 0 {
		return 0, ErrNoOrder
	}
	m, err := h.At(ctx, h.Head())
	if err != nil {
		return 0, err
	}
	row, kept := m.Views().Numbered(number)
	head, next := m.InputSeq(), m.Views().NextRef()
	m.Release()
	if kept || number >= next {
		if !kept {
			return 0, ErrNoOrder
		}
		return row.InputSeq, nil
	}
	return h.findOrder(ctx, number, head)
}

// findOrder searches the checkpoints for the part of the history in which an order was made, and
// replays that part.
//
// Order numbers ascend with the history, so the bases can be searched by NextRef. Each step of the
// search loads the moment of a base.
func (h *History) findOrder(ctx context.Context, number, head uint64) (uint64, error) {
	var bases []uint64
	list, _ := h.j.Snapshots() // a damaged manifest is no base
	for _, s := range list {
		bases = append(bases, s.InputSeq)
	}
	if h.checkpoints != nil {
		bases = append(bases, h.checkpoints.Sequences()...)
	}
	slices.Sort(bases)
	var searchErr error
	after, _ := slices.BinarySearchFunc(bases, number, func(at, number uint64) int {
		m, err := h.At(ctx, at)
		if err != nil {
			searchErr = err
			return 0
		}
		defer m.Release()
		if m.Views().NextRef() <= number {
			return -1
		}
		return 1
	})
	if searchErr != nil {
		return 0, searchErr
	}
	from, to := uint64(0), head
	if after > 0 {
		from = bases[after-1]
	}
	if after < len(bases) {
		to = bases[after]
	}
	return h.orderBetween(ctx, number, from, to)
}

// orderBetween replays (from, to] until an order is made.
//
// A refused order has a number too. ErrNoOrder when the range does not make it.
func (h *History) orderBetween(ctx context.Context, number, from, to uint64) (found uint64,
	err error) {
	sh, err := h.Shadow(ctx, from)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, sh.Close()) }()
	err = journal.Politely(journal.Background, func() error {
		return sh.Follow(ctx, to, func(events []matcher.Event) error {
			for i := range events {
				ev := &events[i]
				made := ev.Kind == matcher.EventAccepted ||
					ev.Kind == matcher.EventRejected && ev.Reason != matcher.Duplicate &&
						ev.Cmd().TemplateID == matcher.TemplateCommand && ev.Cmd().Type == matcher.OrderNew
				if made && ev.Order() == number {
					found = ev.InputSeq
					return errEnough
				}
			}
			return nil
		})
	})
	if err != nil && !errors.Is(err, errEnough) {
		return 0, err
	}
	if found == 0 {
		return 0, ErrNoOrder
	}
	return found, nil
}
