package browser

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/dom"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// choose puts a file, or a folder, into a file input of the page.
func (p *page) choose(selector, file string) {
	p.t.Helper()
	document, err := chromedp.Call(p.ctx, dom.GetDocument, dom.GetDocumentParams{})
	if err != nil {
		p.t.Fatal(err)
	}
	input, err := chromedp.Call(p.ctx, dom.QuerySelector, dom.QuerySelectorParams{
		NodeID: document.Root.NodeID, Selector: selector})
	if err != nil {
		p.t.Fatal(err)
	}
	if err := call(p, dom.SetFileInputFiles, dom.SetFileInputFilesParams{Files: []string{file},
		NodeID: input.NodeID}); err != nil {
		p.t.Fatal(err)
	}
}

// The file inputs of the page Evidence.
const (
	proofInput  = "#proof-file"
	folderInput = "#export-folder"
)

// openFolder shows the file input of a folder.
func (p *page) openFolder() {
	p.t.Helper()
	p.tabTo("button", "Verify an export…")
	p.press(kb.Enter)
	p.says("export folder")
}

// posttrade runs the program and returns what it prints.
func (s *server) posttrade(args ...string) string {
	s.t.Helper()
	text, err := exec.Command(program(s.t), args...).CombinedOutput()
	if err != nil {
		s.t.Fatalf("%v: %v %s", args, err, text)
	}
	return strings.TrimSpace(string(text))
}

// exported is an export of a server's whole history, with a report, the proof of a trade and the
// key of its log.
type exported struct{ folder, report, proof, key string }

// logged waits until the newest signed head of the log has everything that is durable now.
func (s *server) logged() {
	s.t.Helper()
	durable := s.call("GET", "order-matcher", "/health", nil)["durable"].(float64)
	eventually(s.t, "the log has what is durable", func() bool {
		_, head, _ := strings.Cut(string(s.document("/log/checkpoint")), "\nhead ")
		head, _, _ = strings.Cut(head, " ")
		sequence, err := strconv.ParseFloat(head, 64)
		return err == nil && sequence >= durable
	})
}

func (s *server) export() (x exported) {
	s.t.Helper()
	data := "--data.dir=" + filepath.Join(s.dir, "data")
	x.key = s.posttrade("evidence", "key", data)
	s.logged()
	x.folder = filepath.Join(s.dir, "export")
	s.posttrade("evidence", "export", "--from=1", data, x.folder)
	x.report = s.write("report.json", s.document("/regulatory/report?fromSeq=600&toSeq=620"))
	x.proof = s.write("proof.json", s.document("/evidence/proof?tradeId=trd-1"))
	return x
}

// write writes a file beside the server's.
func (s *server) write(name string, text []byte) string {
	s.t.Helper()
	at := filepath.Join(s.dir, name)
	if err := os.WriteFile(at, text, 0o600); err != nil {
		s.t.Fatal(err)
	}
	return at
}

// flipped is a copy of an export, or of its report, with one bit changed in the middle of a file.
func (x *exported) flipped(t *testing.T, file string) (at string) {
	t.Helper()
	at = filepath.Join(filepath.Dir(x.folder), "changed-"+filepath.Base(file))
	text, err := os.ReadFile(file)
	if inside := filepath.Dir(file) == x.folder; err == nil && inside {
		at = x.folder + "-changed"
		if err = os.CopyFS(at, os.DirFS(x.folder)); err == nil {
			file = filepath.Join(at, filepath.Base(file))
		}
	} else {
		file = at
	}
	if err != nil {
		t.Fatal(err)
	}
	text[len(text)/2] ^= 1
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return at
}

// verdict is what the command line says about the same export, and how it ends.
func (x *exported) verdict(t *testing.T, args ...string) (exit int, said string) {
	t.Helper()
	c := exec.Command(program(t), append([]string{"evidence", "verify", "--key=" + x.key}, args...)...)
	c.Dir = filepath.Dir(x.folder) // the page knows names, not paths
	text, err := c.CombinedOutput()
	if err != nil && c.ProcessState.ExitCode() < 0 {
		t.Fatal(err)
	}
	said = string(bytes.TrimSpace(text))
	if at := strings.Index(said, "not proven"); at > 0 {
		said = said[at:] // behind the name of the program
	}
	return c.ProcessState.ExitCode(), said
}

// TestAnExportAndAReportAreVerifiedWithTheNetworkOff: the page says what the command line says, of
// an export, of a report against it, and of both with a bit changed.
func TestAnExportAndAReportAreVerifiedWithTheNetworkOff(t *testing.T) {
	s := start(t)
	s.fill()
	x := s.export()
	p := open(t)
	p.signIn(s)
	p.follow("Evidence")
	p.says("origin", "signatures")
	p.says("works without a network")
	s.kill()
	p.says("disconnected")
	p.typeIn("Key", x.key)
	p.choose(proofInput, x.report)
	p.says("choose the folder of the export too")
	said := func(exit int, args ...string) {
		t.Helper()
		code, want := x.verdict(t, args...)
		if code != exit {
			t.Fatalf("the command line says %d: %s", code, want)
		}
		p.eventually("the page says "+want, func() bool {
			return strings.Contains(strings.Join(strings.Fields(eval[string](p,
				"document.querySelector('main').innerText")), " "),
				strings.Join(strings.Fields(want), " "))
		})
	}
	p.openFolder()
	p.choose(folderInput, x.folder)
	p.says("export: proven", "report.json: proven")
	said(0, "export")
	said(0, "--report=report.json", "export")
	p.picture("evidence-export-light-1280")
	p.accessible("evidence-export")

	p.choose(proofInput, x.flipped(t, x.report))
	p.says("export: proven", "changed-report.json: not proven")
	said(3, "--report=changed-report.json", "export")

	p.choose(folderInput, x.flipped(t, filepath.Join(x.folder, "records.zst")))
	p.says("export-changed: not proven")
	said(3, "export-changed")
}

// kindFirst is a proof that begins as a record of a report does, without its member check.
func kindFirst(t *testing.T, file string) []byte {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	const kind = `"kind":"fill",`
	members, _, found := strings.Cut(strings.TrimPrefix(string(text), "{"), `,"check":`)
	if !found || !strings.Contains(members, kind) {
		t.Fatalf("no such proof: %s", text)
	}
	return []byte("{" + kind + strings.Replace(members, kind, "", 1) + "}\n")
}

// TestThePageOfTheVerifierWorksFromAFile: the same, in the page that needs no server at all.
func TestThePageOfTheVerifierWorksFromAFile(t *testing.T) {
	s := start(t)
	s.fill()
	x := s.export()
	at := s.write("verifier.html", []byte(s.posttrade("evidence", "page")))
	s.kill()
	p := open(t)
	p.do(chromedp.Navigate("file://" + at))
	begin := func() {
		t.Helper()
		p.tabTo("button", "Check")
		p.press(kb.Enter)
	}
	ends := func(exit string, words ...string) {
		t.Helper()
		p.eventually("the page says "+strings.Join(words, ", "), func() bool {
			text := eval[string](p, "result.innerText")
			for _, word := range words {
				if !strings.Contains(text, word) {
					return false
				}
			}
			return eval[string](p, "result.dataset.exit") == exit
		})
	}
	check := func(exit string, words ...string) {
		t.Helper()
		begin()
		ends(exit, words...)
	}
	p.says("give a proof")
	p.typeIn("Public key of the log; several are possible", x.key)
	p.choose("#file", x.proof)
	check("0", "proven", "trd-1")
	p.choose("#file", x.flipped(t, x.proof))
	check("3", "not proven")
	p.choose("#file", s.write("kind-first.json", kindFirst(t, x.proof)))
	check("0", "proven", "trd-1")
	p.choose("#file", x.report)
	check("1", "choose its folder too")
	s.write(filepath.Join("export", "more.csv"), nil)
	p.choose("#folder", x.folder)
	check("0", "every decision and fill", "proven report.json: every byte",
		`nothing is proven of "more.csv": it is no part of the export`)
	p.typeIn("Proof, as text", "{}") // it is judged beside the export
	check("1", "every decision and fill", "it is not a proof")
	p.typeIn("Proof, as text", " ")
	p.choose("#file", x.flipped(t, x.report))
	check("3", "not proven: changed-report.json: byte ")
	p.choose("#folder", x.flipped(t, filepath.Join(x.folder, "checkpoint")))
	check("3", "not proven: export-changed: ")

	// The button waits for a file that is still being read.
	eval[bool](p, `(() => {
		const text = Blob.prototype.text, gate = new Promise((open) => { window.openGate = open; });
		Blob.prototype.text = async function () { await gate; return text.call(this); };
		return true;
	})()`)
	p.choose("#file", x.proof)
	begin()
	ends("", "Verifying.")
	eval[bool](p, "openGate() === undefined")
	ends("0", "proven", "trd-1")

	// A file that cannot be read leaves no earlier one to be checked.
	eval[bool](p, "(Blob.prototype.text = () => Promise.reject(new Error('gone'))) !== null")
	p.choose("#file", x.flipped(t, x.proof))
	ends("1", "The file cannot be read: gone")
	check("1", "there is no proof in it")
}

// TestALargeExportLeavesThePageFree: while an export is verified the page shows how far it is, and
// Stop ends it; the next file is verified, all with the network off.
func TestALargeExportLeavesThePageFree(t *testing.T) {
	s := start(t, "--sidecars.enabled=false", "--risk.price.max-age-ms=3600000",
		"--risk.max-order-notional=100000000000")
	s.manyFills(40_000)
	x := s.export()
	p := open(t)
	p.signIn(s)
	p.follow("Evidence")
	p.says("works without a network")
	s.kill()
	p.typeIn("Key", x.key)
	eval[bool](p, `(() => {
		window.far = []; window.stop = true;
		new MutationObserver(() => {
			const far = document.querySelector('progress')?.parentElement;
			if (!far) return;
			window.far.push(far.innerText);
			if (window.stop) { window.stop = false; far.querySelector('button').click(); }
		}).observe(document.querySelector('main'), {subtree: true, childList: true});
		return true;
	})()`)
	p.openFolder()
	p.choose(folderInput, x.folder)
	p.says("stopped. choose a file")
	p.choose(proofInput, x.proof)
	p.says("export: proven", "proof.json: proven")
	if far := eval[string](p, "window.far[0]"); !strings.Contains(far, "of 40,") ||
		!strings.Contains(far, "commands") {
		t.Errorf("the page says %q of how far it is", far)
	}
}

// TestTheVerifierComesBackFromACrash: a browser does not have the memory for the engine of this
// export. The page says so, and verifies the next file, with the network off.
func TestTheVerifierComesBackFromACrash(t *testing.T) {
	s := start(t, "--risk.max-open-orders=3145728")
	s.fill()
	x := s.export()
	page := s.write("verifier.html", []byte(s.posttrade("evidence", "page")))
	p := open(t)
	p.signIn(s)
	p.follow("Evidence")
	p.says("works without a network")
	s.kill()
	p.typeIn("Key", x.key)
	p.openFolder()
	p.choose(folderInput, x.folder)
	p.says("the verifier has ended: there is not enough memory")
	p.choose(proofInput, x.proof)
	p.says("proof.json: proven")

	p.do(chromedp.Navigate("file://" + page))
	p.says("give a proof")
	p.typeIn("Public key of the log; several are possible", x.key)
	p.choose("#folder", x.folder)
	p.tabTo("button", "Check")
	p.press(kb.Enter)
	p.says("the verifier has ended: there is not enough memory")
	p.choose("#file", x.proof) // takes the place of the folder
	p.tabTo("button", "Check")
	p.press(kb.Enter)
	p.says("trd-1")
}

// TestAFileBeyondTheLimitIsRefusedInWords: before a byte of it is read; the next file is verified.
func TestAFileBeyondTheLimitIsRefusedInWords(t *testing.T) {
	s := start(t)
	s.fill()
	x := s.export()
	large := s.write("large.json", []byte("{"))
	inside := filepath.Join(x.folder, "records.zst")
	records, err := os.ReadFile(inside)
	if err == nil {
		err = os.Truncate(large, 512<<20+1) // a hole: it needs no room
	}
	if err == nil {
		err = os.Truncate(inside, 600<<20)
	}
	if err != nil {
		t.Fatal(err)
	}
	const said = " MiB. A browser verifies files of up to 512 MiB: use posttrade evidence verify."
	p := open(t)
	p.signIn(s)
	p.follow("Evidence")
	p.says("works without a network")
	p.typeIn("Key", x.key)
	p.choose(proofInput, large)
	p.says("large.json: not proven", "large.json has 513"+said)
	p.openFolder()
	p.choose(folderInput, x.folder)
	p.says("records.zst has 600" + said)
	whole := x.folder + "-whole" // a folder that is chosen again is no change
	if err = os.WriteFile(inside, records, 0o600); err == nil {
		err = os.Rename(x.folder, whole)
	}
	if err != nil {
		t.Fatal(err)
	}
	p.choose(folderInput, whole)
	p.choose(proofInput, x.proof)
	p.says("export-whole: proven", "proof.json: proven")
	p.clean(s)
}
