package matchertest

import (
	"slices"
	"testing"

	"posttrade/matcher"
)

// Compare reads the whole engine and fails the test at the first difference: positions, accounts
// with the limits that hold for them, orders in their order, securities, contracts. It also checks
// that crossed trades sum to zero, which no comparison of single positions shows. Keys are compared
// only by what they do.
func (m *Model) Compare(t testing.TB, e *matcher.Engine) {
	t.Helper()
	sums := make([]int64, len(m.securities))
	e.EachPosition(func(p matcher.PositionInfo) bool {
		want := m.position(p.AccountID, p.SecurityID)
		if p.Qty != want.qty || p.AverageCost != want.avg {
			t.Fatalf("position %+v, want %+v", p, want)
		}
		sums[p.SecurityID-1] += p.Qty
		return true
	})
	for i, s := range m.securities {
		if sums[i] != s.oneSided {
			t.Fatalf("positions in security %d sum to %d, one-sided trades to %d", i+1, sums[i], s.oneSided)
		}
	}
	m.compareAccounts(t, e)
	orders := slices.Concat(m.open, m.retained)
	e.EachOrder(func(o matcher.OrderInfo) bool {
		if len(orders) == 0 || o != orders[0].info() {
			t.Fatalf("order %+v, want the first of %+v", o, orders)
		}
		orders = orders[1:]
		return true
	})
	if len(orders) != 0 {
		t.Fatalf("order %+v is missing", orders[0])
	}
	e.EachSecurity(func(s matcher.SecurityInfo) bool {
		w := m.securities[s.ID-1]
		want := matcher.SecurityInfo{
			ID: s.ID, Ticker: w.ticker, Controlled: w.known, Enabled: w.enabled, Halted: w.halted,
			Restricted: w.restricted,
			LastPx:     w.lastPx, LastPxTimeMillis: w.lastTime, LastTradePx: w.lastTrade,
		}
		if s != want {
			t.Fatalf("security %+v, want %+v", s, want)
		}
		return true
	})
	m.compareContracts(t, e)
}

// compareAccounts compares the accounts and the limits that hold for each, their own or those of
// all.
func (m *Model) compareAccounts(t testing.TB, e *matcher.Engine) {
	t.Helper()
	all, own := e.RiskLimits(), map[uint32]matcher.OwnLimits{}
	e.EachOwnLimits(func(o matcher.OwnLimits) bool {
		own[o.AccountID] = o
		return true
	})
	e.EachAccount(func(a matcher.AccountInfo) bool {
		want := m.accounts[a.ID]
		m.cmd.AccountID = a.ID
		limits := own[a.ID]
		for id, limit := range limits.Own.Over(&all, &limits.Values) {
			if limit != m.limit(matcher.LimitID(id)) {
				t.Fatalf("account %d: limit %d is %d, want %d", a.ID, id, limit,
					m.limit(matcher.LimitID(id)))
			}
		}
		if a.Enabled != want.enabled || a.Executed != want.executed.Int64() ||
			a.CreditLimit != m.limit(matcher.LimitCredit) {
			t.Fatalf("account %+v, want %+v", a, want)
		}
		return true
	})
}
