package whatif

import (
	"cmp"
	"math/big"
	"slices"

	"posttrade/matcher"
)

// Result counts the differences of a range.
type Result struct {
	// From and To are the sequences that were compared, both inclusive. To is less than asked for when
	// the run was stopped; From - 1 means that nothing was compared.
	From, To uint64
	// Commands of the history, without acts.
	Commands uint64
	// LeftOut are commands of accounts that are left out; they are in Commands too.
	LeftOut uint64
	// Orders are the differences of kind "order". An order is counted once for every command at which
	// it was decided differently.
	Orders uint64
	// Appeared, Vanished and Changed are trades. A match, a market trade or a force fill is one.
	Appeared uint64
	Vanished uint64
	Changed  uint64
	// Accounts whose profit is not 0 in one of the two, ascending by id. An account that did not trade
	// is among them when the prices of what it holds have moved.
	Accounts []Profit
	// Unknown are accounts of the changes that the history has not met by To, in the order of the
	// changes: Without first, then Latency. The caller should treat them as a typing error.
	Unknown []uint32
}

// Profit is an account's profit and loss over the range: what it received less what it paid, and
// what its positions are worth at the last prices, less what they were worth at the beginning.
// Money is x 1e6. It is exact: the sum of products may need more than 64 bits. OTC contracts are
// not valued.
type Profit struct {
	AccountID uint32
	// Before is what the history made, After what the supposed engine made. Both start from the same
	// state.
	Before, After *big.Int
}

// Change is what the account would have made more; negative is less. The caller owns the result.
func (p *Profit) Change() *big.Int { return new(big.Int).Sub(p.After, p.Before) }

// books are the accounts of an engine at one moment: cash, and positions at market prices.
//
// Money is x 1e6; the key is the account's number.
type books map[uint32]*big.Int

// booksOf values the accounts of an engine. A security that never had a price counts 0. The caller
// must be the engine's owner at that moment: Run calls it before its stages start and after they
// have ended. Cost: linear in securities, accounts and positions.
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
//
// started is what the accounts were worth before the range; an account that has appeared since is
// worth 0 there.
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
