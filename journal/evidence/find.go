package evidence

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"posttrade/journal"
	"posttrade/matcher"
)

// Wanted names a record. Exactly one of its fields is set.
type Wanted struct {
	InputSeq uint64
	TradeSeq uint64
	Order    uint64 // an order's number
	Contract string // SW-N or SWPT-N
}

// ParseWanted reads an id: trd-N, ord-N, SW-N, SWPT-N or an input sequence.
func ParseWanted(id string) (w Wanted, ok bool) {
	number := func(prefix string) uint64 {
		digits, found := strings.CutPrefix(id, prefix)
		n, err := strconv.ParseUint(digits, 10, 63)
		if !found || err != nil || strconv.FormatUint(n, 10) != digits {
			return 0
		}
		return n
	}
	w.TradeSeq, w.Order = number("trd-"), number("ord-")
	if _, _, isContract := matcher.ParseContractID(id); isContract {
		w.Contract = id
	}
	w.InputSeq = number("")
	return w, w != (Wanted{})
}

// Find returns the command of a record and the account that it is of. For a control or a tick,
// which is of no account, ok is false.
func (p *Prover) Find(ctx context.Context, w Wanted) (at Place, err error) {
	switch {
	case w.TradeSeq != 0:
		return p.findTrade(w.TradeSeq)
	case w.Order != 0:
		return p.findOrder(ctx, w.Order)
	case w.Contract != "":
		swaption, seq, ok := matcher.ParseContractID(w.Contract)
		if !ok {
			return at, fmt.Errorf("evidence: %q: %w", w.Contract, ErrUnknown)
		}
		at, err = p.command(ctx, seq)
		if want := contractType(swaption); err == nil && at.kind != want {
			err = fmt.Errorf("evidence: %s: %w", w.Contract, ErrUnknown)
		}
		at.ID = w.Contract
		return at, err
	}
	return p.command(ctx, w.InputSeq)
}

func contractType(swaption bool) matcher.CommandType {
	if swaption {
		return matcher.SwaptionBook
	}
	return matcher.SwapBook
}

// Place is where a record is.
type Place struct {
	InputSeq  uint64
	TradeSeq  uint64 // of a fill, else 0
	AccountID uint32
	Owned     bool // the record is of AccountID
	ID        string
	kind      matcher.CommandType
}

func (p *Prover) findTrade(tradeSeq uint64) (at Place, err error) {
	if _, last := p.j.Head(); tradeSeq > last {
		return at, fmt.Errorf("evidence: trd-%d: %w", tradeSeq, ErrUnknown)
	}
	enough := errors.New("enough")
	err = p.j.Fills(tradeSeq, func(fills []matcher.Fill) error {
		at = Place{InputSeq: fills[0].InputSeq, TradeSeq: tradeSeq, AccountID: fills[0].AccountID,
			Owned: true, ID: fmt.Sprintf("trd-%d", tradeSeq)}
		return enough
	})
	if errors.Is(err, enough) {
		err = nil
	}
	return at, err
}

// command is the place of a command's record.
func (p *Prover) command(ctx context.Context, inputSeq uint64) (at Place, err error) {
	if head, _ := p.j.Head(); inputSeq == 0 || inputSeq > head {
		return at, fmt.Errorf("evidence: sequence %d: %w", inputSeq, ErrUnknown)
	}
	err = p.j.ReplayTo(ctx, inputSeq, inputSeq, func(c []matcher.Command, _ journal.ClientIDs) error {
		at = placeOf(&c[0])
		return nil
	})
	return at, err
}

// placeOf is the place of a command's record. A command of an operator or of a feed has no owner.
func placeOf(c *matcher.Command) Place {
	at := Place{InputSeq: c.InputSeq}
	if c.TemplateID != matcher.TemplateCommand {
		return at
	}
	switch at.kind = c.Type; c.Type {
	case matcher.OrderNew, matcher.OrderCancel, matcher.OrderReplace, matcher.ForceFill,
		matcher.TradeNew, matcher.SwapBook, matcher.SwaptionBook:
		at.AccountID, at.Owned = c.AccountID, true
	}
	return at
}

// findOrder looks for the command that made an order: there is no index, so the shadow engine goes
// to the last command of which it is known that the order did not exist.
func (p *Prover) findOrder(ctx context.Context, number uint64) (at Place, err error) {
	leave, err := p.enter()
	if err != nil {
		return at, err
	}
	defer leave()
	found := errors.New("found")
	err = journal.Politely(journal.Background, func() (err error) {
		sh, err := p.beforeOrder(number)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, sh.Close()) }()
		head, _ := p.j.Head()
		return sh.Follow(ctx, head, func(events []matcher.Event) error {
			for i := range events {
				ev := &events[i]
				if ev.Flags&matcher.EventFirst == 0 || ev.Cmd().TemplateID != matcher.TemplateCommand ||
					ev.Cmd().Type != matcher.OrderNew || ev.Order() != number ||
					ev.Reason == matcher.Duplicate {
					continue
				}
				at = placeOf(ev.Cmd())
				at.ID = fmt.Sprintf("ord-%d", number)
				return found
			}
			return nil
		})
	})
	switch {
	case errors.Is(err, found):
		return at, nil
	case err == nil:
		err = fmt.Errorf("evidence: ord-%d: %w", number, ErrUnknown)
	}
	return at, err
}

// numbered is what findOrder needs of an engine besides its events.
type numbered interface{ NextOrder() uint64 }

// beforeOrder is a shadow at the newest snapshot at which the order did not exist.
func (p *Prover) beforeOrder(number uint64) (*journal.Shadow, error) {
	list, err := p.j.Snapshots()
	if err != nil {
		return nil, fmt.Errorf("evidence: %w", err)
	}
	for i := 0; i <= len(list); i++ {
		before := uint64(0)
		if i < len(list) {
			before = list[i].InputSeq
		}
		early := true
		sh, err := journal.NewShadow(p.j, func(state io.Reader) (journal.Engine, error) {
			e, err := p.engine(state)
			if n, ok := e.(numbered); ok && err == nil {
				early = n.NextOrder() <= number
			}
			return e, err
		}, before)
		if err != nil {
			return nil, fmt.Errorf("evidence: %w", err)
		}
		if early {
			return sh, nil
		}
		if err := sh.Close(); err != nil {
			return nil, err
		}
	}
	return nil, ErrUnknown // not reached: at genesis there is no order
}
