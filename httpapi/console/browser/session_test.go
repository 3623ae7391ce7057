package browser

import (
	"strings"
	"testing"

	"github.com/chromedp/chromedp/kb"
)

// TestAPastedTokenMayDoWhatItMay: in production there is no one click. The token of a user is
// pasted; the pages show that user's accounts, and offer nothing of an administrator's.
func TestAPastedTokenMayDoWhatItMay(t *testing.T) {
	s := start(t, "--profile=production", "--risk.entitlement.enforced=true",
		"--reference.write-auth.enforced=true")
	s.fill()
	token := s.mint("--subject=ann", "--accounts=3", "--ttl=1h")
	p := open(t)
	p.goTo(s, "/blotter")
	p.find("button", "Sign in")
	p.typeIn("Token", "nonsense")
	p.press(kb.Enter)
	p.says("not valid here")
	p.typeIn("Token", token)
	p.press(kb.Enter)
	p.find("heading", "Blotter")
	p.says("ann", "trd-1", "trd-3")
	if text := p.text(); strings.Contains(text, "trd-2") {
		t.Error("a trade of another account shows")
	}
	for path, want := range map[string]string{"/controls": "need an admin token",
		"/time": "needs an admin token", "/latency": "need an admin token", "/overview": "admin token",
		"/cluster": "need an admin token", "/reconciliation": "need an admin token"} {
		p.goTo(s, path)
		p.says(want)
		if n := eval[int](p, "document.querySelectorAll('main [role=switch], main "+
			"input[type=range]').length"); n > 0 {
			t.Errorf("%s offers %d things that the token may not do", path, n)
		}
	}
	p.goTo(s, "/trade?security=AAPL")
	p.says("working orders of account 3", "no trade since the security was chosen")
	p.typeIn("Quantity", "5")
	p.typeIn("Price", "187.20")
	p.press(kb.Enter)
	p.says("working orders of account 3", "ord-21 new")
	s.order(1, "AAPL", "Sell", 5, 187.20, "takes")
	p.eventually("the match shows", func() bool { return p.column("Last trades", 0) == "trd-7" })
	p.says("since the security was chosen")
	p.picture("trade-user-light-1280")
	p.tabTo("button", "Sign out")
	p.press(kb.Enter)
	p.find("textbox", "Token")
	p.clean(s)
}

// TestWhatOneSessionHasReadIsNotForTheNext: an administrator signs out, and a user signs in on the
// same page.
func TestWhatOneSessionHasReadIsNotForTheNext(t *testing.T) {
	s := start(t, "--profile=production", "--risk.entitlement.enforced=true",
		"--reference.write-auth.enforced=true")
	p := open(t)
	p.goTo(s, "/controls")
	p.typeIn("Token", s.mint("--subject=ops", "--admin"))
	p.press(kb.Enter)
	p.find("heading", "Controls")
	p.askKillSwitch("drill")
	p.press(kb.Enter)
	p.says("ops (admin)", "kill switch on")
	p.tabTo("button", "Sign out")
	p.press(kb.Enter)
	p.typeIn("Token", s.mint("--subject=ann", "--accounts=3", "--ttl=1h"))
	p.press(kb.Enter)
	p.says("ann", "need an admin token")
	if text := p.text(); strings.Contains(text, "kill switch on") {
		t.Errorf("a user sees what an administrator has read: %s", text)
	}
	p.clean(s)
}

// TestTheBookNeedsNoAccount: the token may not see the account's orders, or there is no such
// account. The page says so, and has the book and the trades of the security live.
func TestTheBookNeedsNoAccount(t *testing.T) {
	s := start(t, "--profile=production", "--risk.entitlement.enforced=true",
		"--reference.write-auth.enforced=true")
	s.fill()
	p := open(t)
	p.goTo(s, "/trade?account=1&security=AAPL")
	p.typeIn("Token", s.mint("--subject=ann", "--accounts=3", "--ttl=1h"))
	p.press(kb.Enter)
	p.says("This token may not see the orders of this account.", "Book of AAPL\nlive\n",
		"No trade since the security was chosen")
	p.set("?account=4294967296&security=AAPL")
	p.says("the orders of this account: parameter", "Book of AAPL\nlive\n")
	p.set("?account=3&security=AAPL")
	p.says("rest-msft", "Book of AAPL\nlive\n")
	p.clean(s)
}
