package projection

import (
	"context"
	"fmt"

	"posttrade/sidecars/store"
)

// noteRules stores the rules by which settlements are dated from here on, when other rules were in
// force before. Reconciliation later checks the dates of the rows by them. A database without any
// rules and trades also gets the settlements by hand.
//
// It costs one read unless the rules are new. The list is append-only: going back to earlier rules
// is another entry.
func (p *Projection) noteRules(ctx context.Context) error {
	if p.o.Rules == "" {
		return nil
	}
	any, known, at := false, false, uint64(0)
	err := p.o.DB.Read(ctx, func(tx *store.Tx) (err error) {
		if any, known, err = p.rulesNoted(tx); err == nil {
			at, err = tx.Cursor(cursorTrades)
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("projection: read settlement rules: %w", err)
	}
	if known {
		return nil
	}
	var forces []force
	if !any && at == 0 && p.o.Forces != nil { // outside of the transaction: it may take long
		err = p.o.Forces(ctx, func(tradeSeq uint64, atMillis int64) error {
			forces = append(forces, force{tradeSeq, atMillis})
			return nil
		})
	}
	if err == nil {
		err = p.o.DB.Write(ctx, func(tx *store.Tx) error { return p.addRules(tx, forces) })
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

// force is a settlement by hand.
type force struct {
	tradeSeq uint64
	atMillis int64
}

// addRules adds the rules of this process to the list, unless another process has done so. forces
// are stored with the first entry.
//
// A list that is empty first gets an entry for what is in the table: with the rules of this process
// when the oldest and the newest row are dated by them, which then is all, else with no name. The
// new rules begin behind the last booked trade, or behind the last trade of a restore, whose rows
// are made again by the rules that they had.
func (p *Projection) addRules(tx *store.Tx, forces []force) error {
	at, err := tx.HoldCursor(cursorTrades)
	if err != nil {
		return err
	}
	any, known, err := p.rulesNoted(tx)
	if err != nil || known {
		return err
	}
	restored, err := tx.Cursor(store.CursorRestored)
	if err != nil {
		return err
	}
	_, head := p.o.Journal.Head()
	now := p.o.Now().UnixMilli()
	from := store.SettlementRules{Rules: p.o.Rules, FirstSeq: max(at, min(restored, head)) + 1,
		BookedFrom: now}
	if !any {
		for _, f := range forces {
			if err := tx.NoteForce(f.tradeSeq, f.atMillis); err != nil {
				return err
			}
		}
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
//
// It reads two rows. A row whose date was edited to be none counts as different.
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

// era is a time during which one set of settlement rules was in force.
//
// Eras are compared by pointer (datedMillis.by), so they stay where they are between two calls of
// readEras.
type era struct {
	first   uint64 // its first trade
	settles func(executedAtMillis int64) store.Date
}

// readEras reads which rules were in force for which trades. Those that this build does not know
// are those of this process.
//
// The first entry is this process's own, for trades that no era covers.
func (p *Projection) readEras(ctx context.Context) error {
	var all []store.SettlementRules
	err := p.o.DB.Read(ctx, func(tx *store.Tx) (err error) {
		all, err = tx.SettlementRules()
		return err
	})
	if err != nil {
		return fmt.Errorf("projection: read settlement rules: %w", err)
	}
	p.eras = append(p.eras[:0], era{settles: p.o.SettlementDate})
	for _, s := range all {
		e := era{first: s.FirstSeq, settles: p.o.SettlementDate}
		if s.Rules != p.o.Rules && p.o.Named != nil {
			if settles, known := p.o.Named(s.Rules); known {
				e.settles = settles
			}
		}
		p.eras = append(p.eras, e)
	}
	return nil
}

// eraOf is the era whose rules date a trade: the last one that began with it or before it. A trade
// that is booked for the first time has the rules of this process; a row that is made again, after
// a restore, has those that it was dated by.
func (p *Projection) eraOf(tradeSeq uint64) *era {
	for i := len(p.eras) - 1; i > 0; i-- {
		if p.eras[i].first <= tradeSeq {
			return &p.eras[i]
		}
	}
	return &p.eras[0]
}
