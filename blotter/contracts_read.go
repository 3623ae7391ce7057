package blotter

import (
	"slices"
	"sort"
)

// ContractFilter selects contracts for a list.
type ContractFilter struct {
	Accounts []uint32 // nil = all
}

// first is the place of the first contract with an id of at least id, among the first count
// contracts; count when there is none. The rows ascend by id.
func (t *tables) first(id uint64, count int) int {
	return sort.Search(count, func(i int) bool { return t.contracts[i].ID >= id })
}

// Contract returns the contract of an id, which is the InputSeq of its booking.
// False if there is none. Any goroutine.
func (v *Views) Contract(id uint64) (row ContractRow, ok bool) {
	count := int(v.contracts.count.Load())
	t := v.tables.Load() // loaded after the count: these tables hold that many
	if at := t.first(id, count); at < count && t.contracts[at].ID == id {
		return t.contracts[at], true
	}
	return ContractRow{}, false
}

// Contracts appends to dst up to limit contracts with an id above after,
// ascending. next is the after of the following page, 0 at the end.
//
// Cost: a list of chosen accounts reads four bytes of every contract behind after, until the page
// is full. Any goroutine.
func (v *Views) Contracts(f ContractFilter, after uint64, limit int, dst []ContractRow) (
	rows []ContractRow, next uint64,
) {
	count := int(v.contracts.count.Load())
	t := v.tables.Load()
	if limit <= 0 || after == ^uint64(0) {
		return dst, 0
	}
	accounts := slices.Clone(f.Accounts)
	slices.Sort(accounts)
	rows = dst
	for at := t.first(after+1, count); at < count; at++ {
		if f.Accounts != nil {
			if _, found := slices.BinarySearch(accounts, t.contractAccounts[at]); !found {
				continue
			}
		}
		if len(rows)-len(dst) == limit {
			return rows, rows[len(rows)-1].ID
		}
		rows = append(rows, t.contracts[at])
	}
	return rows, 0
}
