package browser

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp/kb"
)

// rows are the trades of the blotter's table, in the order in which they are shown.
func (p *page) rows() string {
	return read[string](p, `[...document.querySelectorAll('main tbody tr')].
		map((r) => r.cells[0]?.innerText.trim()).filter((t) => /^trd-/.test(t)).join(' ')`)
}

// trades names the trades from one sequence down to 1.
func trades(from int) string {
	var list []string
	for n := from; n >= 1; n-- {
		list = append(list, fmt.Sprintf("trd-%d", n))
	}
	return strings.Join(list, " ")
}

// TestAPageComesBackAfterKill: the server is killed while pages are open. They say so, and how old
// the figures are. When it is back, they show every fill, once, without a key being pressed.
func TestAPageComesBackAfterKill(t *testing.T) {
	s := start(t)
	s.price("AAPL", 187.20)
	cross := func(n int) {
		s.order(1, "AAPL", "Sell", 10, 187.25, fmt.Sprintf("s-%d", n))
		s.order(2, "AAPL", "Buy", 10, 187.25, fmt.Sprintf("b-%d", n))
	}
	cross(1)
	p := open(t)
	p.signIn(s)
	p.goTo(s, "/blotter")
	p.eventually("the first two fills show", func() bool { return p.rows() == trades(2) })
	cross(2)
	p.eventually("new fills come by themselves", func() bool { return p.rows() == trades(4) })
	p.clean(s)

	s.kill()
	p.says("disconnected", "old")
	if len(p.nodes("alert", ""))+len(p.nodes("status", "")) == 0 {
		t.Error("the banner is neither alert nor status")
	}
	p.picture("blotter-lost-light-1280")
	p.accessible("blotter-lost")
	s.run()
	s.ready()
	cross(3)
	p.eventually("nothing is missing, nothing twice", func() bool { return p.rows() == trades(6) })
	p.eventually("the banner goes", func() bool {
		return !strings.Contains(strings.ToLower(p.text()), "disconnected")
	})
	p.forget()

	p.goTo(s, "/trade?account=1&security=AAPL")
	s.order(1, "AAPL", "Sell", 30, 188, "rests")
	p.says("188.00", "own 30")
	p.eventually("the matches show", func() bool {
		return p.column("Last trades", 0) == "trd-5 trd-3 trd-1"
	})
	s.kill()
	p.says("disconnected")
	at := s.ports["console"]
	s.ports["console"] = freePort(t) // the page does not see what happens now
	s.run()
	s.ready()
	cross(4)
	s.call("POST", "order-matcher", "/trades", map[string]any{"accountId": 3,
		"security": "AAPL", "side": "Buy", "quantity": 5}) // a fill without another side
	s.kill()
	s.ports["console"] = at
	release := p.hold("/feed?", request) // the page asks for what is new before the stream brings it
	s.run()
	s.ready()
	cross(5)
	s.order(1, "AAPL", "Sell", 40, 189, "rests-too")
	p.says("189.00", "own 40")
	matches := func(want string) {
		t.Helper()
		p.eventually("each match shows once: "+want, func() bool {
			return p.column("Last trades", 0) == want
		})
	}
	matches("trd-10 trd-9 trd-7 trd-5 trd-3 trd-1")
	release()
	p.eventually("the stream goes on", func() bool {
		return strings.Contains(p.text(), "\nlive\n")
	})
	cross(6)
	matches("trd-12 trd-10 trd-9 trd-7 trd-5 trd-3 trd-1")
	p.eventually("each level shows once", func() bool {
		text := eval[string](p, "document.querySelector('.ladder').innerText")
		return strings.Count(text, "188.00") == 1 && strings.Count(text, "189.00") == 1
	})
}

// text is what the page shows.
func (p *page) text() string { return read[string](p, "document.body.innerText") }

// TestAPageOfAnotherHistoryBeginsAnew: the server comes back with an empty data directory. No fill
// of the old history stays on the page, and the new ones show.
func TestAPageOfAnotherHistoryBeginsAnew(t *testing.T) {
	s := start(t, "--auth.jwt.secret="+strings.Repeat("s", 32))
	cross := func(n int) {
		s.price("AAPL", 187.20)
		for i := range n {
			s.order(1, "AAPL", "Sell", 10, 187.25, fmt.Sprintf("s-%d", i))
			s.order(2, "AAPL", "Buy", 10, 187.25, fmt.Sprintf("b-%d", i))
		}
	}
	cross(3)
	p := open(t)
	p.signIn(s)
	p.goTo(s, "/trade?account=1&security=AAPL")
	p.says("trd-5")
	s.kill()
	p.says("disconnected")
	if err := os.RemoveAll(filepath.Join(s.dir, "data")); err != nil {
		t.Fatal(err)
	}
	s.run()
	s.ready()
	cross(1)
	s.order(1, "AAPL", "Sell", 30, 188, "rests")
	p.says("188.00", "own 30", "trd-1")
	p.eventually("each trade is of the new history", func() bool {
		return p.column("Last trades", 0) == "trd-1"
	})
}

// TestASecurityIsHaltedWithAReason: by keyboard alone, and the kill switch too.
func TestASecurityIsHaltedWithAReason(t *testing.T) {
	s := start(t)
	s.price("AAPL", 187.20)
	p := open(t)
	p.signIn(s)
	p.follow("Controls")
	p.typeIn("Security", "AAPL")
	p.tabTo("switch", "Halt AAPL")
	p.press(" ")
	p.tabTo("textbox", "Reason")
	p.press("news pending")
	p.tabTo("button", "Confirm")
	p.press(kb.Enter)
	eventually(t, "orders of it are refused", func() bool {
		status, answer := s.try("POST", "order-matcher", "/orders", map[string]any{"accountId": 1,
			"security": "AAPL", "side": "Buy", "quantity": 1, "limitPrice": 187.2})
		return status == 422 && answer["reason"] == "SECURITY_DISABLED"
	})
	p.tabTo("switch", "Kill switch")
	p.press(kb.Enter)
	p.tabTo("textbox", "Reason")
	p.press("drill")
	p.press(kb.Enter)
	p.says("every new order is refused")
	p.says("news pending", "drill") // on record, with its subject
	p.eventually("the acts name the operator", func() bool {
		return strings.Count(eval[string](p,
			"document.querySelector('table[aria-label=Audit]').innerText"), "console") >= 2
	})
	p.picture("controls-acts-light-1280")
	p.accessible("controls-acts")
	for _, words := range [][]string{{"AAPL", "news pending", "console"}, {"drill", "console"}} {
		p.eventually("one act on record has "+strings.Join(words, ", "), func() bool {
			return eval[int](p, fmt.Sprintf(`
				[...document.querySelectorAll('table[aria-label=Audit] tbody tr')]
					.filter((r) => %q.split(' / ').every((w) => r.innerText.includes(w))).length`,
				strings.Join(words, " / "))) == 1
		})
	}
	control := s.call("GET", "order-matcher", "/risk/control/snapshot", nil)
	if control["killSwitch"] != true {
		t.Error("the kill switch is not on")
	}
	for _, one := range control["securities"].([]any) {
		if one := one.(map[string]any); one["halted"] != (one["ticker"] == "AAPL") {
			t.Errorf("%v", one)
		}
	}
	p.clean(s)
}

// TestABlotterRowOpensByEnter: keys go to a row, Enter opens it, Escape closes, the address can be
// sent on.
func TestABlotterRowOpensByEnter(t *testing.T) {
	s := start(t)
	s.fill()
	p := open(t)
	p.signIn(s)
	p.goTo(s, "/blotter")
	p.says("trd-6")
	p.typeIn("Account", "3")
	p.says("2 of 6 fills")
	p.tabTo("region", "Blotter")
	p.press(kb.ArrowDown)
	p.press(kb.Enter)
	p.find("dialog", "trd-1")
	p.says("ord-17", "settlement date", "slippage to arrival")
	p.picture("blotter-open-light-1280")
	p.accessible("blotter-open")
	at := eval[string](p, "location.pathname + location.search")
	if at != "/blotter?account=3&open=trd-1" {
		t.Errorf("the address is %s", at)
	}
	p.press(kb.Escape)
	p.eventually("the dialog closes", func() bool { return len(p.nodes("dialog", "")) == 0 })
	eval[bool](p, `([...document.querySelectorAll('regular-table tbody tr')]
		.find((r) => r.innerText.includes('trd-3')).focus(), true)`)
	p.press(kb.Enter) // of the row that has the focus, not of the one that was chosen
	p.find("dialog", "trd-3")
	p.press(kb.Escape)
	p.eventually("the dialog closes", func() bool { return len(p.nodes("dialog", "")) == 0 })
	p.find("button", "CSV")
	p.goTo(s, at)
	p.find("dialog", "trd-1")
	p.clean(s)
}
