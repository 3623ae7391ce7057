package whatif

import (
	"cmp"
	"math/big"
	"slices"

	"posttrade/matcher"
)

// Result counts the differences of a range.
type Result struct {
	From, To uint64 // To is less than asked for when the run was stopped
	Commands uint64
	LeftOut  uint64 // commands of accounts that are left out
	Orders   uint64 // decided differently
	Appeared uint64 // trades
	Vanished uint64
	Changed  uint64
	Accounts []Profit // ascending by id, of every account that has traded in either
	Unknown  []uint32 // accounts of the changes that the history has not met by To
}

// Profit is an account's profit and loss over the range: what it received less what it paid, and
// what its positions are worth at the last prices, less what they were worth at the beginning.
// Money is x 1e6.
type Profit struct {
	AccountID     uint32
	Before, After *big.Int
}

// Change is what the account would have made more.
func (p *Profit) Change() *big.Int { return new(big.Int).Sub(p.After, p.Before) }

// books are the accounts of an engine at one moment: cash, and positions at market prices.
type books map[uint32]*big.Int

// booksOf values the accounts of an engine.
func booksOf(e *matcher.Engine) books {
	prices := map[uint32]int64{}
	e.EachSecurity(func(s matcher.SecurityInfo) bool {
		prices[s.ID] = s.LastPx
		return true
	})
	b := books{}
	e.EachAccount(func(a matcher.AccountInfo) bool {
		b[a.ID] = big.NewInt(a.Executed)
		b[a.ID].Neg(b[a.ID])
		return true
	})
	e.EachPosition(func(p matcher.PositionInfo) bool {
		value := new(big.Int).Mul(big.NewInt(p.Qty), big.NewInt(prices[p.SecurityID]))
		b[p.AccountID].Add(b[p.AccountID], value)
		return true
	})
	return b
}

// profits compares what both engines' accounts have made since a moment. The accounts are those of
// the baseline: the supposed engine is given the same controls.
func profits(started books, baseline, supposed *matcher.Engine) (all []Profit) {
	before, after := booksOf(baseline), booksOf(supposed)
	since := func(b books, id uint32) *big.Int {
		v := new(big.Int)
		if b[id] != nil {
			v.Set(b[id])
		}
		if started[id] != nil {
			v.Sub(v, started[id])
		}
		return v
	}
	baseline.EachAccount(func(a matcher.AccountInfo) bool {
		p := Profit{a.ID, since(before, a.ID), since(after, a.ID)}
		if p.Before.Sign() != 0 || p.After.Sign() != 0 {
			all = append(all, p)
		}
		return true
	})
	slices.SortFunc(all, func(a, b Profit) int { return cmp.Compare(a.AccountID, b.AccountID) })
	return all
}

// unknown are the accounts that the changes name and an engine does not have.
func (c *Changes) unknown(e *matcher.Engine) (list []uint32) {
	known := map[uint32]bool{}
	e.EachAccount(func(a matcher.AccountInfo) bool {
		known[a.ID] = true
		return true
	})
	named := slices.Clone(c.Without)
	for _, l := range c.Latency {
		named = append(named, l.AccountID)
	}
	return slices.DeleteFunc(named, func(id uint32) bool { return known[id] })
}
