package blotter

import "slices"

// ScanOrders appends to dst the orders in the n slots from fromSlot on, in no particular order. The
// first scan begins at 0. nextSlot is where the following scan begins; 0 after the last slot in
// use.
//
// An order never changes its slot. So scans from 0 to the end find every order that matches the
// filter all the time, exactly once. An order that changes meanwhile may be missed, and so may an
// order that is created during the scans, because it may take a slot already scanned.
//
// Cost: the scans together look at each slot once, whatever the references. Orders looks at each
// slot once per page when references are sparse. Any goroutine. A row that is copied is checked
// again, because it may have changed since the filter looked.
func (v *Views) ScanOrders(f OrderFilter, fromSlot uint32, n int, dst []OrderRow) (
	rows []OrderRow, nextSlot uint32,
) {
	accounts := slices.Clone(f.Accounts)
	slices.Sort(accounts)
	at, last := int64(max(fromSlot, 1)), v.orders.high.Load()
	o := &v.tables.Load().orders // after last: it has every slot up to there
	end := min(at+int64(max(n, 1)), last+1)
	var row OrderRow
	for rows = dst; at < end; at++ {
		o.copyRow(uint32(at), &row, filterWords)
		if !f.keeps(&row, accounts) {
			continue
		}
		o.copyRow(uint32(at), &row, rowWords)
		if f.keeps(&row, accounts) {
			clear(row.clientID[row.idLen:]) // another order's
			rows = append(rows, row)
		}
	}
	if at > last {
		return rows, 0
	}
	return rows, uint32(at)
}
