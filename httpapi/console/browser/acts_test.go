package browser

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp/kb"
)

// hasFocus waits until an element has the focus.
func (p *page) hasFocus(role, name string) {
	p.t.Helper()
	p.eventually(fmt.Sprintf("the %s %q has the focus", role, name), func() bool {
		r, n := p.focused()
		return r == role && strings.EqualFold(n, name)
	})
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
	p.tabTo("switch", "Kill switch")
	p.press(" ")
	p.tabTo("textbox", "Reason")
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
