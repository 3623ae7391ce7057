package gate

import (
	"fmt"
	"slices"
	"strconv"

	"posttrade/matcher"
	"posttrade/matcher/strictjson"
)

// ownRow is what an account has of its own. Readers see the merged limits instead (ownLimits); this
// is kept so that a change of the limits of all accounts can merge them again.
type ownRow struct {
	set    matcher.LimitSet
	values matcher.RiskLimits
}

// SetRiskLimits sets the limits of all accounts. An account keeps its own.
func (g *Gate) SetRiskLimits(all matcher.RiskLimits) {
	g.writers.mu.Lock()
	defer g.writers.mu.Unlock()
	g.setRiskLimits(all)
}

// setRiskLimits is SetRiskLimits for a caller that holds writers.mu. Its cost follows the accounts
// with limits of their own. A reader between two stores judges one account by the new limits and
// another by the old ones; each by a whole set.
func (g *Gate) setRiskLimits(all matcher.RiskLimits) {
	g.policy.limits.Store(&all)
	for id, row := range g.writers.own {
		g.publishOwn(id, row)
	}
}

// SetOwnLimits sets all limits that a known account has of its own, none for an empty set.
// ErrAccount for an account that the gate does not know.
func (g *Gate) SetOwnLimits(o matcher.OwnLimits) error {
	g.writers.mu.Lock()
	defer g.writers.mu.Unlock()
	return g.setOwnLimits(o)
}

// setOwnLimits is SetOwnLimits for a caller that holds writers.mu.
func (g *Gate) setOwnLimits(o matcher.OwnLimits) error {
	row := g.accountRow(o.AccountID)
	if row == nil {
		return fmt.Errorf("gate: set limits of account id=%d: %w", o.AccountID, ErrAccount)
	}
	if o.Own == 0 {
		delete(g.writers.own, o.AccountID)
		row.word.Store(row.word.Load() &^ accountBounded)
		return nil
	}
	g.writers.own[o.AccountID] = ownRow{o.Own, o.Values}
	g.publishOwn(o.AccountID, g.writers.own[o.AccountID])
	row.word.Store(row.word.Load() | accountBounded) // a reader that finds it finds the limits
	return nil
}

// publishOwn publishes what holds for an account with limits of its own.
func (g *Gate) publishOwn(id uint32, row ownRow) {
	limits := row.set.Over(g.policy.limits.Load(), &row.values)
	t := g.tables.Load()
	_, at := t.account(id)
	t.own[at].Store(&limits)
}

// observeLimits takes over what a LIMITS_CONTROL has set. The event states the result, not the
// change, so an event can be observed twice. Its policy version is in Px.
func (g *Gate) observeLimits(ev *matcher.Event) {
	w, limits := g.writers, ev.Limits()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.prices.Lock()
	fresh := w.advance(ev.InputSeq)
	w.prices.Unlock()
	if !fresh {
		return
	}
	if limits.ForAccount {
		o := matcher.OwnLimits{AccountID: ev.AccountID, Own: limits.Own, Values: limits.Values}
		if g.setOwnLimits(o) != nil {
			w.missed.Add(1)
		}
	} else {
		g.setRiskLimits(limits.Values)
	}
	g.policy.version.Store(ev.Px)
}

// LimitValues are limits in the shape of the JSON answer: those of Set, money in currency units.
// Values outside Set mean nothing.
type LimitValues struct {
	Set    matcher.LimitSet
	Values matcher.RiskLimits
}

// MarshalJSON writes an object with a member for each limit of Set, by the name of LimitID. Money
// is an exact decimal in currency units, the rest whole numbers.
func (v LimitValues) MarshalJSON() ([]byte, error) {
	b := []byte{'{'}
	for id := range matcher.LimitID(matcher.LimitCount) {
		if !v.Set.Has(id) {
			continue
		}
		if len(b) > 1 {
			b = append(b, ',')
		}
		b = append(strconv.AppendQuote(b, id.String()), ':')
		if id.Money() {
			b = strictjson.FormatDecimal(b, v.Values[id])
		} else {
			b = strconv.AppendInt(b, v.Values[id], 10)
		}
	}
	return append(b, '}'), nil
}

// limitsInForce are the limits of all accounts.
func (g *Gate) limitsInForce() LimitValues {
	return LimitValues{matcher.AllLimits, *g.policy.limits.Load()}
}

// RiskLimits returns the limits of all accounts. Any goroutine.
func (g *Gate) RiskLimits() matcher.RiskLimits { return *g.policy.limits.Load() }

// addOwn adds the own limits to the rows of their accounts, which ascend by id. It runs after the
// locks are released, on copies.
func addOwn(accounts []AccountControl, own map[uint32]ownRow) {
	for id, row := range own {
		i, found := slices.BinarySearchFunc(accounts, id,
			func(a AccountControl, id uint32) int { return int(int64(a.ID) - int64(id)) })
		if found {
			accounts[i].Limits = &LimitValues{row.set, row.values}
		}
	}
}
