package projection

import (
	"context"
	"fmt"

	"posttrade/sidecars/store"
)

// noteRules stores the rules by which settlements are dated from here on, when other rules were in
// force before. Reconciliation later checks the dates of the rows by them.
func (p *Projection) noteRules(ctx context.Context) error {
	if p.o.Rules == "" {
		return nil
	}
	known := false
	err := p.o.DB.Read(ctx, func(tx *store.Tx) (err error) {
		_, known, err = p.rulesNoted(tx)
		return err
	})
	if err == nil && !known {
		err = p.o.DB.Write(ctx, p.addRules)
	}
	if err != nil {
		return fmt.Errorf("projection: note settlement rules: %w", err)
	}
	return nil
}

// rulesNoted reports whether the rules that were stored last are those of this process.
func (p *Projection) rulesNoted(tx *store.Tx) (any, known bool, err error) {
	all, err := tx.SettlementRules()
	return len(all) > 0, len(all) > 0 && all[len(all)-1].Rules == p.o.Rules, err
}

func (p *Projection) addRules(tx *store.Tx) error {
	at, err := tx.HoldCursor(cursorTrades)
	if err != nil {
		return err
	}
	any, known, err := p.rulesNoted(tx)
	if err != nil || known {
		return err
	}
	now := p.o.Now().UnixMilli()
	from := store.SettlementRules{Rules: p.o.Rules, FirstSeq: at + 1, BookedFrom: now}
	if !any {
		before := store.SettlementRules{}
		if at > 0 { // the rows of a build that stored no rules
			before.ForcesFrom = now
		}
		if same, err := p.datesAgree(tx, at); err != nil {
			return err
		} else if same {
			before.Rules = p.o.Rules
			return tx.AddSettlementRules(before)
		}
		if err := tx.AddSettlementRules(before); err != nil {
			return err
		}
	}
	return tx.AddSettlementRules(from)
}

// datesAgree reports whether the oldest and the newest of the rows up to at are dated by this
// process's rules. The caller then takes these for the rules of all of them. It is true when there
// are no rows.
func (p *Projection) datesAgree(tx *store.Tx, at uint64) (same bool, err error) {
	same = true
	for _, seq := range []string{"min", "max"} {
		err := tx.Query("select executed_at, settlement_date from trades where trade_seq = "+
			"(select "+seq+"(trade_seq) from trades where trade_seq <= $1)", func(r *store.Row) error {
			day, ok := r.Day(1)
			same = same && ok && day == p.o.SettlementDate(r.Int64(0))
			return nil
		}, at)
		if err != nil {
			return false, err
		}
	}
	return same, nil
}
