package browser

import (
	"encoding/csv"
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/chromedp/kb"
)

// What hold keeps back.
const (
	request = "request"
	answer  = "answer"
)

// hold keeps back what the page asks for at addresses with a text in them: each request, or the
// answer of the first one, which the server has handled by then. release lets it go.
func (p *page) hold(part, what string) (release func()) {
	p.t.Helper()
	eval[bool](p, fmt.Sprintf(`(() => {
		if (!window.holds) {
			const ask = window.fetch;
			window.holds = [];
			window.fetch = async (url, how) => {
				const held = window.holds.find((h) => String(url).includes(h.part));
				if (held?.what === 'request') await held.until;
				if (held?.what !== 'answer' || held.asked) return ask(url, how);
				held.asked = true;
				const got = await ask(url, {...how, signal: undefined});
				held.back = true;
				await held.until;
				return got;
			};
		}
		const held = {part: %q, what: %q};
		held.until = new Promise((done) => { held.free = done; });
		window.holds.push(held);
		return true;
	})()`, part, what))
	return func() {
		p.t.Helper()
		eval[bool](p, fmt.Sprintf(`(() => {
			const held = window.holds.find((h) => h.part === %q);
			window.holds = window.holds.filter((h) => h !== held);
			held.free();
			return new Promise((done) => setTimeout(() => done(true), 100)); // what waited is drawn
		})()`, part))
	}
}

// held waits until an answer is kept back.
func (p *page) held(part string) {
	p.t.Helper()
	p.eventually("an answer is kept back: "+part, func() bool {
		return read[bool](p, fmt.Sprintf("!!window.holds.find((h) => h.part === %q)?.back", part))
	})
}

// set puts a value into the query of the address, as a link or a key of the page does.
func (p *page) set(query string) {
	p.t.Helper()
	eval[bool](p, fmt.Sprintf(`(history.pushState(null, '', location.pathname + %q),
		dispatchEvent(new PopStateEvent('popstate')), true)`, query))
}

// TestAnAnswerToAnEarlierQuestionIsDropped: what was asked for first is answered last, on each page
// whose selection may change meanwhile.
func TestAnAnswerToAnEarlierQuestionIsDropped(t *testing.T) {
	s := start(t)
	head := s.fill()
	p := open(t)
	p.signIn(s)
	// each opens a page with no selection, chooses one whose answer is kept back, then another.
	each := func(path, first, part, second string, shows func() bool) {
		t.Helper()
		p.goTo(s, path)
		p.find("main", "")
		release := p.hold(part, answer)
		p.set(first)
		p.held(part)
		p.set(second)
		p.eventually(path+" shows what was chosen last", shows)
		release()
		if !shows() {
			t.Errorf("%s: an answer to an earlier question shows: %s", path, p.text())
		}
	}
	rows := func(table string, column int, want string) func() bool {
		return func() bool { return p.column(table, column) == want }
	}
	each("/positions", "?account=1", "/positions?limit=1000&accountId=1", "?account=3",
		rows("Positions", 0, "3"))
	each("/tca", "?trade=trd-1", "/tca/report/trd-1", "?trade=trd-2", func() bool {
		return strings.Contains(p.text(), "trd-2") && strings.Contains(p.facts(), "Side Sell")
	})
	each("/tca", "?account=3", "/tca/summary?accountId=3", "?account=5", func() bool {
		return strings.Contains(p.text(), "Summary of account 5") &&
			strings.Contains(p.text(), "0 trades")
	})
	each("/settlement", "?status=Settled", "/trades?limit=1000&order=newest&status=Settled",
		"?status=Processing",
		rows("Trades", 0, "trd-1 trd-2 trd-3 trd-4 trd-5 trd-6"))
	each("/blotter", "?open=trd-1", "/trades/trd-1", "?open=trd-2", func() bool {
		return strings.Contains(p.facts(), "Trade trd-2") && strings.Contains(p.facts(), "Side Sell")
	})
	each("/contracts", "?account=1", "/contracts?limit=1000&accountId=1", "?account=2",
		func() bool { return strings.Contains(p.text(), "0 contracts") })
	each("/time", fmt.Sprintf("?at=%d", head-1), fmt.Sprintf("/as-of/%d/orders", head-1),
		fmt.Sprintf("?at=%d", head), func() bool {
			return strings.HasSuffix(p.column("Working orders", 0), " ord-20")
		})
	p.clean(s)
}

// TestAFillThatComesWhileAPageIsRead: the answer with the page of the blotter is from before it.
func TestAFillThatComesWhileAPageIsRead(t *testing.T) {
	s := start(t)
	cross := func(n int) {
		s.order(1, "AAPL", "Sell", 10, 187.25, fmt.Sprintf("s-%d", n))
		s.order(2, "AAPL", "Buy", 10, 187.25, fmt.Sprintf("b-%d", n))
	}
	s.price("AAPL", 187.20)
	cross(1)
	p := open(t)
	p.signIn(s)
	const page = "sinceSeq=0&limit=500"
	release := p.hold(page, answer)
	p.follow("Blotter")
	p.held(page)
	cross(2)
	p.says("4 fills")
	release()
	p.eventually("every fill shows", func() bool { return p.rows() == trades(4) })

	// A selection that looks for its first fill while one comes.
	const since = "sinceSeq=2&limit=1"
	release = p.hold(since, answer)
	p.set("?account=1&from=2020-01-01T00%3A00%3A00")
	p.held(since)
	cross(3)
	p.says("of 6 fills")
	release()
	p.eventually("every fill of the account shows", func() bool {
		return p.rows() == "trd-6 trd-4 trd-2"
	})
	p.clean(s)
}

// TestAnExportIsOfOneMoment: fills that come while the file is made are not in it and move nothing.
// The server's pages are smaller than the console asks for.
func TestAnExportIsOfOneMoment(t *testing.T) {
	s := start(t, "--recon.blotter.capacity=100000", "--recon.blotter.page-size=300",
		"--sidecars.enabled=false",
		"--risk.price.max-age-ms=3600000", "--risk.max-order-notional=100000000000")
	const rows = 25_000 // two blocks
	s.manyFills(rows)
	p := open(t)
	p.signIn(s)
	p.follow("Blotter")
	p.says("25,000 fills")
	eval[bool](p, `(() => {
		window.files = [];
		URL.createObjectURL = (blob) => { blob.text().then((t) => window.files.push(t)); return '#'; };
		return true;
	})()`)
	part := "sinceSeq=4500&limit=500" // of the second block
	release := p.hold(part, answer)
	p.tabTo("button", "CSV")
	p.press(kb.Enter)
	p.held(part)
	s.manyFills(10)
	p.says("25,010 fills")
	release()
	p.eventually("the file is made", func() bool { return read[int](p, "window.files.length") == 1 })
	lines, err := csv.NewReader(strings.NewReader(eval[string](p, "window.files[0]"))).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	if len(lines) != rows+1 {
		t.Fatalf("%d lines, want %d and the header", len(lines), rows)
	}
	for i, line := range lines[1:] {
		if want := fmt.Sprintf("trd-%d", rows-i); line[0] != want {
			t.Fatalf("line %d is of %s, want %s", i+1, line[0], want)
		}
	}
	p.clean(s)
}

// TestAnActOfAnotherOperatorStays: what is asked for is made of what holds when it is confirmed.
func TestAnActOfAnotherOperatorStays(t *testing.T) {
	s := start(t)
	p := open(t)
	p.signIn(s)
	control := func() map[string]any {
		return s.call("GET", "order-matcher", "/risk/control/snapshot", nil)
	}
	p.goTo(s, "/controls?security=MSFT")
	p.tabTo("switch", "Enable MSFT")
	p.press(" ") // off
	p.tabTo("textbox", "Reason")
	p.press("delisted")
	s.call("POST", "order-matcher", "/risk/control/security", map[string]any{"security": "MSFT",
		"enabled": true, "halted": true})
	p.eventually("the page behind the question shows the halt", func() bool {
		return read[string](p, `document.querySelector('[aria-label="Halt MSFT"]').ariaChecked`) == "true"
	})
	p.press(kb.Enter)
	p.eventually("both acts hold", func() bool {
		for _, one := range control()["securities"].([]any) {
			if one := one.(map[string]any); one["ticker"] == "MSFT" {
				if one["halted"] != true {
					t.Fatalf("the other operator's halt is gone: %v", one)
				}
				return one["enabled"] == false
			}
		}
		return false
	})

	p.askKillSwitch("drill")
	version := control()["policyVersion"].(float64)
	s.call("POST", "order-matcher", "/risk/control/policy", map[string]any{
		"policyVersion": version + 5, "killSwitch": false})
	p.says(fmt.Sprintf("policy version %.0f", version+5))
	p.press(kb.Enter)
	p.says("every new order is refused")
	for _, reason := range []string{"delisted", "drill"} {
		p.eventually("the act is on record once: "+reason, func() bool {
			return strings.Count(p.column("Audit", 8), reason) == 1
		})
	}
	p.clean(s)
}

// TestAPolicyVersionInNanoseconds: a version above what a JavaScript number holds shows in full,
// and the next act has the version behind it, also when the nearest such number, which is below
// it, has the same shortest text. A limit is sent with all its digits too.
func TestAPolicyVersionInNanoseconds(t *testing.T) {
	const short, version = 1_760_000_000_121_000_000, 1_796_000_000_123_456_789
	s := start(t)
	p := open(t)
	p.signIn(s)
	s.call("POST", "order-matcher", "/risk/control/policy", map[string]any{
		"policyVersion": short, "killSwitch": true})
	p.goTo(s, "/controls")
	p.says("policy version 1,760,000,000,121,000,000")
	p.askKillSwitch("drill")
	p.press(kb.Enter)
	p.says("policy version 1,760,000,000,121,000,001")
	s.call("POST", "order-matcher", "/risk/control/policy", map[string]any{
		"policyVersion": version, "killSwitch": false})
	p.goTo(s, "/controls")
	p.says("policy version 1,796,000,000,123,456,789")
	p.askKillSwitch("drill")
	p.press(kb.Enter)
	p.says("policy version 1,796,000,000,123,456,790", "every new order is refused")
	p.typeIn("New: Age of a price, ms", "9007199254740993")
	p.tabTo("button", "Change limits")
	p.press(kb.Enter)
	p.says("→ 9,007,199,254,740,993")
	p.tabTo("textbox", "Reason")
	p.press("holiday" + kb.Enter)
	p.says("policy version 1,796,000,000,123,456,791")
	in := string(s.document("/risk/control/snapshot"))
	for _, want := range []string{`"policyVersion":1796000000123456791`, `"killSwitch":true`,
		`"priceMaxAgeMs":9007199254740993`} {
		if !strings.Contains(in, want) {
			t.Errorf("%s is not in force: %.300s", want, in)
		}
	}
	p.eventually("the record shows the versions", func() bool {
		return strings.Contains(p.column("Audit", 7), "1796000000123456791") &&
			strings.Contains(p.column("Audit", 6), "1796000000123456790")
	})
	p.clean(s)
}

// TestAnActIsOnRecordOnce: an act is done while the record of the one before is read.
func TestAnActIsOnRecordOnce(t *testing.T) {
	s := start(t)
	p := open(t)
	p.signIn(s)
	p.follow("Controls")
	p.says("no act is on record yet")
	s.price("AAPL", 187.20)
	p.says("the tests of the console")
	s.price("AAPL", 187.30)
	release := p.hold("/audit?", answer)
	p.held("/audit?")
	p.askKillSwitch("drill")
	p.press(kb.Enter)
	p.says("every new order is refused")
	release()
	s.price("AAPL", 187.40) // shows by a reading after both
	p.eventually("each act shows once", func() bool {
		return p.column("Audit", 2) == "price kill-switch price price"
	})
	p.clean(s)
}

// TestASessionThatWasAskedForEarlier: the answer that no session is there comes after the sign-in.
func TestASessionThatWasAskedForEarlier(t *testing.T) {
	s := start(t)
	p := open(t)
	p.goTo(s, "/")
	p.find("button", "Sign in")
	release := p.hold("/api/session", answer)
	eval[bool](p, `import('/assets/api.js').then((api) => { api.refreshSession(); return true; })`)
	p.held("/api/session")
	p.tabTo("button", "Sign in")
	p.press(kb.Enter)
	p.find("heading", "Overview")
	release()
	if len(p.nodes("heading", "Overview")) == 0 {
		t.Errorf("the session is gone: %s", p.text())
	}
	p.clean(s)
}

// TestStreamAndQuestionsEachSuffice: the page Trade has two ways to what is new, the stream and
// what it asks for while there is none. Each alone brings everything.
func TestStreamAndQuestionsEachSuffice(t *testing.T) {
	s := start(t)
	s.price("AAPL", 187.20)
	s.price("MSFT", 412.5)
	cross := func(n int) {
		s.order(1, "AAPL", "Sell", 10, 187.25, fmt.Sprintf("s-%d", n))
		s.order(2, "AAPL", "Buy", 10, 187.25, fmt.Sprintf("b-%d", n))
	}
	cross(1)
	s.order(1, "MSFT", "Sell", 7, 412.75, "in-msft")
	p := open(t)
	p.signIn(s)
	p.follow("Trade")
	p.set("?account=1&security=AAPL")
	live := func() {
		t.Helper()
		p.eventually("the stream is live", func() bool { return strings.Contains(p.text(), "\nlive\n") })
	}
	shows := func(when, matches, working string) {
		t.Helper()
		p.eventually(when, func() bool {
			return p.column("Last trades", 0) == matches && p.column("Working orders", 0) == working
		})
	}
	live()
	shows("both ways at first", "trd-1", "ord-3")
	first := s.order(1, "AAPL", "Sell", 30, 188, "rests")["orderId"].(string)
	shows("an order that the stream has said", "trd-1", "ord-4 ord-3")

	s.kill()
	p.says("disconnected")
	release := p.hold("/feed?", request)
	s.run()
	s.ready()
	cross(2)
	s.call("POST", "order-matcher", "/orders/"+first+"/cancel", nil)
	shows("the stream is away", "trd-3 trd-1", "ord-3")
	p.eventually("the book is the one asked for", func() bool {
		return p.column("Book", 3) == "no spread" || !strings.Contains(p.text(), "188.00")
	})
	release()
	live()
	shows("the stream has said again what was known", "trd-3 trd-1", "ord-3")

	var releases []func()
	for _, part := range []string{"/recon/trades/blotter", "/orders?", "/book/"} {
		releases = append(releases, p.hold(part, request))
	}
	s.kill()
	p.says("disconnected")
	s.run()
	s.ready()
	cross(3)
	s.order(1, "AAPL", "Sell", 30, 189, "rests-too")
	live()
	shows("no question is answered", "trd-5 trd-3 trd-1", "ord-9 ord-3")
	p.says("189.00", "own 30")
	p.set("?account=1&security=MSFT")
	p.says("412.75", "own 7") // the book is the stream's first word
	for _, release := range releases {
		release()
	}
}

// TestTheLastPlaceOfTheSliderIsAskedForUntilItComes: the server was away when it was asked for.
func TestTheLastPlaceOfTheSliderIsAskedForUntilItComes(t *testing.T) {
	s := start(t)
	head := s.fill()
	p := open(t)
	p.signIn(s)
	p.goTo(s, fmt.Sprintf("/time?security=AAPL&at=%d", head))
	p.says("as of " + grouped(float64(head)))
	s.kill()
	p.says("disconnected")
	p.tabTo("slider", "Sequence")
	p.press(kb.ArrowLeft)
	p.says("at sequence " + grouped(float64(head-1)))
	s.run()
	s.ready()
	p.says("as of " + grouped(float64(head-1)))
}
