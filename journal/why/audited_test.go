package why

import (
	"encoding/json"
	"fmt"
	"math/big"

	"posttrade/matcher"
)

// line is one record of the audit.
type line struct {
	Kind            string
	Sequence        uint64
	OrderID         *string
	TradeID         *string
	AccountID       uint32
	Security        *string
	Side            *string
	Quantity        *int64
	Price           *json.Number
	TimestampMillis int64
	RiskReason      *string
}

// px is a price in millionths.
func (l *line) px() int64 {
	r, ok := new(big.Rat).SetString(l.Price.String())
	if !ok {
		panic(*l.Price)
	}
	return new(big.Int).Div(r.Mul(r, big.NewRat(unit, 1)).Num(), r.Denom()).Int64()
}

// audited is what the audit's lines say about the state, folded in the plainest way.
type audited struct {
	orders map[string]*auditedOrder
	cash   map[uint32]int64
	held   map[string]int64 // by account and security
	last   map[string]int64 // price of a security
	at     map[string]int64 // its time
}

type auditedOrder struct {
	account  uint32
	security string
	side     string
	total    int64
	executed int64
	limit    int64
	open     bool
}

func (a *audited) add(l *line) {
	switch l.Kind {
	case "accept":
		o := a.orders[*l.OrderID]
		if o == nil {
			o = &auditedOrder{account: l.AccountID, security: *l.Security, side: *l.Side}
			a.orders[*l.OrderID] = o
		}
		o.total, o.open = *l.Quantity, true
		if l.Price != nil {
			o.limit = l.px()
		}
	case "partial-fill", "fill":
		o := a.orders[*l.OrderID]
		o.executed += *l.Quantity
		o.open = l.Kind == "partial-fill"
	case "cancel":
		a.orders[*l.OrderID].open = false
	case "trade-booked":
		if l.TradeID == nil {
			return
		}
		signed := *l.Quantity
		if *l.Side == "Sell" {
			signed = -signed
		}
		a.held[fmt.Sprint(l.AccountID, *l.Security)] += signed
		a.cash[l.AccountID] += signed * l.px()
		a.last[*l.Security], a.at[*l.Security] = l.px(), l.TimestampMillis
	}
}

// open sums the open orders of an account on a side: their value, and their quantity in a security.
func (a *audited) open(account uint32, side, security, but string) (value, qty int64) {
	for id, o := range a.orders {
		if o.open && o.account == account && o.side == side && id != but {
			left := o.total - o.executed
			value += left * o.limit
			if o.security == security {
				qty += left
			}
		}
	}
	return value, qty
}

// judgedAt is the price that an order is judged at.
func (a *audited) judgedAt(l *line, limits *matcher.Limits) int64 {
	if l.Price == nil {
		last := a.last[*l.Security]
		if l.OrderID == nil { // a market trade
			return last
		}
		if *l.Side == "Buy" {
			last += last * limits.PriceCollarBps / 10_000
		}
		return a.bid(l, last)
	}
	return a.bid(l, l.px())
}

// bid raises the price of a sale to the best bid that it meets.
func (a *audited) bid(l *line, px int64) int64 {
	if *l.Side == "Buy" {
		return px
	}
	best := int64(0)
	for _, o := range a.orders {
		if o.open && o.side == "Buy" && o.security == *l.Security {
			best = max(best, o.limit)
		}
	}
	limit := int64(0)
	if l.Price != nil {
		limit = l.px()
	} else {
		limit = px - px*testGenesis().Limits.PriceCollarBps/10_000
	}
	if best >= limit {
		return max(px, best)
	}
	return px
}

// dearest is the highest price of an account's other open orders on a side.
func (a *audited) dearest(account uint32, side, security, but string) (px int64) {
	for id, o := range a.orders {
		if id != but && o.open && o.account == account && o.side == side && o.security == security {
			px = max(px, o.limit)
		}
	}
	return px
}

// observed is the observed value of a refusal, from the audit alone; nil when it is a word.
func (a *audited) observed(l *line, contract bool) *big.Rat {
	limits := &testGenesis().Limits
	sign := int64(1)
	if l.Side != nil && *l.Side == "Sell" {
		sign = -1
	}
	qty, but := int64(0), ""
	if l.Quantity != nil {
		qty = *l.Quantity
	}
	total := qty
	if l.OrderID != nil && a.orders[*l.OrderID] != nil { // a replace
		but = *l.OrderID
		qty -= a.orders[but].executed
	}
	security := ""
	if l.Security != nil {
		security = *l.Security
	}
	money := func(v *big.Int) *big.Rat { return new(big.Rat).SetFrac(v, big.NewInt(unit)) }
	switch *l.RiskReason {
	case "ORDER_SIZE":
		return big.NewRat(total, 1)
	case "ORDER_NOTIONAL":
		if contract {
			return big.NewRat(total, 1)
		}
		return money(big.NewInt(a.judgedAt(l, limits) * total))
	case "PRICE_STALE":
		return big.NewRat(l.TimestampMillis-a.at[security], 1)
	case "PRICE_COLLAR":
		off := l.px() - a.last[security]
		off = max(off, -off)
		up := new(big.Int).Mul(big.NewInt(off), big.NewInt(10_000*unit))
		up.Add(up, big.NewInt(a.last[security]-1))
		return money(up.Div(up, big.NewInt(a.last[security])))
	case "CREDIT_LIMIT":
		if contract {
			buys, _ := a.open(l.AccountID, "Buy", "", "")
			sells, _ := a.open(l.AccountID, "Sell", "", "")
			return money(big.NewInt(max(a.cash[l.AccountID]+buys, sells-a.cash[l.AccountID]) + total*unit))
		}
		open, _ := a.open(l.AccountID, *l.Side, security, but)
		return money(big.NewInt(sign*a.cash[l.AccountID] + open + a.judgedAt(l, limits)*qty))
	case "POSITION_LIMIT", "CONCENTRATION_LIMIT":
		_, open := a.open(l.AccountID, *l.Side, security, but)
		sum := sign*a.held[fmt.Sprint(l.AccountID, security)] + open + qty
		if *l.RiskReason == "POSITION_LIMIT" {
			return big.NewRat(sum, 1)
		}
		px := a.judgedAt(l, limits)
		if max(sum, -sum)*px <= limits.MaxConcentrationNotional && (*l.Side == "Sell" || l.Price == nil) {
			px = a.dearest(l.AccountID, *l.Side, security, but) // what executes behind it is too much
		}
		return money(big.NewInt(max(sum, -sum) * px))
	case "CAPACITY":
		if contract {
			return big.NewRat(int64(limits.MaxContracts)+1, 1)
		}
		n := int64(1)
		for _, o := range a.orders {
			if o.open {
				n++
			}
		}
		return big.NewRat(n, 1)
	}
	return nil
}
