package browser

import (
	"fmt"
	"testing"

	"github.com/chromedp/chromedp/kb"
)

// TestASecondClickIsNotForTheNextOrder: the row of a cancelled order goes, and a click comes on the
// Cancel that is in its place.
func TestASecondClickIsNotForTheNextOrder(t *testing.T) {
	s := start(t)
	s.price("AAPL", 187.20)
	s.order(2, "AAPL", "Buy", 10, 187.00, "a")
	s.order(2, "AAPL", "Buy", 10, 186.00, "b")
	p := open(t)
	p.signIn(s)
	p.goTo(s, "/trade?account=2&security=AAPL")
	p.eventually("both orders show", func() bool {
		return p.column("Working orders", 0) == "ord-2 ord-1"
	})
	writes := p.count()
	eval[bool](p, `(() => {
		const table = document.querySelector('table[aria-label="Working orders"]');
		const cancel = () => [...table.querySelectorAll('button')].find((b) => b.innerText === 'Cancel');
		new MutationObserver((_, looking) => {
			if (table.querySelectorAll('tbody tr').length !== 1) return;
			looking.disconnect();
			cancel().click();
			window.second = true;
		}).observe(table, {childList: true, subtree: true});
		cancel().click();
		cancel().click();
		return true;
	})()`)
	p.eventually("the second click", func() bool { return eval[bool](p, "!!window.second") })
	s.has("ord-2", map[string]any{"status": "CANCELED"})
	if n := writes(); n != 1 {
		t.Errorf("%d cancels were sent, want 1", n)
	}
	s.has("ord-1", map[string]any{"status": "NEW"})
	p.clean(s)
}

// TestTheBlottersTimesHoldForWhatComes: To lies ahead, and a fill that comes shows; From lies
// ahead, and it does not.
func TestTheBlottersTimesHoldForWhatComes(t *testing.T) {
	s := start(t)
	s.fill()
	p, q := open(t), open(t)
	for at, page := range map[string]*page{"/blotter?to=2099-01-01T00:00:00": p,
		"/blotter?from=2099-01-01T00:00:00": q} {
		page.signIn(s)
		page.goTo(s, at)
	}
	p.says("6 of 6 fills")
	q.says("0 of 6 fills")
	s.order(5, "AAPL", "Buy", 1, 187.50, "late")
	p.says("8 of 8 fills")
	q.says("0 of 8 fills")
	p.clean(s)
	q.clean(s)
}

// TestAServerThatIsSilentIsSaidToBeLost: the connection is there, and no answer comes.
func TestAServerThatIsSilentIsSaidToBeLost(t *testing.T) {
	s := start(t)
	p := open(t)
	p.signIn(s)
	p.goTo(s, "/positions")
	eval[bool](p, `(() => {
		const ask = window.fetch;
		window.fetch = (url, how) => (String(url).includes('/health') ? new Promise((_, end) => {
			how.signal.addEventListener('abort', () => end(how.signal.reason));
		}) : ask(url, how));
		return true;
	})()`)
	p.says("disconnected: the server does not answer")
	p.clean(s)
}

// TestAWriteToAServerThatIsSilentEnds: the connection is there, and no answer comes. The page says
// that the outcome is unknown, and the question can be closed.
func TestAWriteToAServerThatIsSilentEnds(t *testing.T) {
	s := start(t)
	p := open(t)
	p.signIn(s)
	p.goTo(s, "/controls")
	p.askKillSwitch("drill")
	// The page's time for a write passes in a second.
	eval[bool](p, `(() => {
		const ask = window.fetch, later = window.setTimeout;
		window.setTimeout = (work, ms, ...rest) => later(work, ms === 60_000 ? 1000 : ms, ...rest);
		window.fetch = (url, how) => (how?.method === 'POST' ? new Promise((_, end) => {
			how.signal.addEventListener('abort', () => end(how.signal.reason));
		}) : ask(url, how));
		return true;
	})()`)
	p.press("\r")
	p.says("unknown whether it was done", "the server does not answer")
	p.press(kb.Escape)
	p.eventually("the question is closed", func() bool {
		return eval[bool](p, "!document.querySelector('dialog')")
	})
	p.clean(s)
}

// TestAnotherTabSignsIn: the cookie is shared. A page that comes back shows what the new session
// may see, and its writes are the new session's.
func TestAnotherTabSignsIn(t *testing.T) {
	s := start(t)
	s.price("AAPL", 187.20)
	p := open(t)
	p.signIn(s)
	p.goTo(s, "/controls")
	p.says("Kill switch")
	// A look that was under way at the sign-in may be refused too: the page learns of it by the act.
	p.hold("/api/session", request)
	eval[bool](p, fmt.Sprintf(`new Promise((done) => {
		const signIn = new XMLHttpRequest();
		signIn.open('POST', '/api/session');
		signIn.setRequestHeader('Content-Type', 'application/json');
		signIn.onload = () => done(true);
		signIn.send(JSON.stringify({token: %q}));
	})`, s.mint("--subject=another", "--admin")))
	p.askKillSwitch("drill")
	p.press("\r")
	p.says("is missing or wrong")
	eval[bool](p, `(setTimeout(window.holds[0].free), true)`)
	p.says("another (admin)")
	p.askKillSwitch("drill")
	p.press("\r")
	p.says("kill switch on")
	p.clean(s)
}
