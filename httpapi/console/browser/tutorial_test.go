package browser

import (
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// why types the reason of an act into its question and confirms it.
func (p *page) why(reason string) {
	p.t.Helper()
	p.key("textbox", "Reason", reason)
	p.press(kb.Enter)
	p.eventually("the question is answered", func() bool { return len(p.nodes("dialog", "")) == 0 })
}

// key moves the focus to a control and presses a key there.
func (p *page) key(role, name, key string) {
	p.t.Helper()
	p.tabTo(role, name)
	p.press(key)
}

// TestTheTutorialByKeyboardAlone is the tutorial in the console, in one run, without a mouse. What
// the console does not do comes from outside, as there: prices, the edited row, the swap.
func TestTheTutorialByKeyboardAlone(t *testing.T) {
	s := start(t)
	p := open(t)
	p.signIn(s)

	// A price, and two orders; a third one is refused.
	s.price("AAPL", 187.20)
	p.follow("Trade")
	place := func(account, clientID, side, quantity, price string, says ...string) {
		t.Helper()
		p.typeIn("Account", account)
		p.typeIn("Security", "AAPL")
		p.press(side, chromedp.KeyModifiers(chromedp.ModifierAlt))
		p.typeIn("Quantity", quantity)
		p.typeIn("Price", price)
		p.typeIn("Client order id", clientID)
		p.press(kb.Enter)
		p.says(says...)
	}
	place("1", "demo-1", "s", "100", "187.25", "ord-1 new", "durability fsync", "demo-1", "own 100")
	place("2", "demo-2", "b", "40", "187.30", "ord-2 filled: trd-1 40 at 187.25", "demo-2")
	p.eventually("the book has what is left", func() bool {
		return strings.HasPrefix(p.column("Book", 2), "60")
	})
	place("2", "demo-3", "b", "2000000", "187.30", "rejected", "ORDER_SIZE")
	p.follow("Positions")
	p.typeIn("Account", "2")
	p.eventually("the buyer has them", func() bool {
		return p.column("Positions", 3) == "40" && p.column("Positions", 4) == "187.25"
	})

	// The blotter, settlement, and what the trade cost.
	p.follow("Blotter")
	p.eventually("each match is two fills", func() bool { return p.rows() == trades(2) })
	p.key("region", "Blotter", kb.End)
	p.press(kb.Enter)
	p.find("dialog", "trd-1")
	p.eventually("the fill is to settle", func() bool {
		return strings.Contains(p.facts(), "Status processing") &&
			strings.Contains(p.facts(), "Client order id demo-2")
	})
	p.key("link", "Settle", kb.Enter)
	p.find("heading", "Settlement")
	p.find("dialog", "trd-1")
	p.press(kb.Escape)
	p.key("button", "Force", kb.Enter)
	p.find("dialog", "Force the settlement of trd-1?")
	p.why("delivered early")
	p.eventually("it is settled", func() bool { return p.column("Trades", 0) == "trd-2" })
	p.follow("TCA")
	p.tabTo("row", "")
	p.press(kb.ArrowDown) // the second row: the newest is first
	p.press(kb.Enter)
	p.says("Execution price", "187.25", "2.67")

	// A break is found and repaired.
	s.edit("UPDATE trades SET quantity = 41 WHERE id = 'trd-2'")
	p.follow("Reconciliation")
	p.key("button", "Sweep", kb.Enter)
	p.why("looking for breaks")
	p.eventually("the break shows", func() bool { return p.column("Breaks", 0) == "trd-2" })
	p.key("row", "", kb.Enter)
	p.find("dialog", "trd-2: field mismatch")
	p.key("button", "Repair", kb.Enter)
	p.why("edited by hand")
	p.says("trd-2 repaired", "no break")

	// A security is halted; everything is stopped, and goes on.
	p.follow("Controls")
	p.typeIn("Security", "MSFT")
	p.key("switch", "Halt MSFT", " ")
	p.why("news pending")
	p.key("switch", "Kill switch", " ")
	p.why("stop everything")
	p.says("every new order is refused")
	p.follow("Trade")
	place("1", "demo-4", "s", "1", "187.25", "KILL_SWITCH")
	p.follow("Controls")
	p.key("switch", "Kill switch", " ")
	p.why("go on")
	p.says("orders are admitted")
	p.eventually("each act is on record, the newest first", func() bool {
		text := p.column("Audit", 8)
		at := -1
		for _, reason := range []string{"go on", "stop everything", "news pending", "edited by hand",
			"delivered early"} {
			next := strings.Index(text, reason)
			if next <= at {
				return false
			}
			at = next
		}
		return true
	})

	// A swap, and the end of the day.
	s.call("POST", "order-matcher", "/swaps", map[string]any{"clientOrderId": "irs-1", "accountId": 1,
		"payReceive": "Receive", "notional": 10000000, "fixedRate": 0.042,
		"effectiveDate": "2026-11-23", "maturityDate": "2031-11-23",
		"conventions": "USD-SOFR-1Y-ACT360"})
	p.follow("Contracts")
	p.eventually("the swap shows", func() bool { return p.column("Contracts", 4) == "10,000,000" })
	p.key("button", "Make a cut…", kb.Enter)
	p.why("end of the day")
	p.says("the cut is taken at sequence", "-contracts.csv")

	// The moment before the fill.
	p.follow("Time")
	p.typeIn("Security", "AAPL")
	p.tabTo("slider", "Sequence")
	fill := int(s.call("GET", "order-matcher", "/orders/ord-2", nil)["sequence"].(float64))
	for head := int(eval[float64](p, "+document.activeElement.max")); head >= fill; head-- {
		p.press(kb.ArrowLeft)
	}
	p.eventually("the book is what it was", func() bool {
		return p.column("Book", 2) == "100" && p.column("Working orders", 0) == "ord-1"
	})
	p.clean(s)
}
