package ring_test

import (
	"fmt"
	"sync"

	"posttrade/ring"
)

type quote struct {
	px, qty int64
	_       [48]byte
}

// A producer that is refused when the ring is full, and a consumer that parks
// when it is empty.
func Example() {
	region, err := ring.Anonymous(ring.SPSCBytes[quote](1024))
	if err != nil {
		panic(err)
	}
	defer region.Close()
	r, err := ring.NewSPSC[quote](region, 1024)
	if err != nil {
		panic(err)
	}

	const quotes = 500
	var wg sync.WaitGroup
	wg.Go(func() {
		for i := range int64(quotes) {
			slot := r.Claim() // nil would mean full
			slot.px, slot.qty = 100+i, i
			r.Publish()
		}
	})

	idler := ring.NewIdler(ring.Adaptive, r.Waiter())
	var total int64
	for got := 0; got < quotes; {
		lo, hi := r.Ready(64)
		if lo == hi {
			idler.Idle(r)
			continue
		}
		idler.Reset()
		for pos := lo; pos < hi; pos++ {
			total += r.At(pos).qty
		}
		r.Release(hi)
		got += int(hi - lo)
	}
	wg.Wait()
	fmt.Println(total)
	// Output: 124750
}
