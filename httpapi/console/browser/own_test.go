package browser

import (
	"encoding/csv"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/chromedp/kb"
)

// projected waits until the projection has a trade.
func (s *server) projected(trade int) {
	s.t.Helper()
	eventually(s.t, fmt.Sprintf("the projection has trade %d", trade), func() bool {
		status, _ := s.try("GET", "trade-processor", fmt.Sprintf("/trades/trd-%d", trade), nil)
		return status == 200
	})
}

// TestAUserSeesEveryOwnFill: the newest first and live, the filters and the file over all of them,
// and none of another account. The page of costs begins with the newest too,
// that of settlement with what is due first.
func TestAUserSeesEveryOwnFill(t *testing.T) {
	s := start(t, "--profile=production", "--risk.entitlement.enforced=true",
		"--reference.write-auth.enforced=true", "--risk.price.max-age-ms=3600000",
		"--risk.max-order-notional=100000000000")
	const fills = 10_400
	s.manyFills(fills) // one of each pair is of account 1
	s.projected(fills)
	token := s.mint("--subject=ann", "--accounts=1", "--ttl=1h")
	p := open(t)
	p.goTo(s, "/blotter")
	p.typeIn("Token", token)
	p.press(kb.Enter)
	p.find("heading", "Blotter")
	shows := func(what string, row func(rows []string) string, seq int) {
		t.Helper()
		p.eventually(what, func() bool {
			rows := strings.Fields(p.rows())
			if len(rows) == 0 {
				return false
			}
			got := row(rows)
			return got == fmt.Sprintf("trd-%d", seq) || got == fmt.Sprintf("trd-%d", seq-1)
		})
	}
	first := func(rows []string) string { return rows[0] }
	last := func(rows []string) string { return rows[len(rows)-1] }
	shows("the newest fill is first", first, fills)
	s.manyFills(2)
	shows("a new fill comes by itself", first, fills+2)

	p.tabTo("region", "Blotter")
	p.eventually("the end of the list is the oldest fill", func() bool {
		p.press(kb.End)
		rows := strings.Fields(p.rows())
		return len(rows) > 0 && (last(rows) == "trd-1" || last(rows) == "trd-2")
	})
	p.says("5,201 fills")
	p.set("?id=ord-1") // the oldest order is of account 1
	p.says("1 fill")
	shows("a filter finds the oldest fill", last, 2)
	p.set("?id=" + p.rows())
	p.says("1 fill")
	p.set("?id=ord-2") // of account 2
	p.says("No fill of your accounts.")
	p.set("?side=Buy")
	p.eventually("the side is that of the filter", func() bool {
		sides := read[string](p, `[...new Set([...document.querySelectorAll('main tbody tr')].
			map((r) => r.cells[4].innerText))].join()`)
		return sides == "Buy"
	})
	p.set("")
	shows("all show again", first, fills+2)

	eval[bool](p, `(() => {
		window.files = [];
		URL.createObjectURL = (blob) => { blob.text().then((t) => window.files.push(t)); return '#'; };
		return true;
	})()`)
	p.tabTo("button", "CSV")
	p.press(kb.Enter)
	p.eventually("the file is made", func() bool { return read[int](p, "window.files.length") == 1 })
	lines, err := csv.NewReader(strings.NewReader(eval[string](p, "window.files[0]"))).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	if len(lines) != 1+(fills+2)/2 {
		t.Errorf("%d lines, want %d and the header", len(lines), (fills+2)/2)
	}
	for i, line := range lines[1:] {
		for n, value := range line {
			if value == "" {
				t.Fatalf("line %d has no %s", i+1, lines[0][n])
			}
		}
		if pair := fills + 2 - 2*i; line[0] != fmt.Sprintf("trd-%d", pair) &&
			line[0] != fmt.Sprintf("trd-%d", pair-1) || line[3] != "1" {
			t.Fatalf("line %d is %v", i+1, line)
		}
	}
	if status := eval[string](p, `(async () => (await fetch('/api/trade-processor/trades?order=newest`+
		`&accountId=2', {headers: {'X-Console-Status': 'header'}})).headers.get('X-Console-Status'))()`,
	); status != "403" {
		t.Errorf("the trades of another account: %s", status)
	}

	for name, list := range map[string]struct {
		cut   string
		first int // or the one before it, of the other account
	}{"TCA": {"the newest 1,000", fills + 2}, "Settlement": {"the first 1,000", 2}} {
		p.follow(name)
		p.says(list.cut)
		p.eventually("the list of "+name+" begins as it says", func() bool {
			got := p.column("Trades", 0)
			return strings.HasPrefix(got, fmt.Sprintf("trd-%d ", list.first)) ||
				strings.HasPrefix(got, fmt.Sprintf("trd-%d ", list.first-1))
		})
	}
	p.clean(s)
}

// TestEveryContractShows: the newest is first, however many there are.
func TestEveryContractShows(t *testing.T) {
	s := start(t)
	const contracts = 5_002
	book := func() {
		if status, answer := s.try("POST", "order-matcher", "/swaps", map[string]any{"accountId": 1,
			"payReceive": "Pay", "notional": 1000000, "fixedRate": 0.0325,
			"effectiveDate": "2026-11-25", "maturityDate": "2031-11-25",
			"conventions": "USD-SOFR-1Y-ACT360"}); status != 200 {
			t.Errorf("%d %v", status, answer)
		}
	}
	s.admin()
	var all sync.WaitGroup
	for range 16 {
		all.Go(func() {
			for range contracts / 16 {
				book()
			}
		})
	}
	all.Wait()
	for range contracts % 16 {
		book()
	}
	p := open(t)
	p.signIn(s)
	p.follow("Contracts")
	newest := func(contracts int) {
		t.Helper()
		head := s.call("GET", "order-matcher", "/health", nil)["durable"]
		p.says(fmt.Sprintf("5,%03d contracts", contracts-5000))
		p.eventually("the newest contract is first", func() bool {
			return strings.HasPrefix(p.column("Contracts", 0), "SW-"+number(head)+" ")
		})
	}
	newest(contracts)
	book()
	newest(contracts + 1)
	p.clean(s)
}
