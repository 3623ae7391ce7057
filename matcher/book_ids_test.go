package matcher

import (
	"math/rand/v2"
	"testing"

	"posttrade/ring/must"
)

// A book answers the same whatever order ids come in, while its orders lie at home, as guests, or
// partly here and there.
func TestBookTakesIdsInAnyOrder(t *testing.T) {
	const room, seed = 200, 11
	w := newTwins(t, room)
	r := rand.New(rand.NewPCG(seed, 1))
	var used []uint32
	next, mixed, guests, homes := uint32(1), 0, 0, 0
	for step := range 12_000 {
		c := BookCommand{Kind: BookNew, Order: BookOrder{Qty: 1 + r.Int32N(5),
			Side: Side(r.IntN(2)), Px: 100 + r.Int64N(20)}}
		switch ascending := step > 3_000 && step/300%2 == 0; {
		case ascending:
			next += 1 + r.Uint32N(3)
			c.Order.ID = next
		default:
			c.Order.ID = r.Uint32N(5_000)
		}
		switch r.IntN(32) {
		case 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11:
			if len(used) > 0 { // perhaps gone
				c.Kind, c.Order.ID = BookCancel, used[r.IntN(len(used))]
			}
		case 12, 13, 14, 15:
			if len(used) > 0 {
				c.Kind, c.Order.ID = BookModify, used[r.IntN(len(used))]
			}
		case 16:
			if len(used) > 0 { // perhaps it still rests
				c.Order.ID = used[r.IntN(len(used))]
			}
		}
		if used = append(used, c.Order.ID); len(used) > 2*room {
			used = used[1:]
		}
		if _, err := w.apply(c); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		pool := w.book.ladder.pool
		switch {
		case pool.away == 0 && pool.count > 0:
			homes++
		case pool.away == pool.count && pool.count > 0:
			guests++
		case pool.count > 0:
			mixed++
		}
	}
	if mixed < 1_000 || guests < 1_000 {
		t.Errorf("%d steps with orders at home only, %d with guests only, %d with both", homes, guests,
			mixed)
	}
}

// A caller that starts anew with its ids keeps their homes: its first order is no guest.
func TestIdsThatStartAnewStayAtHome(t *testing.T) {
	book := must.Get(NewBook(BookOptions{MaxOrders: 1 << 10}))(t)
	defer book.Close()
	for round := range 3 {
		for id := uint32(1); id <= 100; id++ {
			if out := book.Limit(id, 0, Buy, 100, 1); !out.Rests {
				t.Fatalf("round %d: order %d: %+v", round, id, out)
			}
		}
		if away := book.ladder.pool.away; away != 0 {
			t.Errorf("round %d: %d guests", round, away)
		}
		for id := uint32(1); id <= 100; id++ {
			if out := book.Cancel(id); out.Reject != BookOK {
				t.Fatalf("round %d: cancel of %d: %+v", round, id, out)
			}
		}
	}
}

// Orders of ids in no order lie side by side, in as many places as ever rested at one time, and so
// do the chains that they are found by.
func TestShuffledIdsStayTogether(t *testing.T) {
	const room, resting = 1 << 16, 100
	book := must.Get(NewBook(BookOptions{MaxOrders: room}))(t)
	defer book.Close()
	r := rand.New(rand.NewPCG(7, 7))
	ids := make([]uint32, resting)
	for n := range 50 * resting {
		if id := ids[n%resting]; id != 0 {
			if out := book.Cancel(id); out.Reject != BookOK {
				t.Fatalf("step %d: cancel of %d: %v", n, id, out.Reject)
			}
		}
		id := r.Uint32()
		if out := book.Limit(id, 0, Buy, 100, 1); out.Reject != BookOK {
			t.Fatalf("step %d: order %d: %v", n, id, out.Reject)
		}
		ids[n%resting] = id
	}
	pool := book.ladder.pool
	if rooms := int(pool.high) - int(pool.homes); rooms != resting || pool.chains != resting {
		t.Errorf("%d places and %d chains for %d orders", rooms, pool.chains, resting)
	}
	longest := 0
	for _, i := range pool.guests[:pool.chains] {
		length := 0
		for ; i != 0; i = pool.orders[i].chain {
			length++
		}
		longest = max(longest, length)
	}
	if longest > 8 {
		t.Errorf("a chain of %d orders", longest)
	}
	if err := book.check(); err != nil {
		t.Error(err)
	}
}
