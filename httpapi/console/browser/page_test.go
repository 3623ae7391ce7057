package browser

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/cdproto/accessibility"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/dom"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	cdplog "github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// page is a browser with one tab.
type page struct {
	t   *testing.T
	ctx context.Context

	mu       sync.Mutex
	hosts    map[string]bool // of every request
	problems []string        // errors of the console
}

// chromium is the browser of this machine.
func chromium(t *testing.T) string {
	t.Helper()
	for _, name := range []string{os.Getenv("CHROMIUM"), "chromium", "chromium-browser",
		"google-chrome"} {
		if path, err := exec.LookPath(name); err == nil && name != "" {
			return path
		}
	}
	t.Fatal("no chromium: the console's tests need a browser. Install Debian's package chromium, " +
		"or set CHROMIUM to the program")
	return ""
}

// starts is how often a browser is started that ends before it has shown anything: that is a fault
// of chromium or of the machine, and no page has been asked for.
const starts = 3

// open starts a browser with a fresh profile.
func open(t *testing.T) *page {
	t.Helper()
	var p *page
	for n := 1; p == nil; n++ {
		var err error
		if p, err = started(t); err != nil && n == starts {
			t.Fatal(err)
		} else if err != nil {
			t.Logf("start %d of a browser: %v", n, err)
		}
	}
	for _, enable := range []func() error{
		func() error { return call(p, network.Enable, network.EnableParams{}) },
		func() error { return call(p, cdplog.Enable, cdp.Empty{}) },
		func() error { return call(p, runtime.Enable, cdp.Empty{}) },
	} {
		if err := enable(); err != nil {
			t.Fatal(err)
		}
	}
	p.size(1280, 800)
	return p
}

// started starts a browser once. After an error there is no page.
func started(t *testing.T) (*page, error) {
	t.Helper()
	ctx, cancel := chromedp.NewExecAllocator(context.Background(),
		chromedp.ExecPath(chromium(t)), chromedp.Headless, chromedp.NoSandbox, chromedp.DisableGPU,
		chromedp.NoFirstRun, chromedp.Flag("disable-background-networking", true),
		chromedp.Flag("disable-component-update", true), chromedp.Flag("disable-sync", true),
		chromedp.WSURLReadTimeout(patience), chromedp.UserDataDir(t.TempDir()))
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	p := &page{t: t, ctx: ctx, hosts: map[string]bool{}}
	if err := chromedp.Listen(ctx, p.hear); err != nil { // it also starts the browser
		return nil, err
	}
	return p, nil
}

func call[P, R any](p *page, c cdp.Command[P, R], params P) error {
	_, err := chromedp.Call(p.ctx, c, params)
	return err
}

// hear notes the hosts that are asked and what goes wrong.
func (p *page) hear(event any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch e := event.(type) {
	case *network.EventRequestWillBeSent:
		if u, err := url.Parse(e.Request.URL); err == nil && u.Scheme != "about" && u.Scheme != "data" {
			p.hosts[u.Scheme+"://"+u.Host] = true
		}
	case *cdplog.EventEntryAdded:
		if e.Entry.Level == "error" {
			p.problems = append(p.problems, e.Entry.Text+" "+e.Entry.URL)
		}
	case *runtime.EventExceptionThrown:
		p.problems = append(p.problems, "exception: "+e.ExceptionDetails.Text)
	case *runtime.EventConsoleAPICalled:
		if e.Type == "error" {
			p.problems = append(p.problems, fmt.Sprintf("console.error: %v", e.Args))
		}
	}
}

// clean fails the test when the page has asked another host, or when the browser's console has an
// error that does not contain one of the allowed texts.
func (p *page) clean(s *server, allowed ...string) {
	p.t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	for host := range p.hosts {
		if host != "http://"+s.ports["console"] && !strings.HasPrefix(host, "blob:") {
			p.t.Errorf("a request left the origin: %s", host)
		}
	}
next:
	for _, text := range p.problems {
		for _, known := range allowed {
			if strings.Contains(text, known) {
				continue next
			}
		}
		p.t.Errorf("error in the browser's console: %s", text)
	}
}

// forget drops the errors so far: those of a server that was killed are no fault of the page.
func (p *page) forget() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.problems = nil
}

func (p *page) do(steps ...chromedp.Action[chromedp.Void]) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	if err := chromedp.Do(ctx, steps...); err != nil {
		p.t.Fatal(err)
	}
}

// eval runs JavaScript and returns its value.
func eval[T any](p *page, js string) T {
	p.t.Helper()
	v, err := evaluate[T](p, js)
	if err != nil {
		p.t.Fatalf("%s: %v", js, err)
	}
	return v
}

// read is eval of what is looked at again and again: nothing while the page is being replaced.
func read[T any](p *page, js string) (v T) {
	if v, err := evaluate[T](p, js); err == nil {
		return v
	}
	return v
}

func evaluate[T any](p *page, js string) (T, error) {
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	return chromedp.Run(ctx, chromedp.Evaluate[T](js, chromedp.EvalAwaitPromise))
}

func (p *page) size(width, height int64) { p.do(chromedp.EmulateViewport(width, height)) }

// scheme is light or dark.
func (p *page) scheme(name string) {
	p.t.Helper()
	if err := call(p, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: name}}}); err != nil {
		p.t.Fatal(err)
	}
}

// goTo opens an address of the console.
func (p *page) goTo(s *server, path string) {
	p.t.Helper()
	p.do(chromedp.Navigate(s.url(path)))
}

// follow opens a page by its link, with the keyboard.
func (p *page) follow(name string) {
	p.t.Helper()
	p.tabTo("link", name)
	p.press(kb.Enter)
	p.find("heading", name)
}

// signIn signs in by the one click, with the keyboard.
func (p *page) signIn(s *server) {
	p.t.Helper()
	p.goTo(s, "/")
	p.tabTo("button", "Sign in")
	p.press(kb.Enter)
	p.find("heading", "Overview")
}

// nodes are the elements with a role and an accessible name; an empty name is any.
func (p *page) nodes(role, name string) []*accessibility.Node {
	document, err := chromedp.Call(p.ctx, dom.GetDocument, dom.GetDocumentParams{})
	if err != nil {
		return nil // the page is being replaced
	}
	answer, err := chromedp.Call(p.ctx, accessibility.QueryAXTree, accessibility.QueryAXTreeParams{
		NodeID: document.Root.NodeID, Role: role})
	if err != nil {
		return nil
	}
	var found []*accessibility.Node
	for _, n := range answer.Nodes {
		if !n.Ignored && (name == "" || strings.EqualFold(text(n.Name), name)) {
			found = append(found, n)
		}
	}
	return found
}

func text(v *accessibility.Value) string {
	if v == nil {
		return ""
	}
	var s string
	if json.Unmarshal(v.Value, &s) != nil {
		return string(v.Value)
	}
	return s
}

// find waits for an element with a role and an accessible name.
func (p *page) find(role, name string) *accessibility.Node {
	p.t.Helper()
	var found []*accessibility.Node
	p.eventually(fmt.Sprintf("there is a %s %q", role, name), func() bool {
		found = p.nodes(role, name)
		return len(found) > 0
	})
	return found[0]
}

// eventually waits until holds does; a failure leaves a picture.
func (p *page) eventually(what string, holds func() bool) {
	p.t.Helper()
	if !comes(holds) {
		p.picture("failed-" + strings.ReplaceAll(p.t.Name(), "/", "-"))
		p.t.Fatalf("did not happen in %s: %s; the page says:\n%s", patience, what, p.text())
	}
}

// says waits until the content of the page contains a text.
func (p *page) says(parts ...string) {
	p.t.Helper()
	for _, part := range parts {
		p.eventually(fmt.Sprintf("the page says %q", part), func() bool {
			return strings.Contains(strings.ToLower(p.text()), strings.ToLower(part))
		})
	}
}

// focused is the element that has the focus.
func (p *page) focused() (role, name string) {
	object, err := chromedp.Call(p.ctx, runtime.Evaluate,
		runtime.EvaluateParams{Expression: "document.activeElement"})
	if err != nil || object.Result == nil || object.Result.ObjectID == "" {
		return "", ""
	}
	no := false
	tree, err := chromedp.Call(p.ctx, accessibility.GetPartialAXTree,
		accessibility.GetPartialAXTreeParams{ObjectID: object.Result.ObjectID, FetchRelatives: &no})
	if err != nil || len(tree.Nodes) == 0 {
		return "", ""
	}
	return text(tree.Nodes[0].Role), text(tree.Nodes[0].Name)
}

// tabTo presses Tab until the focus is on an element. An empty name is any.
func (p *page) tabTo(role, name string) {
	p.t.Helper()
	p.find(role, name)
	var seen []string
	for range 400 {
		r, n := p.focused()
		if r == role && (name == "" || strings.EqualFold(n, name)) {
			return
		}
		seen = append(seen, r+" "+n)
		p.press(kb.Tab)
	}
	p.picture("failed-" + strings.ReplaceAll(p.t.Name(), "/", "-"))
	p.t.Fatalf("the keyboard does not reach the %s %q, but: %s", role, name,
		strings.Join(seen[max(0, len(seen)-60):], ", "))
}

// press presses keys, each as a keyboard does: the character belongs to the key, and a page that
// has handled the key does not get it. Sent apart, it would go to what the key has opened.
func (p *page) press(keys string, o ...chromedp.KeyOption) {
	p.t.Helper()
	for _, r := range keys {
		events := kb.Encode(r)
		if len(events) == 3 {
			down, char := events[0], events[1]
			down.Text, down.UnmodifiedText = char.Text, char.UnmodifiedText
			events = []*input.DispatchKeyEventParams{down, events[2]}
		}
		for _, k := range events {
			for _, option := range o {
				option(k)
			}
			if k.Modifiers&^int64(chromedp.ModifierShift) != 0 {
				k.Text, k.UnmodifiedText = "", ""
			}
			if err := call(p, input.DispatchKeyEvent, *k); err != nil {
				p.t.Fatal(err)
			}
		}
	}
}

// typeIn replaces the content of a field, by keyboard.
func (p *page) typeIn(name, value string) {
	p.t.Helper()
	role := "textbox"
	p.eventually("there is a field "+name, func() bool {
		for _, r := range []string{"textbox", "combobox", "searchbox", "spinbutton"} {
			if len(p.nodes(r, name)) > 0 {
				role = r
				return true
			}
		}
		return false
	})
	p.tabTo(role, name)
	p.press("a", chromedp.KeyModifiers(chromedp.ModifierCtrl))
	p.press(value)
}

// pictures is where screenshots are kept.
const pictures = root + "/bin/console"

// picture keeps a screenshot.
func (p *page) picture(name string) {
	p.t.Helper()
	if err := os.MkdirAll(pictures, 0o755); err != nil {
		p.t.Fatal(err)
	}
	png, err := chromedp.Run(p.ctx, chromedp.CaptureScreenshot())
	if err == nil {
		err = os.WriteFile(filepath.Join(pictures, name+".png"), png, 0o644)
	}
	if err != nil {
		p.t.Error(err)
	}
}
