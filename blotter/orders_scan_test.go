package blotter

import (
	"math/rand/v2"
	"slices"
	"testing"

	"posttrade/ring"
)

// scanned are the orders of scans from 0 to the end, and how many scans that took.
func scanned(v *Views, f OrderFilter, n int) (rows []OrderRow, scans int) {
	for slot := uint32(0); scans == 0 || slot != 0; scans++ {
		rows, slot = v.ScanOrders(f, slot, n, rows)
	}
	return rows, scans
}

// Scans find what lists find, in pieces of any length, and each slot belongs to one piece.
func TestScansFindWhatListsFind(t *testing.T) {
	g := smallGenesis()
	s, v := newSource(t, g, 71), newTestViews(t, g)
	if rows, scans := scanned(v, OrderFilter{}, 10); len(rows) != 0 || scans != 1 {
		t.Errorf("%d orders in %d scans of empty views", len(rows), scans)
	}
	for step := range 2_000 {
		observe(v, s.step())
		if step%50 != 0 {
			continue
		}
		f := OrderFilter{}
		switch step / 50 % 3 {
		case 0:
			f.Statuses = OpenOrders
		case 1:
			f.Accounts, f.SecurityID = []uint32{900_001, 7}, 1
		}
		want, _ := v.Orders(f, 0, 1000, nil)
		used := int(v.orders.high.Load())
		for _, n := range []int{-1, 1, 7, used, used + 1, 1000} {
			got, scans := scanned(v, f, n)
			if pieces := (used + max(n, 1) - 1) / max(n, 1); scans != max(pieces, 1) {
				t.Fatalf("%d scans of %d slots, %d at a time", scans, used, n)
			}
			slices.SortFunc(got, func(a, b OrderRow) int { return int(a.Ref) - int(b.Ref) })
			if !slices.EqualFunc(got, want, sameOrder) {
				t.Fatalf("step %d, %d at a time: %d orders, want %d", step, n, len(got), len(want))
			}
		}
	}
}

// sameOrder compares the content of two rows, not their places.
func sameOrder(a, b OrderRow) bool {
	a.next, b.next = 0, 0
	return a == b
}

// Every pass finds orders that stay exactly once, while other orders come and go around them.
func TestScansFindOrdersThatStay(t *testing.T) {
	var a ring.Arena
	defer func() { a.Close() }()
	v := &Views{orders: newOrders(&a, 40, 0)}
	v.publish()
	o := &v.orders
	rng := rand.New(rand.NewPCG(72, 5))
	ref := uint32(0)
	insert := func() uint32 {
		ref++
		row := OrderRow{Ref: ref, InputSeq: uint64(ref), AccountID: 1}
		return o.insert(&row, clientID(uint64(ref)))
	}
	var stay, come []uint32 // references; slots
	for range 40 {
		if at := insert(); ref%3 == 0 {
			stay = append(stay, ref)
		} else {
			come = append(come, at)
		}
	}
	together(t, 3, func(int) {
		i := rng.IntN(len(come))
		o.drop(come[i])
		come[i] = insert()
	}, func(rng *rand.Rand) bool {
		rows, _ := scanned(v, OrderFilter{}, 1+rng.IntN(50))
		var seen []uint32
		for i := range rows {
			if row := &rows[i]; slices.Contains(stay, row.Ref) {
				seen = append(seen, row.Ref)
			} else if string(row.ClientID()) != string(clientID(row.InputSeq)) ||
				row.InputSeq != uint64(row.Ref) {
				t.Errorf("half an order: %+v", row)
				return false
			}
		}
		if slices.Sort(seen); !slices.Equal(seen, stay) {
			t.Errorf("found %v of %v", seen, stay)
			return false
		}
		return true
	})
}
