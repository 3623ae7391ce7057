package browser

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/chromedp/chromedp/kb"
)

// edit changes the database by hand, as an operator might.
func (s *server) edit(statement string) {
	s.t.Helper()
	text, err := exec.Command("sqlite3", "-cmd", ".timeout 10000",
		filepath.Join(s.dir, "data", "posttrade.db"), statement).CombinedOutput()
	if err != nil {
		s.t.Fatalf("sqlite3: %v %s", err, text)
	}
}

// TestABreakIsFoundAndRepaired: a row is edited by hand. The page shows the break with both
// records, marks what differs, shows the journal's bytes, and repairs it. By keyboard alone.
func TestABreakIsFoundAndRepaired(t *testing.T) {
	s := start(t)
	s.fill()
	s.edit("UPDATE trades SET quantity = 41 WHERE id = 'trd-2'")
	s.edit("UPDATE trades SET quantity = 42 WHERE id = 'trd-4'")
	p := open(t)
	p.signIn(s)
	p.follow("Reconciliation")
	p.tabTo("button", "Sweep")
	p.press(kb.Enter)
	p.tabTo("textbox", "Reason")
	p.press("looking for breaks")
	p.press(kb.Enter)
	p.says("swept:", "field mismatch", "trd-2")
	p.eventually("both breaks show", func() bool {
		return p.column("Breaks", 0) == "trd-2 trd-4"
	})
	p.tabTo("row", "")
	p.press(kb.Enter)
	p.find("dialog", "trd-2: field mismatch")
	p.find("table", "Journal")
	p.find("table", "Projection")
	for side, want := range map[string]string{"Journal": "100", "Projection": "41"} {
		p.eventually("what differs is marked: "+side, func() bool {
			return eval[string](p, `[...document.querySelectorAll('dialog table[aria-label=`+side+
				`] mark')].map((m) => m.innerText).join()`) == want
		})
	}
	p.eventually("the journal's bytes are shown in hex", func() bool {
		shown := eval[string](p, "document.querySelector('dialog .hex')?.innerText || ''")
		return shown != "" && shown == s.record("trd-2")
	})
	p.picture("reconciliation-break-light-1280")
	p.accessible("reconciliation-break")
	p.tabTo("button", "Repair")
	p.press(kb.Enter)
	p.tabTo("textbox", "Reason")
	p.press("edited by hand")
	p.tabTo("button", "Confirm")
	p.press(kb.Enter)
	p.says("trd-2 repaired")
	p.eventually("the other break is left", func() bool { return p.column("Breaks", 0) == "trd-4" })
	for id, want := range map[string]float64{"trd-2": 100, "trd-4": 42} {
		if trade := s.call("GET", "trade-processor", "/trades/"+id, nil); trade["quantity"] != want {
			t.Errorf("the row of %s is %v", id, trade)
		}
	}
	if acts := string(s.document("/audit")); !strings.Contains(acts, "edited by hand") {
		t.Errorf("the repair's reason is not on record: %s", acts)
	}
	p.clean(s)
}

// record is the journal's record of a trade as the page writes it: sixteen bytes a line, in hex.
func (s *server) record(trade string) string {
	s.t.Helper()
	var proof struct{ Record []byte }
	if err := json.Unmarshal(s.document("/evidence/proof?tradeId="+trade), &proof); err != nil {
		return "" // not in the log yet
	}
	var lines []string
	for at := 0; at < len(proof.Record); at += 16 {
		lines = append(lines, fmt.Sprintf("%04x  % x", at,
			proof.Record[at:min(at+16, len(proof.Record))]))
	}
	return strings.Join(lines, "\n")
}

// breakRow waits until the page of breaks has a row.
func (p *page) breakRow() {
	p.t.Helper()
	p.eventually("the break's row is there", func() bool {
		return eval[bool](p, "!!document.querySelector('tr.opens')")
	})
}

// TestARowKeepsTheFocus: a row that is taken out and comes again, while a key is about to be
// pressed, opens by that key.
func TestARowKeepsTheFocus(t *testing.T) {
	s := start(t, "--recon.verify.interval-ms=200")
	s.fill()
	s.edit("UPDATE trades SET quantity = 41 WHERE id = 'trd-2'")
	p := open(t)
	p.signIn(s)
	p.follow("Reconciliation")
	p.breakRow()
	p.tabTo("row", "")
	s.edit("UPDATE trades SET quantity = 100 WHERE id = 'trd-2'")
	p.says("no break")
	s.edit("UPDATE trades SET quantity = 42 WHERE id = 'trd-2'")
	p.eventually("the row that came again has the focus", func() bool {
		role, _ := p.focused()
		return role == "row"
	})
	p.press(kb.Enter)
	p.find("dialog", "trd-2: field mismatch")
	p.clean(s)
}

// TestTimeIsDraggedBackToBeforeAFill: the slider goes by keyboard to the sequence before a fill,
// and the book is what it was.
func TestTimeIsDraggedBackToBeforeAFill(t *testing.T) {
	s := start(t)
	s.price("AAPL", 187.20)
	s.order(1, "AAPL", "Sell", 100, 187.25, "rests")
	taken := s.order(2, "AAPL", "Buy", 100, 187.25, "takes")
	p := open(t)
	p.signIn(s)
	p.follow("Time")
	p.typeIn("Security", "AAPL")
	slider := p.find("slider", "Sequence")
	for _, property := range slider.Properties {
		if property.Name == "valuemax" && text(property.Value) != "" &&
			strings.TrimSpace(text(property.Value)) != strings.TrimSpace(number(taken["sequence"])) {
			t.Errorf("the slider's maximum is %s, want the head %s", text(property.Value),
				number(taken["sequence"]))
		}
	}
	was := func(when, book, position, working string) {
		t.Helper()
		p.eventually(when, func() bool {
			return p.column("Book", 1) == book && p.column("Positions", 2) == position &&
				p.column("Working orders", 0) == working
		})
	}
	p.says("the book was empty")
	was("at the head", "", "-100 100", "")
	p.tabTo("slider", "Sequence")
	p.press(kb.ArrowLeft)
	p.says("at sequence "+grouped(taken["sequence"].(float64)-1), "accept")
	was("before the fill", "187.25", "", "ord-1")
	p.tabTo("button", "Step forward")
	p.press(kb.Enter)
	p.says("the book was empty", "trd-1")
	was("behind the fill", "", "-100 100", "")
	p.tabTo("button", "Step back")
	p.press(kb.Enter)
	was("before the fill again", "187.25", "", "ord-1")
	p.tabTo("button", "Why")
	p.press(kb.Enter)
	p.find("dialog", "Why: ord-1")
	p.press(kb.Escape)
	p.clean(s)
}

// TestAnAddressThatNamesNothingSaysSo: a position that the history does not have, and a trade that
// does not exist.
func TestAnAddressThatNamesNothingSaysSo(t *testing.T) {
	s := start(t)
	head := s.fill()
	p := open(t)
	p.signIn(s)
	for _, at := range []string{"99999999", "abc", "0", "1.5", "-1"} {
		p.goTo(s, "/time?at="+at)
		p.says(fmt.Sprintf("There is no sequence “%s”", at), fmt.Sprintf("At sequence %d", head))
	}
	p.tabTo("button", "Step back")
	p.press(kb.Enter)
	p.says(fmt.Sprintf("At sequence %d", head-1))
	p.eventually("the error goes with the address", func() bool {
		return !strings.Contains(p.text(), "There is no sequence") && eval[string](p,
			"location.search") == fmt.Sprintf("?at=%d", head-1)
	})
	p.goTo(s, "/blotter?open=trd-999999999")
	p.says("There is no trade trd-999999999")
	p.goTo(s, "/blotter?open=trd-1")
	p.says("Settlement date")
	p.clean(s)
}

// TestEveryMetricOfThePagesExists: a page asks for no metric that no code has.
func TestEveryMetricOfThePagesExists(t *testing.T) {
	names := regexp.MustCompile(`svc_[a-z0-9_]+[a-z0-9]`)
	code := map[string]bool{}
	asked := map[string]string{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || strings.HasSuffix(path, "_test.go") {
			return err
		}
		page := filepath.Ext(path) == ".js" && strings.Contains(path, "console/assets/")
		if !page && filepath.Ext(path) != ".go" {
			return nil
		}
		text, err := os.ReadFile(path)
		for _, name := range names.FindAllString(string(text), -1) {
			if page {
				asked[name] = path
			} else {
				code[name] = true
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for name, path := range asked {
		if !code[name] {
			t.Errorf("%s asks for %s, which is not in the code", path, name)
		}
	}
	if len(asked) == 0 {
		t.Error("no page asks for a metric")
	}
}

// TestATileIsThePercentileOfItsAlert: what histogram_quantile makes of the same buckets. A sample
// is two minutes after the one before; the window has five.
func TestATileIsThePercentileOfItsAlert(t *testing.T) {
	s := start(t)
	p := open(t)
	p.signIn(s)
	for name, tt := range map[string]struct{ counts, want string }{
		"inside a bucket": {"[[0,0,0,0],[90,90,100,100]]", "[null,9.1]"},
		"in the first":    {"[[0,0,0,0],[100,100,100,100]]", "[null,0.099]"},
		"above the last":  {"[[0,0,0,0],[50,50,50,100]]", "[null,10]"},
		"nothing came":    {"[[7,7,7,7],[7,7,7,7]]", "[null,null]"},
		"what is older": {"[[0,0,0,0],[0,0,100,100],[0,0,100,100],[0,0,100,100],[100,100,200,200]]",
			"[null,9.91,9.91,null,0.099]"},
		"a new process": {"[[0,0,99,99],[0,0,0,0],[100,100,100,100]]", "[null,null,0.099]"},
	} {
		got := eval[string](p, `import('/assets/history.js').then(({ p99s }) => JSON.stringify(p99s(`+
			tt.counts+`.map((counts, i) => ({ at: i * 120000, metrics: Object.fromEntries(
				['0.1', '1', '10', '+Inf'].map((le, b) => ['svc_x_bucket{stage="http",le="' + le + '"}',
					counts[b]])) })), 'svc_x', 'stage="http"').map((n) => n && Number(n.toFixed(6)))))`)
		if got != tt.want {
			t.Errorf("%s: %s, want %s", name, got, tt.want)
		}
	}
	s.fill()
	p.eventually("both tiles have their percentile", func() bool {
		return strings.Count(p.text(), "p99 of 5 min") == 2
	})
	p.clean(s)
}

// TestAProofIsVerifiedWithTheNetworkOff: the file is verified in the browser; a file with one
// changed character is not proven.
func TestAProofIsVerifiedWithTheNetworkOff(t *testing.T) {
	s := start(t)
	s.fill()
	data := filepath.Join(s.dir, "data")
	key, err := exec.Command(program(t), "evidence", "key", "--data.dir="+data).Output()
	if err != nil {
		t.Fatal(err)
	}
	var proof []byte
	eventually(t, "the log has the trade", func() bool {
		proof = s.document("/evidence/proof?tradeId=trd-1")
		return len(proof) > 0
	})
	good, bad := filepath.Join(s.dir, "good.json"), filepath.Join(s.dir, "bad.json")
	changed := strings.Replace(string(proof), `"inputSeq":`, `"inputSeq":1`, 1)
	for name, text := range map[string]string{good: string(proof), bad: changed} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	p := open(t)
	p.signIn(s)
	p.follow("Evidence")
	p.says("origin", "signatures")
	p.says("works without a network")
	s.kill() // no network is left: the server was its only other end
	p.says("disconnected")
	p.typeIn("Key", strings.TrimSpace(string(key)))
	p.choose(proofInput, good)
	p.says("good.json: proven", "trd-1")
	p.picture("evidence-proven-light-1280")
	p.accessible("evidence-proven")
	p.choose(proofInput, bad)
	p.says("bad.json: not proven")
}

// TestOnlyWhatTheJournalHasIsRepaired: the rows of orphans and of bookings from outside are for an
// operator to judge. The page offers no repair of them, which the server would refuse.
func TestOnlyWhatTheJournalHasIsRepaired(t *testing.T) {
	s := start(t)
	s.fill()
	s.edit("UPDATE trades SET quantity = 41 WHERE id = 'trd-2'")
	for seq, id := range map[int]string{99: "trd-99", 98: "void-1-trd-98"} {
		s.edit(fmt.Sprintf("CREATE TEMP TABLE one AS SELECT * FROM trades WHERE id = 'trd-1'; "+
			"UPDATE one SET id = '%s', trade_seq = %d; INSERT INTO trades SELECT * FROM one", id, seq))
	}
	s.call("POST", "trade-processor", "/recon/statement", []any{map[string]any{"id": "ext-1",
		"accountId": 1, "security": "AAPL", "side": "Buy", "quantity": 1, "price": 187,
		"timestamp": "2026-11-20T10:00:00Z"}})
	p := open(t)
	p.signIn(s)
	s.call("POST", "trade-processor", "/recon/orphan-sweep", nil)
	p.goTo(s, "/reconciliation")
	p.eventually("all breaks show", func() bool {
		return p.column("Breaks", 0) == "trd-2 trd-99 void-1-trd-98 ext-1"
	})
	for _, n := range p.nodes("button", "") {
		if name := text(n.Name); strings.HasPrefix(name, "Repair") && name != "Repair trd-2" {
			t.Errorf("the page offers: %s", name)
		}
	}
	for _, id := range []string{"trd-99", "void-1-trd-98", "ext-1", "trd-2"} {
		p.goTo(s, "/reconciliation?open="+id)
		p.eventually("the break is open", func() bool { return len(p.nodes("dialog", "")) == 1 })
		if offered := len(p.nodes("button", "Repair")) > 0; offered != (id == "trd-2") {
			t.Errorf("%s: a repair is offered: %v", id, offered)
		}
	}
	p.clean(s, "404")
}
