package browser

import (
	"fmt"
	"strings"
	"testing"
)

// steer lets the test say when the page is hidden, and what becomes of its stream: window.body
// holds back what a connection brings, window.instead is the answer to one that names a last event.
// A hidden page gives its connection back at once.
func (p *page) steer() {
	p.t.Helper()
	eval[bool](p, `(() => {
		const ask = window.fetch, later = window.setTimeout;
		Object.defineProperty(document, 'hidden', {get: () => !!window.away, configurable: true});
		window.setTimeout = (f, ms, ...more) => later(f, ms === 20000 ? 0 : ms, ...more);
		window.answered = 0;
		window.fetch = async (url, how) => {
			if (!String(url).includes('/feed?')) return ask(url, how);
			if (window.instead && how.headers['Last-Event-ID']) {
				window.answered++;
				return window.instead();
			}
			const got = await ask(url, how);
			if (got.headers.get('X-Console-Status')) return got;
			return new Response(got.body.pipeThrough(new TransformStream({
				transform: async (part, to) => { await window.body; to.enqueue(part); },
			})), {headers: got.headers});
		};
		return true;
	})()`)
}

// hide hides the page, or shows it again.
func (p *page) hide(away bool) {
	p.t.Helper()
	eval[bool](p, fmt.Sprintf(`(window.away = %t,
		document.dispatchEvent(new Event('visibilitychange')), true)`, away))
}

// TestTradeIsLiveWhenItHasCaughtUp: what happened while the page was hidden is still to come.
func TestTradeIsLiveWhenItHasCaughtUp(t *testing.T) {
	s := start(t)
	s.price("AAPL", 187.20)
	p := open(t)
	p.signIn(s)
	p.follow("Trade")
	p.steer()
	p.set("?account=1&security=AAPL")
	p.says("Book of AAPL\nlive\n")
	p.hide(true)
	p.says("Book of AAPL\nlost\n")
	s.order(1, "AAPL", "Sell", 30, 188, "meanwhile")
	eval[bool](p, `(window.body = new Promise((go) => { window.go = go; }), true)`)
	p.hide(false)
	p.says("Book of AAPL\ncatching up\n", "own 30") // the page asks while the stream is behind
	eval[bool](p, `(window.go(), true)`)
	p.says("Book of AAPL\nlive\n")

	// Nothing of the selection has happened, but something else has: a mark says that this is all.
	p.hide(true)
	p.says("Book of AAPL\nlost\n")
	s.price("MSFT", 412.5)
	p.hide(false)
	p.says("Book of AAPL\nlive\n")
	p.clean(s)
}

// TestAPageWhosePlaceIsArchivedBeginsAnew: the answer to the page's last event, or the stream
// behind it, says that the history is not here. The page says so, and shows what holds now.
func TestAPageWhosePlaceIsArchivedBeginsAnew(t *testing.T) {
	const note = "is in an archive"
	for name, instead := range map[string]string{
		"answer": `new Response('{"status":503,"code":"ARCHIVE_NEEDED"}',
			{headers: {'X-Console-Status': '503'}})`,
		"gone": `new Response('event: gone\ndata: {"reason":"ARCHIVE_NEEDED"}\n\n')`,
	} {
		t.Run(name, func(t *testing.T) {
			s := start(t)
			s.price("AAPL", 187.20)
			first := s.order(1, "AAPL", "Sell", 30, 188, "first")["orderId"].(string)
			p := open(t)
			p.signIn(s)
			p.follow("Trade")
			p.steer()
			p.set("?account=1&security=AAPL")
			p.says("Book of AAPL\nlive\n", "own 30")
			p.hide(true)
			p.says("Book of AAPL\nlost\n")
			s.call("POST", "order-matcher", "/orders/"+first+"/cancel", nil)
			s.order(1, "AAPL", "Sell", 10, 187.25, "sells")
			s.order(2, "AAPL", "Buy", 10, 187.25, "buys")
			s.order(1, "AAPL", "Sell", 40, 189, "second")
			eval[bool](p, `(window.instead = () => `+instead+`, true)`)
			p.hide(false)
			p.says(note, "Book of AAPL\nlive\n", "own 40")
			p.eventually("what holds now shows", func() bool {
				return p.column("Working orders", 0) == "ord-4" &&
					p.column("Last trades", 0) == "trd-1" && !strings.Contains(p.text(), "188.00")
			})
			if n := eval[int](p, "window.answered"); n != 1 {
				t.Errorf("the page asked %d times for what is archived", n)
			}
			s.order(1, "AAPL", "Sell", 50, 190, "third") // the stream goes on
			p.says("own 50")
			p.set("?account=1&security=MSFT")
			p.says("Book of MSFT\nlive\n")
			p.eventually("the note goes", func() bool { return !strings.Contains(p.text(), note) })
			p.clean(s)
		})
	}
}

// TestAConnectionThatOnlyEndsIsAFailure: the page waits longer after each one in a row.
func TestAConnectionThatOnlyEndsIsAFailure(t *testing.T) {
	s := start(t)
	p := open(t)
	p.signIn(s)
	eval[bool](p, `(async () => {
		const { Feed } = await import('/assets/live.js'), ask = window.fetch;
		window.fetch = async (url, how) => (!String(url).includes('/feed?') ? ask(url, how)
			: new Response('event: gone\ndata: {"reason":"FAILED"}\n\n'));
		window.feed = new Feed('trades', {}, () => {});
		return true;
	})()`)
	p.eventually("three failures in a row", func() bool {
		return read[int](p, "window.feed.failures") >= 3
	})
}

// TestNoOrderIsSaidToBeMissingBeforeTheListHasCome: the account's working orders are being read.
func TestNoOrderIsSaidToBeMissingBeforeTheListHasCome(t *testing.T) {
	s := start(t)
	s.price("AAPL", 187.20)
	s.order(1, "AAPL", "Sell", 30, 188, "rests")
	p := open(t)
	p.signIn(s)
	p.follow("Trade")
	release := p.hold("/orders?", request)
	p.set("?account=1")
	p.says("Reading working orders")
	p.set("?account=2")
	p.says("Working orders of account 2", "Reading working orders")
	release()
	p.says("No working orders of this account.")
	p.clean(s)
}
