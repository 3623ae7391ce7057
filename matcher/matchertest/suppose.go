package matchertest

import (
	"math/big"

	"posttrade/matcher"
)

// The functions below are for oracles of "what if".

// Suppose sets a limit of all accounts; an account keeps its own.
func (m *Model) Suppose(id matcher.LimitID, value int64) { m.all[id] = value }

// Judge returns what the model itself would decide on an order or a market trade that carries a
// verdict of the gate. It changes no state that a later decision depends on.
func (m *Model) Judge(c matcher.Command) matcher.RiskReason {
	c.OrderRef = 0
	m.cmd, m.said = c, nil
	switch {
	case m.known():
		return matcher.Duplicate
	case c.Type == matcher.TradeNew:
		return m.judgeTrade()
	}
	return m.judge()
}

// EachOpen calls f for every open order, by priority.
func (m *Model) EachOpen(f func(matcher.OrderInfo)) {
	for _, o := range m.open {
		f(o.info())
	}
}

// Worth returns what each account has received less what it has paid, and what its positions are
// worth at the market prices, both x 1e6. A security without a market price counts as nothing.
func (m *Model) Worth() map[uint32]*big.Int {
	worth := map[uint32]*big.Int{}
	for id, a := range m.accounts {
		worth[id] = new(big.Int).Neg(a.executed)
	}
	for key, p := range m.positions {
		if worth[key[0]] != nil {
			value := big.NewInt(m.securities[key[1]-1].lastPx)
			worth[key[0]].Add(worth[key[0]], value.Mul(value, big.NewInt(p.qty)))
		}
	}
	return worth
}
