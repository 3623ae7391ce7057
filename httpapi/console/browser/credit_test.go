package browser

import (
	"fmt"
	"testing"
)

// TestTheCreditOfAnAccountShows: fills and open orders, on the page of positions now, and on the
// page of time as it was.
func TestTheCreditOfAnAccountShows(t *testing.T) {
	s := start(t)
	s.order(1, "AAPL", "Sell", 100, 200, "rests")
	before := s.order(2, "AAPL", "Buy", 40, 200, "takes")["sequence"].(float64)
	p := open(t)
	p.signIn(s)
	// Account 2 has paid 8,000; account 1 has received that, and offers 60 more.
	credit := `[...document.querySelectorAll('table[aria-label=Credit] tbody tr')].
		map((r) => r.cells[0].innerText + ' ' + r.cells[2].innerText).join('; ')`
	p.goTo(s, "/positions")
	p.eventually("what both use shows", func() bool {
		return eval[string](p, credit) == "1 20,000.00; 2 8,000.00"
	})
	p.says("of 5,000,000,000")
	s.order(2, "AAPL", "Buy", 10, 199.5, "rests-too")
	p.eventually("an open order counts", func() bool {
		return eval[string](p, credit) == "1 20,000.00; 2 9,995.00"
	})
	p.goTo(s, fmt.Sprintf("/time?at=%.0f", before))
	p.eventually("what both used shows", func() bool {
		return eval[string](p, credit) == "1 20,000.00; 2 8,000.00"
	})
	p.goTo(s, fmt.Sprintf("/time?at=%.0f", before-1))
	p.eventually("before the fill one did", func() bool {
		return eval[string](p, credit) == "1 20,000.00"
	})
	p.clean(s)
}
