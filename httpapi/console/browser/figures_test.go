package browser

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/chromedp/kb"
)

// refuse makes the server's answers to addresses with a text in them refusals.
func (p *page) refuse(part string) {
	p.t.Helper()
	eval[bool](p, fmt.Sprintf(`(() => {
		const ask = window.fetch;
		window.fetch = (url, how) => (!String(url).includes(%q) ? ask(url, how) : Promise.resolve(
			new Response('{"status":503,"code":"BUSY","detail":"no reader is free"}',
				{headers: {'X-Console-Status': '503'}})));
		return true;
	})()`, part))
}

// headings are the headings of the parts of a page.
func (p *page) headings() string {
	return read[string](p, `[...document.querySelectorAll('main h2')].
		map((h) => h.innerText).join('; ')`)
}

// TestTimeSaysOfWhichMomentItsFiguresAre: while another moment is read they are of the one before,
// and where it cannot be read there are none.
func TestTimeSaysOfWhichMomentItsFiguresAre(t *testing.T) {
	s := start(t)
	head := s.fill()
	of := func(at int) string {
		when := "as of " + grouped(float64(at)) + ", account 1"
		return "Book of AAPL " + when + "; Positions " + when + "; Working orders " + when
	}
	at := func(seq int) string { return fmt.Sprintf("?security=AAPL&account=1&at=%d", seq) }
	p := open(t)
	p.signIn(s)
	p.goTo(s, "/time"+at(head))
	shows := func(heading, figures int) {
		t.Helper()
		want := "At sequence " + grouped(float64(heading)) + "; " + of(figures)
		p.eventually("the headings are "+want, func() bool { return p.headings() == want })
	}
	shows(head, head)
	release := p.hold(fmt.Sprintf("/as-of/%d/orders", head-1), request)
	p.set(at(head - 1))
	shows(head-1, head)
	p.says("loading this moment")
	release()
	shows(head-1, head-1)
	p.refuse(fmt.Sprintf("/as-of/%d/", head-2))
	p.set(at(head - 2))
	p.says("the past: no reader is free")
	if got := p.headings(); got != "At sequence "+grouped(float64(head-2)) {
		t.Errorf("with nothing read the headings are %s", got)
	}
	p.clean(s)
}

// TestAFilterShowsNoFigureOfTheOneBefore: while its own are read, and when they cannot be.
func TestAFilterShowsNoFigureOfTheOneBefore(t *testing.T) {
	s := start(t)
	s.fill()
	p := open(t)
	p.signIn(s)
	each := func(path, part, reading, failed string, old ...string) {
		t.Helper()
		p.goTo(s, path+"?account=3")
		p.says(old...)
		none := func() {
			t.Helper()
			for _, one := range old {
				if strings.Contains(p.text(), one) {
					t.Errorf("%s: %q shows under another filter: %s", path, one, p.text())
				}
			}
		}
		release := p.hold(part, request)
		p.set("?account=5")
		p.says(reading)
		none()
		release()
		p.set("?account=3")
		p.says(old...)
		p.refuse(part)
		p.set("?account=5")
		p.says(failed)
		none()
	}
	each("/tca", "/tca/summary?accountId=5", "Reading summary",
		"Transaction costs: no reader is free", "2 trades, 2 with a benchmark")
	each("/tca", "/trades?limit=1000&order=newest&accountId=5", "Reading trades",
		"Transaction costs: no reader is free", "trd-1")
	each("/positions", "/positions?limit=1000&accountId=5", "Reading positions",
		"The positions: no reader is free", "1 position")
	each("/positions", "/credit?limit=1000&accountId=5", "Reading credit",
		"The credit: no reader is free", "of 5,000,000,000")

	p.goTo(s, "/contracts?account=1")
	p.says("SW-")
	release := p.hold("/contracts?limit=1000&accountId=5", request)
	p.set("?account=5")
	p.says("Reading contracts")
	release()

	p.goTo(s, "/blotter?account=3")
	p.says("2 of 6 fills")
	release = p.hold("sinceSeq=", request)
	p.set("?account=3&from=2020-01-01T00%3A00%3A00")
	p.says("0 of 6 fills")
	release()
	p.says("2 of 6 fills")
	p.clean(s)
}

// TestANumberShowsWithAllItsDigits: more than a number of JavaScript holds. Money has six digits
// behind the point, and 19 in all.
func TestANumberShowsWithAllItsDigits(t *testing.T) {
	s := start(t)
	s.price("AAPL", 187.20)
	p := open(t)
	p.signIn(s)
	version := s.call("GET", "order-matcher", "/risk/control/snapshot", nil)["policyVersion"]
	s.call("POST", "order-matcher", "/risk/control/limits", map[string]any{
		"policyVersion": version.(float64) + 1, "limits": map[string]any{
			"maxOrderQuantity": 2147483647, "maxPositionQuantity": 2147483647,
			"maxOrderNotional": "123456789012.123457", "priceMaxAgeMs": 9007199254740993,
			"maxConcentrationNotional": "9007199254740.992001",
			"creditLimit":              "9223372036854.775807"}})
	s.order(1, "AAPL", "Sell", 10, 187.25, "sells")
	s.order(2, "AAPL", "Buy", 10, 187.25, "buys")

	p.goTo(s, "/controls")
	p.eventually("the limits show", func() bool {
		return p.column("Limits", 1) == "2,147,483,647 123,456,789,012.123457 2,147,483,647 "+
			"9,007,199,254,740.992001 9,223,372,036,854.775807 9,007,199,254,740,993 5,000"
	})
	p.eventually("the record shows them", func() bool {
		record := p.column("Audit", 7)
		return strings.Contains(record, "123456789012.123457") &&
			strings.Contains(record, "9007199254740993")
	})
	p.goTo(s, "/positions")
	p.says("of 9,223,372,036,854.775807", "of 9,007,199,254,740.992001")

	p.goTo(s, "/trade?account=1&security=AAPL")
	p.typeIn("Quantity", "2000000000")
	p.typeIn("Price", "187.2")
	p.press(kb.Enter)
	p.says("ORDER_NOTIONAL")
	p.tabTo("button", "Why")
	p.press(kb.Enter)
	p.says("Limit\n123456789012.123457 currency")
	p.clean(s)
}
