package browser

import (
	"testing"

	"github.com/chromedp/chromedp/kb"
)

// TestTheCalendarCountsEveryTrade: more trades of a date than any list shows, of which one is
// settled by hand. By keyboard alone.
func TestTheCalendarCountsEveryTrade(t *testing.T) {
	s := start(t, "--risk.price.max-age-ms=3600000")
	s.manyFills(4000)
	p := open(t)
	p.signIn(s)
	p.follow("Settlement")
	counts := `[...document.querySelectorAll('table[aria-label=Calendar] tbody tr')].
		map((r) => [...r.cells].slice(1).map((c) => c.innerText).join(' ')).
		filter((t) => t !== '0 0 0 0').join()`
	p.eventually("every trade is counted", func() bool {
		return eval[string](p, counts) == "4,000 0 0 0"
	})
	p.says("4,000 trades on")
	p.tabTo("button", "Force")
	p.press(kb.Enter)
	p.tabTo("textbox", "Reason")
	p.press("delivered early")
	p.press(kb.Enter)
	p.eventually("the forced trade is counted as such", func() bool {
		return eval[string](p, counts) == "3,999 0 1 0"
	})
	p.clean(s)
}
