package installation

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"posttrade/app/apptest"
	"posttrade/matcher"
	"posttrade/matcher/gate"
	session "posttrade/matcher/session/client"
	"posttrade/matcher/session/wire"
	"posttrade/ring/must"
)

// browsing is a browser at the console.
type browsing struct {
	t      *testing.T
	base   string
	cookie string
}

// ask makes a request of the console's pages.
func (p *browsing) ask(method, path, body string) (status int, text string) {
	p.t.Helper()
	request := must.Get(http.NewRequest(method, p.base+path, strings.NewReader(body)))(p.t)
	request.Header.Set("Origin", p.base)
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Cookie", p.cookie)
	answer := must.Get(http.DefaultClient.Do(request))(p.t)
	defer answer.Body.Close()
	all := must.Get(io.ReadAll(answer.Body))(p.t)
	for _, c := range answer.Cookies() {
		p.cookie = c.Name + "=" + c.Value
	}
	return answer.StatusCode, string(all)
}

// signedIn reports what the page learns of its session.
func (p *browsing) signedIn() bool {
	p.t.Helper()
	status, text := p.ask("GET", "/api/session", "")
	var s struct{ SignedIn bool }
	if err := json.Unmarshal([]byte(text), &s); err != nil || status != http.StatusOK {
		p.t.Fatalf("session: %d %s %v", status, text, err)
	}
	return s.SignedIn
}

// TestRevokedTokenEndsSessionsAndPages: when a subject's tokens are revoked, its shared-memory
// sessions end, those that send and those that only read; the console asks its pages to sign in;
// and no door opens to the token again. Another subject goes on, and so does a later token.
func TestRevokedTokenEndsSessionsAndPages(t *testing.T) {
	dir, err := os.MkdirTemp("", "pt") // because the path of a socket must be short
	must.OK(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	socket := filepath.Join(dir, "s")
	in := install(t, t.TempDir(), "session.socket", socket, "risk.entitlement.enforced", "true")
	mint := func() string {
		return gate.Mint(must.Get(in.config.JWTSecret())(t), gate.Claims{Subject: "trader",
			Accounts: []uint32{1}}, "", time.Hour, time.Now())
	}
	token := mint()
	dial := func(role wire.Role, token string) *session.Client {
		c := must.Get(session.Dial(t.Context(), socket, token, session.Options{Role: role}))(t)
		t.Cleanup(func() { c.Close() })
		return c
	}
	orders, copies := dial(wire.Orders, token), dial(wire.DropCopy, token)
	other := dial(wire.Orders, in.token)
	browser := &browsing{t: t, base: "http://" + in.at("console")}
	if status, text := browser.ask("POST", "/api/session", `{"token":"`+token+`"}`); status != 200 ||
		!browser.signedIn() {
		t.Fatalf("sign in: %d %s", status, text)
	}
	must.Get(in.processor.RevokeTokens(t.Context(), "trader"))(t)

	if browser.signedIn() {
		t.Error("the page is still signed in")
	}
	if status, _ := browser.ask("GET", "/api/order-matcher/positions", ""); status != 401 {
		t.Errorf("the page's request: %d", status)
	}
	if status, _ := browser.ask("POST", "/api/session", `{"token":"`+token+`"}`); status != 401 {
		t.Errorf("sign in with the revoked token: %d", status)
	}
	security, err := other.Security(t.Context(), "AAPL")
	must.OK(t, err)
	order := session.NewOrder{Account: 1, Security: security, Side: matcher.Buy, Qty: 1,
		LimitPx: 10 * matcher.PriceScale}
	apptest.Until(t, "the session that sends ends", func() (bool, any) {
		if err := orders.Order(1, &order, ""); err == nil {
			orders.Flush()
		}
		return orders.Err() != nil, nil
	})
	apptest.Until(t, "the session that reads ends", func() (bool, any) {
		return copies.Err() != nil, nil
	})
	for _, role := range []wire.Role{wire.Orders, wire.DropCopy} {
		_, err := session.Dial(t.Context(), socket, token, session.Options{Role: role})
		if err == nil || !strings.Contains(err.Error(), wire.BadToken.String()) {
			t.Errorf("role %d opens to the revoked token: %v", role, err)
		}
	}
	for _, c := range []*session.Client{other, dial(wire.Orders, mint())} {
		err := c.Order(2, &order, "")
		c.Flush()
		answer, bad := c.Next()
		if err := errors.Join(err, bad); err != nil || answer.Code != wire.Decided {
			t.Errorf("a good token: %+v, %v", answer, err)
		}
	}
	if status, _ := browser.ask("POST", "/api/session", `{"token":"`+mint()+`"}`); status != 200 ||
		!browser.signedIn() {
		t.Errorf("sign in with a later token: %d", status)
	}
}
