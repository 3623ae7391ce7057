package console

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"posttrade/matcher/gate"
	"posttrade/ring/must"
)

var secret = []byte("0123456789abcdef0123456789abcdef")

// rig is a console with one service, on a port of this machine.
type rig struct {
	t    *testing.T
	url  string
	host string
	got  chan *http.Request // what the service was asked
	next http.HandlerFunc   // how it answers
	end  func()             // ends the service
}

// httpService is a service over net/http, in the place of the real ones.
type httpService struct{ http.Server }

func newRig(t *testing.T, change func(*Options)) *rig {
	t.Helper()
	verifier := must.Get(gate.NewVerifier(secret, "", 0, time.Now))(t)
	o := Options{Verifier: verifier, About: map[string]string{"profile": "dev"},
		Mint: func(now time.Time) string {
			return gate.Mint(secret, gate.Claims{Subject: "console", Admin: true}, "", time.Hour, now)
		}}
	if change != nil {
		change(&o)
	}
	c := must.Get(New(o))(t)
	r := &rig{t: t, got: make(chan *http.Request, 64)}
	r.next = func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `{"ok":true}`) }
	service := &httpService{http.Server{Handler: http.HandlerFunc(
		func(w http.ResponseWriter, req *http.Request) {
			body, _ := io.ReadAll(req.Body)
			req.Body = io.NopCloser(strings.NewReader(string(body)))
			r.got <- req
			r.next(w, req)
		})}}
	r.end = func() { _ = service.Close() }
	c.Attach("order-matcher", service)
	c.Attach("admin", service)
	ln := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	ended := make(chan error, 1)
	go func() { ended <- c.Serve(ln) }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := c.Shutdown(ctx); err != nil {
			t.Error(err)
		}
		if err := <-ended; err != nil {
			t.Error(err)
		}
		_ = service.Close()
	})
	r.host = ln.Addr().String()
	r.url = "http://" + r.host
	return r
}

// ask sends a request; header is a list of names and values. Host and Path set what they name.
func (r *rig) ask(method, path, body string, header ...string) (*http.Response, string) {
	r.t.Helper()
	req := must.Get(http.NewRequest(method, r.url+path, strings.NewReader(body)))(r.t)
	for i := 0; i < len(header); i += 2 {
		if header[i] == "Host" {
			req.Host = header[i+1]
			continue
		}
		req.Header.Add(header[i], header[i+1])
	}
	client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse
	}}
	a := must.Get(client.Do(req))(r.t)
	defer a.Body.Close()
	text := must.Get(io.ReadAll(a.Body))(r.t)
	return a, string(text)
}

// signedIn returns the headers of a page with a session.
func (r *rig) signedIn(token string) []string {
	r.t.Helper()
	body, _ := json.Marshal(map[string]string{"token": token})
	a, text := r.ask("POST", "/api/session", string(body), "Origin", r.url,
		"Content-Type", "application/json")
	if a.StatusCode != 200 {
		r.t.Fatalf("sign in: %d %s", a.StatusCode, text)
	}
	var s session
	must.OK(r.t, json.Unmarshal([]byte(text), &s))
	c := a.Cookies()[0]
	return []string{"Origin", r.url, "Cookie", c.Name + "=" + c.Value, headerCSRF, s.CSRF,
		"Content-Type", "application/json"}
}

func without(headers []string, name string) (out []string) {
	for i := 0; i < len(headers); i += 2 {
		if headers[i] != name {
			out = append(out, headers[i], headers[i+1])
		}
	}
	return out
}

func TestOnlyKnownNamesAreAnswered(t *testing.T) {
	r := newRig(t, func(o *Options) {
		o.Names = func() []string { return []string{"desk.example", "*.wild.example"} }
	})
	_, port, _ := net.SplitHostPort(r.host)
	for host, want := range map[string]int{
		r.host: 200, "localhost:" + port: 200, "LOCALHOST": 200, "[::1]:" + port: 200,
		"desk.example": 200, "Desk.Example:443": 200, "a.wild.example": 200,
		"evil.example": 421, "evil.example:" + port: 421, "localhost.evil.example": 421,
		"127.0.0.1.evil.example": 421, "a.b.wild.example": 421, "wild.example": 421, ".wild.example": 421,
	} {
		if a, _ := r.ask("GET", "/overview", "", "Host", host); a.StatusCode != want {
			t.Errorf("Host %s: %d, want %d", host, a.StatusCode, want)
		}
		if a, _ := r.ask("POST", "/api/session", "{}", "Host", host, "Origin", "http://"+host,
			"Content-Type", "application/json"); want == 421 && a.StatusCode != 421 {
			t.Errorf("signing in as %s: %d, want 421", host, a.StatusCode)
		}
	}
}

func TestOneClickIsForABrowserOnThisMachine(t *testing.T) {
	r := newRig(t, func(o *Options) { o.Names = func() []string { return []string{"desk.example"} } })
	json := []string{"Content-Type", "application/json"}
	for name, tt := range map[string]struct {
		header []string
		want   int
	}{
		"own page":        {[]string{"Origin", r.url}, 200},
		"no origin":       {nil, 403},
		"another port":    {[]string{"Origin", "http://127.0.0.1:1"}, 403},
		"another host":    {[]string{"Origin", "http://evil.example"}, 403},
		"null origin":     {[]string{"Origin", "null"}, 403},
		"two origins":     {[]string{"Origin", r.url, "Origin", r.url}, 403},
		"cross site":      {[]string{"Origin", r.url, "Sec-Fetch-Site", "cross-site"}, 403},
		"same site only":  {[]string{"Origin", r.url, "Sec-Fetch-Site", "same-site"}, 403},
		"through a proxy": {[]string{"Origin", r.url, "X-Forwarded-For", "10.0.0.1"}, 403},
		"a public name":   {[]string{"Host", "desk.example", "Origin", "http://desk.example"}, 403},
		"no JSON":         {[]string{"Origin", r.url, "Content-Type", "text/plain"}, 415},
	} {
		header := tt.header
		if name != "no JSON" {
			header = append(header, json...)
		}
		if a, text := r.ask("POST", "/api/session", "{}", header...); a.StatusCode != tt.want {
			t.Errorf("%s: %d, want %d: %s", name, a.StatusCode, tt.want, text)
		}
	}
	pasted := newRig(t, func(o *Options) { o.Mint = nil })
	if a, _ := pasted.ask("POST", "/api/session", "{}", "Origin", pasted.url,
		"Content-Type", "application/json"); a.StatusCode != 403 {
		t.Errorf("in production one click signs in: %d", a.StatusCode)
	}
}

func TestASessionIsTheTokenInACookieThatNoScriptReads(t *testing.T) {
	r := newRig(t, func(o *Options) { o.Secure = true })
	token := gate.Mint(secret, gate.Claims{Subject: "ann", Accounts: []uint32{7}}, "", time.Hour,
		time.Now())
	headers := r.signedIn(token)
	a, text := r.ask("POST", "/api/session", `{"token":"`+token+`"}`, "Origin", r.url,
		"Content-Type", "application/json")
	c := a.Cookies()[0]
	if !c.HttpOnly || !c.Secure || c.SameSite != http.SameSiteStrictMode || c.Path != "/api" ||
		c.Domain != "" || c.MaxAge < 3500 || c.MaxAge > 3600 {
		t.Errorf("cookie %+v", c)
	}
	if strings.Contains(text, token) {
		t.Error("the token shows in the answer: a script could read it")
	}
	_, text = r.ask("GET", "/api/session", "", headers...)
	if !strings.Contains(text, `"subject":"ann"`) || !strings.Contains(text, `"accounts":[7]`) ||
		strings.Contains(text, `"admin":true`) {
		t.Error(text)
	}
	for name, body := range map[string]string{
		"of another secret": `{"token":"` + gate.Mint([]byte(strings.Repeat("x", 32)),
			gate.Claims{Subject: "eve", Admin: true}, "", time.Hour, time.Now()) + `"}`,
		"expired": `{"token":"` + gate.Mint(secret, gate.Claims{Subject: "ann"}, "", time.Minute,
			time.Now().Add(-time.Hour)) + `"}`,
		"no token": `{"token":"nonsense"}`,
	} {
		if a, _ := r.ask("POST", "/api/session", body, "Origin", r.url,
			"Content-Type", "application/json"); a.StatusCode != 401 || len(a.Cookies()) > 0 {
			t.Errorf("%s: %d", name, a.StatusCode)
		}
	}
	// Another page of the same site, which cannot know the value, does not sign the reader out.
	a, _ = r.ask("DELETE", "/api/session", "", without(headers, headerCSRF)...)
	if a.StatusCode != 403 || len(a.Cookies()) > 0 {
		t.Errorf("signed out without the value: %d, %v", a.StatusCode, a.Cookies())
	}
	a, _ = r.ask("DELETE", "/api/session", "", headers...)
	if c := a.Cookies()[0]; c.MaxAge >= 0 || c.Value != "" {
		t.Errorf("after signing out: %+v", c)
	}
}

func TestARequestIsMadeAnewForTheService(t *testing.T) {
	r := newRig(t, nil)
	token := gate.Mint(secret, gate.Claims{Subject: "ann", Admin: true}, "", time.Hour, time.Now())
	headers := append(r.signedIn(token), "Authorization", "Bearer forged",
		"X-Auth-Master-Secret", "guess", "X-Forwarded-For", "10.0.0.9", "X-Relayed", "1",
		"Connection", "X-Reason", "X-Reason", "end of day", "Last-Event-ID", "7.1",
		"X-Min-Sequence", "9")
	a, text := r.ask("POST", "/api/order-matcher/risk/control/policy?a=b%26c", `{"x":1}`, headers...)
	if a.StatusCode != 200 || text != `{"ok":true}` {
		t.Fatalf("%d %s", a.StatusCode, text)
	}
	got := <-r.got
	if got.URL.RequestURI() != "/risk/control/policy?a=b%26c" || got.Method != "POST" {
		t.Errorf("%s %s", got.Method, got.URL.RequestURI())
	}
	if body, _ := io.ReadAll(got.Body); string(body) != `{"x":1}` {
		t.Errorf("body %s", body)
	}
	want := map[string]string{"Authorization": "Bearer " + token, "Last-Event-Id": "7.1",
		"X-Min-Sequence": "9", "Content-Type": "application/json", "X-Auth-Master-Secret": "",
		"X-Forwarded-For": "", "X-Relayed": "", "Cookie": "", "Origin": "", headerCSRF: ""}
	for name, value := range want {
		if got.Header.Get(name) != value {
			t.Errorf("the service gets %s %q, want %q", name, got.Header.Get(name), value)
		}
	}
	if host, _, _ := net.SplitHostPort(got.RemoteAddr); host != "127.0.0.1" {
		t.Errorf("the service sees the address %s, want the browser's", got.RemoteAddr)
	}
}

func TestWhatIsNoRequestOfAPageIsRefused(t *testing.T) {
	r := newRig(t, nil)
	admin := r.signedIn(gate.Mint(secret, gate.Claims{Subject: "a", Admin: true}, "", time.Hour,
		time.Now()))
	user := r.signedIn(gate.Mint(secret, gate.Claims{Subject: "u", Accounts: []uint32{1}}, "",
		time.Hour, time.Now()))
	foreign := append(without(admin, "Origin"), "Origin", "http://127.0.0.1:9")
	wrong := append(without(admin, headerCSRF), headerCSRF, csrfOf("another token"))
	for _, tt := range []struct {
		name, method, path string
		header             []string
		want               int
	}{
		{"no session", "GET", "/api/order-matcher/orders", nil, 401},
		{"no session, foreign", "GET", "/api/order-matcher/orders",
			[]string{"Sec-Fetch-Site", "cross-site"}, 403},
		{"read", "GET", "/api/order-matcher/orders", admin, 200},
		{"read of a foreign page", "GET", "/api/order-matcher/orders", foreign, 403},
		{"write of a foreign page", "POST", "/api/order-matcher/orders", foreign, 403},
		{"write without header", "POST", "/api/order-matcher/orders", without(admin, headerCSRF), 403},
		{"write with another session's", "POST", "/api/order-matcher/orders", wrong, 403},
		{"write without origin", "POST", "/api/order-matcher/orders", without(admin, "Origin"), 403},
		{"unknown service", "GET", "/api/nothing/orders", admin, 404},
		{"dots", "GET", "/api/order-matcher/../admin/metrics", admin, 400},
		{"encoded dots", "GET", "/api/order-matcher/%2e%2e/orders", admin, 400},
		{"encoded slash", "GET", "/api/order-matcher/orders%2Ford-1", admin, 400},
		{"doubled slash", "GET", "/api/order-matcher//orders", admin, 400},
		{"encoded line", "GET", "/api/order-matcher/a%0d%0ab", admin, 400},
		{"DELETE", "DELETE", "/api/order-matcher/orders", admin, 405},
		{"metrics", "GET", "/api/admin/metrics", admin, 200},
		{"metrics of a user", "GET", "/api/admin/metrics", user, 403},
		{"profiles", "GET", "/api/admin/debug/pprof/heap", admin, 404},
		{"files of a user", "GET", "/api/files/extracts", user, 403},
		{"members of a user", "GET", "/api/cluster", user, 403},
		{"a page that is none", "GET", "/nothing", admin, 404},
		{"source", "GET", "/assets/../console.go", admin, 404},
		{"write to a page", "POST", "/overview", admin, 405},
	} {
		if a, text := r.ask(tt.method, tt.path, "", tt.header...); a.StatusCode != tt.want {
			t.Errorf("%s: %d, want %d: %s", tt.name, a.StatusCode, tt.want, text)
		}
	}
	long := strings.Repeat("x", maxBodyBytes+1)
	if a, _ := r.ask("POST", "/api/order-matcher/orders", long, admin...); a.StatusCode != 413 {
		t.Errorf("a body that is too long: %d", a.StatusCode)
	}
}

func TestEveryAnswerIsHardened(t *testing.T) {
	r := newRig(t, nil)
	r.next = func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Set-Cookie", "x=1")
		w.Header().Set("Access-Control-Allow-Origin", "*")
		w.Header().Set("Content-Security-Policy", "default-src *")
		w.WriteHeader(http.StatusUnprocessableEntity)
		_, _ = io.WriteString(w, `{"code":"RISK_REFUSED"}`)
	}
	admin := r.signedIn(gate.Mint(secret, gate.Claims{Subject: "a", Admin: true}, "", time.Hour,
		time.Now()))
	for _, path := range []string{"/", "/overview", "/assets/app.js", "/assets/none",
		"/api/session", "/api/order-matcher/orders", "/api/none"} {
		a, _ := r.ask("GET", path, "", admin...)
		if got := a.Header.Values("Content-Security-Policy"); len(got) != 1 || got[0] != policy {
			t.Errorf("%s: policy %q", path, got)
		}
		for name, want := range map[string]string{"X-Frame-Options": "DENY",
			"X-Content-Type-Options": "nosniff", "Access-Control-Allow-Origin": ""} {
			if got := a.Header.Get(name); got != want {
				t.Errorf("%s: %s %q, want %q", path, name, got, want)
			}
		}
		if strings.HasPrefix(path, "/api/order") && len(a.Header.Values("Set-Cookie")) > 0 {
			t.Errorf("%s: a service sets a cookie", path)
		}
	}
	a, text := r.ask("GET", "/api/order-matcher/orders", "", append(admin, headerStatus, "header")...)
	if a.StatusCode != 200 || a.Header.Get(headerStatus) != "422" ||
		text != `{"code":"RISK_REFUSED"}` {
		t.Errorf("status in the header: %d %v %s", a.StatusCode, a.Header, text)
	}
}

// TestAServiceThatDoesNotAnswer: a request whose connection breaks may have been carried out. One
// that found no service was not.
func TestAServiceThatDoesNotAnswer(t *testing.T) {
	r := newRig(t, nil)
	r.next = func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }
	headers := r.signedIn(gate.Mint(secret, gate.Claims{Subject: "a"}, "", time.Hour, time.Now()))
	for _, want := range []struct {
		status int
		code   string
		unsent bool
	}{{502, `"code":"OUTCOME_UNKNOWN"`, false}, {503, `"code":"STOPPING"`, true}} {
		a, text := r.ask("POST", "/api/order-matcher/orders", "{}", headers...)
		if a.StatusCode != want.status || !strings.Contains(text, want.code) ||
			strings.Contains(text, `"sequenced":false`) != want.unsent {
			t.Errorf("%d %s, want %+v", a.StatusCode, text, want)
		}
		r.end()
	}
}

func TestAStreamFlowsAndEndsWithTheConsole(t *testing.T) {
	r := newRig(t, nil)
	gone := make(chan struct{})
	r.next = func(w http.ResponseWriter, req *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, "id: 1.1\n\n")
		_ = http.NewResponseController(w).Flush()
		<-req.Context().Done() // the service learns that the browser has gone
		close(gone)
	}
	headers := r.signedIn(gate.Mint(secret, gate.Claims{Subject: "a", Admin: true}, "", time.Hour,
		time.Now()))
	ctx, leave := context.WithCancel(context.Background())
	req, _ := http.NewRequestWithContext(ctx, "GET", r.url+"/api/order-matcher/feed", nil)
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	a := must.Get(http.DefaultClient.Do(req))(t)
	defer a.Body.Close()
	if line, err := bufio.NewReader(a.Body).ReadString('\n'); err != nil || line != "id: 1.1\n" {
		t.Fatalf("%q %v", line, err)
	}
	leave()
	<-gone
}

func TestFilesOfAFolderAndNothingElse(t *testing.T) {
	dir := t.TempDir()
	outside := filepath.Join(dir, "secret.txt")
	folder := filepath.Join(dir, "extracts")
	for name, text := range map[string]string{outside: "no",
		folder + "/2026-11-20/v1/seq-6.csv": "a,b"} {
		must.OK(t, os.MkdirAll(filepath.Dir(name), 0o755))
		must.OK(t, os.WriteFile(name, []byte(text), 0o644))
	}
	must.OK(t, os.Symlink(outside, folder+"/link.txt"))
	r := newRig(t, func(o *Options) {
		o.Folders = map[string]string{"extracts": folder, "none": filepath.Join(dir, "none")}
	})
	admin := r.signedIn(gate.Mint(secret, gate.Claims{Subject: "a", Admin: true}, "", time.Hour,
		time.Now()))
	_, text := r.ask("GET", "/api/files/extracts", "", admin...)
	if !strings.Contains(text, `"2026-11-20/v1/seq-6.csv","bytes":3`) ||
		strings.Contains(text, "link") {
		t.Error(text)
	}
	a, text := r.ask("GET", "/api/files/extracts/2026-11-20/v1/seq-6.csv", "", admin...)
	if text != "a,b" || !strings.HasPrefix(a.Header.Get("Content-Disposition"), "attachment") {
		t.Errorf("%q %v", text, a.Header)
	}
	for path, want := range map[string]int{"/api/files/extracts/link.txt": 404,
		"/api/files/extracts/2026-11-20": 404, "/api/files/other": 404, "/api/files/none": 200,
		"/api/files/extracts/../secret.txt": 400} {
		if a, text := r.ask("GET", path, "", admin...); a.StatusCode != want {
			t.Errorf("%s: %d, want %d: %s", path, a.StatusCode, want, text)
		}
	}
}

// TestModulesAreSentWithoutTheirDocumentation: a comment that has its lines for itself is left out
// and nothing else, and each line keeps its number.
func TestModulesAreSentWithoutTheirDocumentation(t *testing.T) {
	module := "/**\n * What.\n * @param {string} a **\n */\nf('/** a */'); /** b */\n" +
		"  /** @type {any} */ (g)();\n  /** c */\nh();\n// d\n"
	want := "\n\n\n\nf('/** a */'); /** b */\n  /** @type {any} */ (g)();\n\nh();\n// d\n"
	if got := string(withoutDocs([]byte(module))); got != want {
		t.Errorf("%q, want %q", got, want)
	}
	files := must.Get(readFiles())(t)
	for name, sent := range files {
		source := must.Get(fs.ReadFile(assets, name))(t)
		if bytes.Count(sent.text, []byte{'\n'}) != bytes.Count(source, []byte{'\n'}) ||
			strings.HasPrefix(name, "assets/vendor/") && !bytes.Equal(sent.text, source) {
			t.Errorf("%s is not sent line by line", name)
		}
	}
}

// TestVendoredFilesAreThoseOfTheirSums: no file of another's was edited, each has its licence
// beside it, and the document has nothing inline.
func TestVendoredFilesAreThoseOfTheirSums(t *testing.T) {
	sums := must.Get(fs.ReadFile(assets, "assets/vendor/SHA256SUMS.txt"))(t)
	known := map[string]string{}
	for line := range strings.Lines(string(sums)) {
		sum, name, _ := strings.Cut(strings.TrimSpace(line), "  ")
		known[name] = sum
	}
	entries := must.Get(fs.ReadDir(assets, "assets/vendor"))(t)
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), ".txt") {
			continue
		}
		text, _ := fs.ReadFile(assets, "assets/vendor/"+e.Name())
		sum := sha256.Sum256(text)
		if known[e.Name()] != hex.EncodeToString(sum[:]) {
			t.Errorf("%s is not the file of SHA256SUMS.txt", e.Name())
		}
		base := strings.TrimSuffix(strings.TrimSuffix(e.Name(), ".js"), ".css")
		if _, err := fs.Stat(assets, "assets/vendor/"+base+".LICENSE.txt"); err != nil {
			t.Errorf("%s has no licence beside it", e.Name())
		}
	}
	page, _ := fs.ReadFile(assets, "assets/index.html")
	for _, inline := range []string{"<style", "style=", "onclick", "<script>"} {
		if strings.Contains(string(page), inline) {
			t.Errorf("the document has %s in it", inline)
		}
	}
}
