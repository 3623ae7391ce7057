package browser

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// TestAnOrderIsPlacedAndFillsByKeyboardAlone: sign in, place an order that fills, see the answer,
// replace and cancel another one. Nothing but keys.
func TestAnOrderIsPlacedAndFillsByKeyboardAlone(t *testing.T) {
	s := start(t)
	s.price("AAPL", 187.20)
	s.order(1, "AAPL", "Sell", 100, 187.25, "rest-1")
	s.order(2, "AAPL", "Buy", 5, 186.50, "another")
	p := open(t)
	p.signIn(s)
	p.follow("Trade")

	p.typeIn("Account", "2")
	p.typeIn("Security", "aapl")
	p.says("187.25")
	p.typeIn("Quantity", "40")
	p.typeIn("Price", "187.30")
	p.press(kb.Enter)
	p.says("ord-3", "trd-1 40 at 187.25", "sequence", "durability fsync")
	s.has("ord-3", map[string]any{"accountId": 2.0, "side": "Buy", "quantity": 40.0,
		"limitPrice": 187.3, "status": "FILLED"})

	p.typeIn("Quantity", "10")
	p.typeIn("Price", "187.00")
	p.tabTo("button", "Place order")
	p.press(kb.Enter)
	p.says("ord-4")
	s.has("ord-4", map[string]any{"quantity": 10.0, "limitPrice": 187.0, "status": "NEW"})
	p.eventually("both working orders show, the newest first", func() bool {
		return p.column("Working orders", 0) == "ord-4 ord-2"
	})
	p.tabTo("button", "Replace")
	p.press(kb.Enter)
	p.eventually("the row's quantity has the focus", func() bool {
		role, name := p.focused()
		return role == "textbox" && name == "Quantity"
	})
	p.press("20")
	p.tabTo("button", "Apply")
	p.press(kb.Enter)
	s.has("ord-4", map[string]any{"quantity": 20.0, "limitPrice": 187.0, "status": "NEW"})
	p.eventually("the focus is back on the order's button", func() bool {
		role, name := p.focused()
		return role == "button" && name == "Replace"
	})
	p.press(kb.Tab, chromedp.KeyModifiers(chromedp.ModifierShift)) // its Cancel
	p.press(kb.Enter)
	s.has("ord-4", map[string]any{"status": "CANCELED"})
	p.eventually("the other order is left", func() bool {
		return p.column("Working orders", 0) == "ord-2"
	})
	s.has("ord-2", map[string]any{"quantity": 5.0, "status": "NEW"})
	p.clean(s)
}

// TestAListThatIsCutClosesNoOrder: a page lists the first 2,000 open orders and says so; what the
// stream has shown beyond them stays.
func TestAListThatIsCutClosesNoOrder(t *testing.T) {
	const listed = 2000
	s := start(t)
	for range listed / 1000 {
		var batch []any
		for range 1000 {
			batch = append(batch, map[string]any{"accountId": 1, "security": "AAPL", "side": "Buy",
				"quantity": 1, "limitPrice": 1})
		}
		s.call("POST", "order-matcher", "/orders/batch", batch)
	}
	p := open(t)
	p.signIn(s)
	p.goTo(s, "/trade?account=1&security=AAPL")
	newest := func(order string) {
		t.Helper()
		p.eventually(order+" is the newest working order", func() bool {
			return strings.HasPrefix(p.column("Working orders", 0), order+" ")
		})
	}
	newest("ord-2000")
	s.order(1, "AAPL", "Buy", 1, 1, "one-more")
	newest("ord-2001")
	p.typeIn("Security", "MSFT") // the page asks again
	p.says("the first 2,000", "Book of MSFT")
	newest("ord-2001")
	p.clean(s)
}

// TestASecurityThatTheEngineDoesNotHave: the page says so, and shows the account's orders. The
// stream is live for the next security that is chosen, and for the same one when the engine has
// learned it.
func TestASecurityThatTheEngineDoesNotHave(t *testing.T) {
	s := start(t)
	s.price("AAPL", 187.20)
	s.order(1, "AAPL", "Buy", 5, 186.50, "rests")
	p := open(t)
	p.goTo(s, "/")
	p.find("button", "Sign in")
	release := p.hold("/reference-data/stocks", request) // the page cannot know what exists
	p.tabTo("button", "Sign in")
	p.press(kb.Enter)
	p.find("heading", "Overview")
	p.follow("Trade")
	unknown := func() {
		t.Helper()
		p.set("?account=1&security=FOO")
		p.says("Book of FOO\nasked for every second\n", "No such security.")
		p.eventually("the account's order shows", func() bool {
			return p.column("Working orders", 0) == "ord-1"
		})
	}
	unknown()
	p.set("?account=1&security=AAPL")
	p.says("Book of AAPL\nlive\n", "186.50")
	unknown()
	s.call("POST", "reference-data", "/stocks", map[string]any{"ticker": "FOO", "companyName": "Foo"})
	p.says("Book of FOO\nlive\n", "The book is empty.")
	release()
	p.clean(s)
}

// has waits until an order has these values.
func (s *server) has(order string, want map[string]any) {
	s.t.Helper()
	var got map[string]any
	if !comes(func() bool {
		got = s.call("GET", "order-matcher", "/orders/"+order, nil)
		for name, value := range want {
			if got[name] != value {
				return false
			}
		}
		return true
	}) {
		s.t.Fatalf("%s is %v, want %v", order, got, want)
	}
}

// column is the text of a column of a table, from the top.
func (p *page) column(table string, i int) string {
	p.t.Helper()
	return read[string](p, fmt.Sprintf(`[...document.querySelectorAll('table[aria-label="%s"] '+
		'tbody tr')].map((r) => r.cells[%d]?.innerText.trim()).join(' ')`, table, i))
}

// facts are the named values of the page or of its dialog, as "name value" lines.
func (p *page) facts() string {
	p.t.Helper()
	return eval[string](p, `[...(document.querySelector('dialog') || document).
		querySelectorAll('.facts > div')].map((d) => d.innerText.replace(/\s+/g, ' ').trim()).join('\n')`)
}

// TestARefusalSaysWhy: the answer names the reason in words, and Why is one key away. By keyboard
// alone.
func TestARefusalSaysWhy(t *testing.T) {
	s := start(t)
	s.price("AAPL", 187.20)
	s.try("POST", "order-matcher", "/orders", map[string]any{"accountId": 1, "security": "AAPL",
		"side": "Sell", "quantity": 3000000, "limitPrice": 187.3}) // refused too: it is ord-1
	p := open(t)
	p.signIn(s)
	p.follow("Trade")
	p.typeIn("Account", "2")
	p.typeIn("Security", "AAPL")
	p.typeIn("Quantity", "2000000")
	p.typeIn("Price", "187.30")
	p.press(kb.Enter)
	p.says("ORDER_SIZE", "above the limit of an order", "sequence")
	p.tabTo("button", "Why")
	p.press(kb.Enter)
	p.find("dialog", "Why: ord-2")
	p.says("risk.max-order-quantity", "2000000", "1000000 is the most")
	if facts := p.facts(); !strings.Contains(facts, "Observed 2000000") ||
		!strings.Contains(facts, "Limit 1000000") || !strings.Contains(facts, "Reason ORDER_SIZE") {
		t.Errorf("the dialog says %q", facts)
	}
	p.picture("trade-why-light-1280")
	p.accessible("trade-why")
	p.clean(s)
}

// TestTextOfOthersStaysText: names, tickers and ids that are markup are shown as they are.
func TestTextOfOthersStaysText(t *testing.T) {
	const hostile = `<img src=x onerror=alert(1)>`
	s := start(t)
	s.call("POST", "account-service", "/account/", map[string]any{"id": 77, "displayName": hostile})
	s.call("POST", "reference-data", "/stocks", map[string]any{"ticker": "-X.Y",
		"companyName": hostile + `"'><script>alert(2)</script>`})
	s.price("AAPL", 187.20)
	eventually(t, "the account is known", func() bool {
		controls := s.call("GET", "order-matcher", "/risk/control/snapshot", nil)
		for _, a := range controls["accounts"].([]any) {
			if a.(map[string]any)["id"] == 77.0 {
				return true
			}
		}
		return false
	})
	s.order(77, "AAPL", "Sell", 5, 187.25, hostile)
	s.order(2, "AAPL", "Buy", 2, 187.25, "plain")
	p := open(t)
	p.signIn(s)
	for _, at := range []string{"/trade?account=77&security=AAPL", "/blotter?open=trd-2", "/positions",
		"/controls?security=-X.Y&account=77", "/settlement", "/tca", "/reconciliation",
		"/trade?account=%3Cimg%20src%3Dx%20onerror%3Dalert(1)%3E",
		"/blotter?open=%3Cimg%20src%3Dx%3E"} {
		p.goTo(s, at)
		p.eventually("the page "+at+" is there", func() bool {
			return eval[int](p, `document.querySelectorAll(
				'main table, main .empty, main regular-table').length`) > 0
		})
		if n := eval[int](p, `document.querySelectorAll(
			'main img, main script, dialog img, dialog script').length`); n != 0 {
			t.Errorf("%s: %d elements were made of text", at, n)
		}
	}
	p.goTo(s, "/controls?security=-X.Y&account=77")
	p.says(hostile)
	p.goTo(s, "/trade?account=77&security=AAPL")
	p.says(hostile)
	p.clean(s)
}
