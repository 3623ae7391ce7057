package browser

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp/kb"
)

// count makes the page count the writes that it sends; writes is their number.
func (p *page) count() (writes func() int) {
	p.t.Helper()
	eval[bool](p, `(() => {
		const ask = window.fetch;
		window.writes = 0;
		window.fetch = (url, how) => {
			if (how?.method === 'POST') window.writes++;
			return ask(url, how);
		};
		return true;
	})()`)
	return func() int { return eval[int](p, "window.writes") }
}

// lose makes the page lose the answer to its next write, which the server has handled by then: the
// connection ends where status is 0; a 2xx is cut off; another status comes instead.
func (p *page) lose(status int) {
	p.t.Helper()
	eval[bool](p, fmt.Sprintf(`((status) => {
		const ask = window.fetch;
		window.fetch = async (url, how) => {
			if (how?.method !== 'POST') return ask(url, how);
			window.fetch = ask;
			await (await ask(url, how)).text();
			if (!status) throw new TypeError('Failed to fetch');
			return new Response(status < 300 ? '{"order' : '{"code":"OUTCOME_UNKNOWN"}', {status});
		};
		return true;
	})(%d)`, status))
}

// holdEnter presses Enter and holds it while the keyboard repeats it.
func (p *page) holdEnter(repeats int) {
	p.t.Helper()
	events := kb.Encode('\r')
	down := *events[0]
	down.Text, down.UnmodifiedText = "\r", "\r"
	for i := range repeats + 1 {
		again := i > 0
		down.AutoRepeat = &again
		if err := call(p, input.DispatchKeyEvent, down); err != nil {
			p.t.Fatal(err)
		}
	}
	if err := call(p, input.DispatchKeyEvent, *events[len(events)-1]); err != nil {
		p.t.Fatal(err)
	}
}

// hasFocus waits until an element has the focus.
func (p *page) hasFocus(role, name string) {
	p.t.Helper()
	p.eventually(fmt.Sprintf("the %s %q has the focus", role, name), func() bool {
		r, n := p.focused()
		return r == role && strings.EqualFold(n, name)
	})
}

// field is the value of a field of the ticket.
func (p *page) field(label string) string {
	p.t.Helper()
	return eval[string](p, fmt.Sprintf(`[...document.querySelectorAll('.ticket .field')].
		find((f) => f.innerText.startsWith(%q)).querySelector('input').value`, label))
}

// askKillSwitch opens the question of the page Controls about the kill switch, and types a reason.
func (p *page) askKillSwitch(reason string) {
	p.t.Helper()
	p.tabTo("switch", "Kill switch")
	p.press(" ")
	p.tabTo("textbox", "Reason")
	p.press(reason)
}

// ticket opens the page Trade with a ticket that can be placed.
func (p *page) ticket(s *server) {
	p.t.Helper()
	p.goTo(s, "/trade?account=2&security=AAPL")
	p.typeIn("Quantity", "10")
	p.typeIn("Price", "187.00")
}

// TestOneEnterIsOneOrder: an Enter that is held, and further ones after the answer, place nothing.
func TestOneEnterIsOneOrder(t *testing.T) {
	s := start(t)
	s.price("AAPL", 187.20)
	p := open(t)
	p.signIn(s)
	p.ticket(s)
	writes := p.count()
	p.press(kb.Enter)
	p.says("ord-1 new")
	p.holdEnter(3)
	p.press(kb.Enter + kb.Enter)
	p.hasFocus("textbox", "Quantity")
	if n, quantity := writes(), p.field("Quantity"); n != 1 || quantity != "" {
		t.Errorf("%d orders were sent, want 1; the quantity is %q", n, quantity)
	}
	p.press("20") // the next order
	p.holdEnter(0)
	p.says("ord-2 new")
	p.press("30")
	p.holdEnter(3)
	p.says("ord-3 new")
	if n := writes(); n != 3 {
		t.Errorf("%d orders were sent, want 3", n)
	}

	// A question that a held Enter opens is not answered by it.
	p.goTo(s, "/reconciliation")
	p.tabTo("button", "Sweep")
	writes = p.count()
	p.holdEnter(3)
	p.find("dialog", "Sweep the whole history?")
	if n := writes(); n != 0 {
		t.Errorf("%d sweeps were asked for, want none", n)
	}
	p.clean(s)
}

// TestALostAnswerIsNoRefusal: nothing says whether the write was carried out, and neither does the
// page. An order that is sent again as it is is placed once.
func TestALostAnswerIsNoRefusal(t *testing.T) {
	s := start(t)
	s.price("AAPL", 187.20)
	p := open(t)
	p.signIn(s)
	for i, status := range []int{0, 201, 500, 503, 504} {
		p.ticket(s)
		id := p.field("Client order id")
		p.lose(status)
		p.press(kb.Enter)
		p.says("unknown whether it was placed", "send it again as it is")
		if text := p.text(); strings.Contains(text, "Not placed") {
			t.Errorf("%d: the page says %s", status, text)
		}
		if again := p.field("Client order id"); again != id || p.field("Quantity") != "10" {
			t.Errorf("%d: the ticket has changed: %s, want %s", status, again, id)
		}
		p.tabTo("button", "Place order")
		p.press(kb.Enter)
		order := fmt.Sprintf("ord-%d", i+1)
		p.says(order + " new")
		s.has(order, map[string]any{"clientOrderId": id})
	}
	p.eventually("each order is there once", func() bool {
		return p.column("Working orders", 0) == "ord-5 ord-4 ord-3 ord-2 ord-1"
	})

	p.ticket(s)
	p.typeIn("Client order id", " ")
	p.press(kb.Backspace) // none: it would be placed twice
	p.lose(0)
	p.press(kb.Enter)
	const done = "unknown whether it was done"
	p.says(done)

	p.goTo(s, "/trade?account=2&security=AAPL")
	p.tabTo("button", "Replace")
	p.press(kb.Enter)
	p.hasFocus("textbox", "Quantity")
	p.lose(504)
	p.press("20" + kb.Enter)
	p.says(done)
	p.goTo(s, "/trade?account=2&security=AAPL")
	p.tabTo("button", "Cancel")
	p.lose(504)
	p.press(kb.Enter)
	p.says(done)
	p.goTo(s, "/controls")
	p.askKillSwitch("drill")
	p.lose(0)
	p.press(kb.Enter)
	p.says(done)
	p.clean(s)
}

// TestADialogGivesTheFocusBack: to what it was opened from, however it is closed.
func TestADialogGivesTheFocusBack(t *testing.T) {
	s := start(t)
	s.fill()
	p := open(t)
	p.signIn(s)
	closed := func() {
		t.Helper()
		p.eventually("the dialog closes", func() bool { return len(p.nodes("dialog", "")) == 0 })
	}
	p.goTo(s, "/controls")
	p.tabTo("switch", "Kill switch")
	p.press(" ")
	p.find("dialog", "Refuse every order?")
	p.press(kb.Escape)
	closed()
	p.hasFocus("switch", "Kill switch")
	p.press(" ")
	p.tabTo("button", "Close")
	p.press(kb.Enter)
	closed()
	p.hasFocus("switch", "Kill switch")
	p.press(" ")
	p.tabTo("textbox", "Reason")
	p.press("drill")
	p.press(kb.Enter) // Confirm
	closed()
	p.hasFocus("switch", "Kill switch")

	p.goTo(s, "/contracts")
	p.tabTo("row", "")
	p.press(kb.Enter)
	p.find("dialog", "")
	p.tabTo("button", "Why") // a dialog on a dialog
	p.press(kb.Enter)
	p.eventually("both dialogs are open", func() bool {
		return eval[int](p, "document.querySelectorAll('dialog').length") == 2
	})
	p.press(kb.Escape)
	p.hasFocus("button", "Why")
	p.press(kb.Escape)
	closed()
	p.eventually("the row has the focus", func() bool {
		role, _ := p.focused()
		return role == "row"
	})
	p.clean(s)
}

// TestAReasonThatIsRefused: the page names its field, not the header.
func TestAReasonThatIsRefused(t *testing.T) {
	s := start(t)
	p := open(t)
	p.signIn(s)
	p.follow("Controls")
	p.askKillSwitch("")
	// No key types a mark of direction, but it may be pasted.
	if err := call(p, input.InsertText, input.InsertTextParams{Text: "drill\u200f"}); err != nil {
		t.Fatal(err)
	}
	p.press(kb.Enter)
	p.find("alert", "")
	text := eval[string](p, "document.querySelector('dialog [role=alert]').innerText")
	if !strings.HasPrefix(text, "Reason is not ") {
		t.Errorf("the page says %q", text)
	}
	p.clean(s)
}

// TestASessionThatEndsSaysSo: a dialog is open when the token is revoked.
func TestASessionThatEndsSaysSo(t *testing.T) {
	s := start(t)
	p := open(t)
	p.signIn(s)
	p.follow("Controls")
	p.tabTo("switch", "Kill switch")
	p.press(" ")
	p.find("dialog", "Refuse every order?")
	revoked := s.call("POST", "trade-processor", "/auth/revoke",
		map[string]any{"subject": "console"})["issuedUpTo"].(string)
	p.find("button", "Sign in")
	p.says("the session has ended")
	p.accessible("session-ended")
	p.eventually("a token of now is a later one", func() bool {
		return time.Now().UTC().Format(time.RFC3339) > revoked
	})
	p.tabTo("button", "Sign in")
	p.press(kb.Enter)
	p.find("heading", "Controls")
	p.tabTo("button", "Sign out")
	p.press(kb.Enter)
	p.find("button", "Sign in")
	if text := p.text(); strings.Contains(text, "has ended") {
		t.Errorf("after Sign out the page says %s", text)
	}
	p.clean(s)
}

// TestLastTradesSayWhatWasLookedAt: a security whose trades are behind many of another one.
func TestLastTradesSayWhatWasLookedAt(t *testing.T) {
	s := start(t, "--recon.blotter.capacity=100000", "--sidecars.enabled=false",
		"--risk.price.max-age-ms=3600000", "--risk.max-order-notional=100000000000")
	s.price("MSFT", 412.5)
	s.order(1, "MSFT", "Sell", 10, 412.5, "s")
	s.order(2, "MSFT", "Buy", 10, 412.5, "b")
	p := open(t)
	p.signIn(s)
	last := func(want string) {
		t.Helper()
		p.eventually("the last trades are "+want, func() bool {
			return p.column("Last trades", 0) == want
		})
	}
	s.manyFills(2000)
	p.goTo(s, "/trade?account=1&security=MSFT")
	last("trd-1")
	p.goTo(s, "/trade?account=1&security=IBM")
	p.says("no trade yet")
	s.manyFills(8000)
	p.goTo(s, "/trade?account=1&security=MSFT")
	p.says("no trade among the newest 10,000 fills")
	s.order(1, "MSFT", "Sell", 10, 412.5, "s-2")
	s.order(2, "MSFT", "Buy", 10, 412.5, "b-2")
	last("trd-10003")
	p.says("among the newest 10,000 fills")
	p.clean(s)
}

// TestANarrowWindowNeedsNoSidewaysScroll: every page, at the width of a telephone.
func TestANarrowWindowNeedsNoSidewaysScroll(t *testing.T) {
	s := start(t)
	head := s.fill()
	p := open(t)
	p.signIn(s)
	p.size(320, 800)
	for _, page := range pages {
		query := queries[page.path]
		if strings.Contains(query, "%d") {
			query = fmt.Sprintf(query, head)
		}
		p.goTo(s, "/"+page.path+query)
		p.find("heading", page.name)
		p.says(page.full)
		p.picture(page.path + "-full-light-320")
		p.accessible(page.path + "-320")
		if wide := eval[int](p, "document.documentElement.scrollWidth"); wide > 320 {
			t.Errorf("%s is %d pixels wide", page.name, wide)
		}
		if page.path == "trade" {
			if wide := eval[float64](p, `document.querySelector('table[aria-label=Book]').
				closest('.card').getBoundingClientRect().width`); wide < 200 {
				t.Errorf("the book is %v pixels wide", wide)
			}
		}
	}
	p.clean(s)
}
