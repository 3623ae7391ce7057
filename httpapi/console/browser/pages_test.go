package browser

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
)

// pages are the pages by address, with their names and what is there when the page has its data.
var pages = []struct{ path, name, empty, full string }{
	{"overview", "Overview", "readiness", "recovery"},
	{"trade", "Trade", "choose a security", "187.2"},
	{"blotter", "Blotter", "no fill yet", "trd-2"},
	{"positions", "Positions", "no position yet", "AAPL"},
	{"reconciliation", "Reconciliation", "no break", "matched"},
	{"settlement", "Settlement", "no trade here", "trd-1"},
	{"tca", "TCA", "no trade yet", "this trade"},
	{"contracts", "Contracts", "no contract is booked yet", "SW-"},
	{"controls", "Controls", "kill switch", "MSFT"},
	{"time", "Time", "sequence", "accept"},
	{"evidence", "Evidence", "verify a file", "verify a file"},
	{"cluster", "Cluster", "single node", "single node"},
	{"latency", "Latency", "journal commit", "http"},
}

// queries are the states of the pages that are full.
var queries = map[string]string{"trade": "?account=1&security=AAPL", "tca": "?trade=trd-1",
	"controls": "?security=MSFT", "time": "?security=AAPL&at=%d"}

// fill trades, books and refuses something of everything.
func (s *server) fill() (head int) {
	s.price("AAPL", 187.20)
	s.price("MSFT", 412.5)
	for i := range 8 {
		s.order(1, "AAPL", "Sell", 100+i*10, float64(18725+5*i)/100, fmt.Sprintf("ask-%d", i))
		s.order(2, "AAPL", "Buy", 90+i*10, float64(18710-5*i)/100, fmt.Sprintf("bid-%d", i))
	}
	s.order(3, "AAPL", "Buy", 140, 187.30, "take-1")
	s.order(4, "AAPL", "Sell", 60, 187.05, "take-2")
	s.try("POST", "order-matcher", "/orders", map[string]any{"accountId": 2, "security": "AAPL",
		"side": "Buy", "quantity": 2000000, "limitPrice": 187.30, "clientOrderId": "too-large"})
	s.call("POST", "order-matcher", "/swaps", map[string]any{"accountId": 1, "payReceive": "Pay",
		"notional": 1000000, "fixedRate": 0.0325, "effectiveDate": "2026-11-25",
		"maturityDate": "2031-11-25", "conventions": "USD-SOFR-1Y-ACT360"})
	last := s.order(3, "MSFT", "Sell", 10, 412.75, "rest-msft")
	eventually(s.t, "the projection has the trades", func() bool {
		status, _ := s.try("GET", "trade-processor", "/trades/trd-4", nil)
		return status == 200
	})
	return int(last["sequence"].(float64))
}

// violation is what axe-core reports.
type violation struct {
	ID, Help string
	Nodes    []struct{ HTML, FailureSummary string }
}

// accessible fails the test when the page breaks a rule of WCAG, A or AA.
func (p *page) accessible(what string) {
	p.t.Helper()
	if !eval[bool](p, "typeof axe === 'object'") {
		script, err := os.ReadFile("testdata/axe-core-4.14.1.min.js")
		if err != nil {
			p.t.Fatal(err)
		}
		eval[bool](p, string(script)+"; true")
	}
	text := eval[string](p, `axe.run(document, {
		runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa']})
		.then((r) => JSON.stringify(r.violations))`)
	var found []violation
	if err := json.Unmarshal([]byte(text), &found); err != nil {
		p.t.Fatal(err)
	}
	for _, v := range found {
		for _, n := range v.Nodes[:min(len(v.Nodes), 2)] { // more of the same say nothing more
			p.t.Errorf("%s: %s (%s): %s: %s", what, v.ID, v.Help, n.HTML,
				strings.ReplaceAll(n.FailureSummary, "\n", " "))
		}
	}
}

// look opens every page and leaves a picture of it, in light and dark, wide and narrow; each is
// checked for accessibility.
func (p *page) look(s *server, state string, expect func(i int) (query, text string)) {
	p.t.Helper()
	for _, scheme := range []string{"light", "dark"} {
		p.scheme(scheme)
		for i, page := range pages {
			query, text := expect(i)
			p.goTo(s, "/"+page.path+query)
			p.find("heading", page.name)
			p.says(text)
			for _, width := range []int64{1280, 800} {
				p.size(width, 800)
				name := fmt.Sprintf("%s-%s-%s-%d", page.path, state, scheme, width)
				p.picture(name)
				p.accessible(name)
				if over := eval[int](p, "document.documentElement.scrollWidth - innerWidth"); over > 0 {
					p.t.Errorf("%s: the page is %d pixels wider than the window", name, over)
				}
				// Narrow, the tables with the most columns scroll.
				if wide := eval[string](p, `[...document.querySelectorAll('.scroll')].
					filter((e) => e.scrollWidth > e.clientWidth && (innerWidth > 900 ||
						!['Working orders', 'Contracts', 'Audit'].includes(e.ariaLabel))).
					map((e) => e.ariaLabel).join()`); wide != "" {
					p.t.Errorf("%s: wider than their place: %s", name, wide)
				}
			}
			p.structure(page.name)
		}
	}
	p.clean(s)
}

// structure checks what section 3 of the contract asks of every page.
func (p *page) structure(name string) {
	p.t.Helper()
	if n := eval[int](p, "document.querySelectorAll('h1').length"); n != 1 {
		p.t.Errorf("%s has %d headings of level 1", name, n)
	}
	for _, other := range pages {
		p.find("link", other.name)
	}
	p.find("navigation", "")
	p.find("main", "")
}

func TestEveryPageIsAccessibleWhenItIsEmpty(t *testing.T) {
	s := start(t)
	p := open(t)
	p.signIn(s)
	p.look(s, "empty", func(i int) (string, string) { return "", pages[i].empty })
}

func TestEveryPageIsAccessibleWhenItIsFull(t *testing.T) {
	s := start(t)
	head := s.fill()
	p := open(t)
	p.signIn(s)
	p.look(s, "full", func(i int) (string, string) {
		query := queries[pages[i].path]
		if strings.Contains(query, "%d") {
			query = fmt.Sprintf(query, head)
		}
		return query, pages[i].full
	})
}

// TestTheConsoleIsSmall: all that a browser may be sent, but the verifier, is under 300 kB.
func TestTheConsoleIsSmall(t *testing.T) {
	s := start(t)
	p := open(t)
	p.signIn(s)
	for _, page := range pages {
		p.goTo(s, "/"+page.path)
		p.find("heading", page.name)
	}
	size := eval[int](p, `(async () => {
		const seen = new Set(), all = [];
		const add = async (path) => {
			if (seen.has(path)) return;
			seen.add(path);
			const text = await (await fetch(path)).text();
			all.push(new TextEncoder().encode(text).length);
			for (const [, to] of text.matchAll(/(?:from|import)\s*\(?'(\.[^']+)'/g)) {
				await add(new URL(to, new URL(path, location)).pathname);
			}
		};
		for (const path of ['/overview', '/assets/app.js', '/assets/console.css', '/assets/icon.svg',
			'/assets/vendor/uplot-1.6.32.js', '/assets/vendor/uplot-1.6.32.css']) await add(path);
		return all.reduce((a, b) => a + b, 0);
	})()`)
	if size > 300_000 {
		t.Errorf("the console is %d bytes, want at most 300000", size)
	}
	t.Logf("%d bytes", size)
}
