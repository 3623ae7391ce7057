package httpapi

import (
	"encoding/json"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/valyala/fasthttp"

	"posttrade/matcher/gate"
	"posttrade/ring/must"
)

const goodToken = `{"subject":"ann","accounts":[2,1],"admin":false,"ttlSeconds":60}`

func TestDevToken(t *testing.T) {
	r := newProcessorRig(t)
	a := r.mint(goodToken, nil).want(t, 200, "")
	if at := a.field(t, "expiresAt"); at != "2026-03-02T10:01:00.000Z" ||
		a.field(t, "tokenType") != "Bearer" {
		t.Errorf("answer %s", a.body)
	}
	if a.header.Get("Cache-Control") != "no-store" || a.header.Get("Content-Type") != contentJSON {
		t.Errorf("header %v", a.header)
	}
	token, ok := a.field(t, "token").(string)
	if !ok || len(a.json(t).(map[string]any)) != 3 {
		t.Fatalf("answer %s", a.body)
	}
	claims, err := r.p.Verifier.Verify([]byte(token))
	if err != nil || claims.Subject != "ann" || claims.Admin ||
		!slices.Equal(claims.Accounts, []uint32{1, 2}) {
		t.Errorf("claims %+v, %v", claims, err)
	}
	// The token works where tokens are required, until it expires.
	r.call(request{method: "GET", path: "/trades/trd-3", token: token}).want(t, 200, "")
	r.now.Add(60_000)
	r.call(request{method: "GET", path: "/trades/trd-3", token: token}).want(t, 401, CodeUnauthorized)

	// The claims that may be left out.
	a = r.mint(`{"ttlSeconds":86400,"subject":"bob é"}`, nil).want(t, 200, "")
	claims, err = r.p.Verifier.Verify([]byte(a.field(t, "token").(string)))
	if err != nil || claims.Subject != "bob é" || claims.Admin || len(claims.Accounts) != 0 {
		t.Errorf("claims %+v, %v", claims, err)
	}
	if a = r.mint(`{"ttlSeconds":1,"subject":"<&>","admin":true}`, nil); a.status != 200 {
		t.Errorf("%d %s", a.status, a.body)
	}
	if log := r.log.String(); !strings.Contains(log, `subject="bob é"`) ||
		strings.Contains(log, token) || strings.Contains(log, testMaster) {
		t.Errorf("log: %s", log)
	}
}

// TestDevTokenExpiryIsTheClaims: with a clock between two seconds the answer must not promise more
// than exp says.
func TestDevTokenExpiryIsTheClaims(t *testing.T) {
	r := newProcessorRig(t)
	r.now.Add(999)
	a := r.mint(goodToken, nil).want(t, 200, "")
	if at := a.field(t, "expiresAt"); at != "2026-03-02T10:01:00.000Z" {
		t.Errorf("expires at %v", at)
	}
}

func TestDevTokenRefusals(t *testing.T) {
	r := newProcessorRig(t)
	secret := func(value string) map[string]string {
		return map[string]string{headerMasterSecret: value}
	}
	for _, tt := range []struct {
		name, body string
		header     map[string]string
		status     int
		code       Code
	}{
		{"no secret", goodToken, secret(""), 401, CodeUnauthorized},
		{"another secret", goodToken, secret("a master secret of the test!"), 401, CodeUnauthorized},
		{"a part of the secret", goodToken, secret(testMaster[:len(testMaster)-1]), 401,
			CodeUnauthorized},
		{"more than the secret", goodToken, secret(testMaster + "x"), 401, CodeUnauthorized},
		{"the secret in another case", goodToken, secret(strings.ToUpper(testMaster)), 401,
			CodeUnauthorized},
		{"two secrets", goodToken, map[string]string{strings.ToLower(headerMasterSecret): testMaster},
			401, CodeUnauthorized},
		{"a wrong secret before a wrong body", "{", secret("x"), 401, CodeUnauthorized},
		{"a wrong secret before a wrong type", "x",
			map[string]string{headerMasterSecret: "x", "Content-Type": "text/plain"}, 401, CodeUnauthorized},
		{"a wrong type", goodToken, map[string]string{"Content-Type": "text/plain"}, 415,
			CodeUnsupportedMediaType},
		{"a compressed body", goodToken, map[string]string{"Content-Encoding": "gzip"}, 415,
			CodeUnsupportedMediaType},
		{"nothing", "", nil, 400, CodeMalformedBody},
		{"no object", "[]", nil, 400, CodeMalformedBody},
		{"no subject", `{"ttlSeconds":60}`, nil, 400, CodeMalformedBody},
		{"an empty subject", `{"subject":"","ttlSeconds":60}`, nil, 400, CodeMalformedBody},
		{"a blank subject", `{"subject":" \u00a0\u2003","ttlSeconds":60}`, nil, 400, CodeMalformedBody},
		{"a subject that is none", `{"subject":7,"ttlSeconds":60}`, nil, 400, CodeMalformedBody},
		{"no subject but null", `{"subject":null,"ttlSeconds":60}`, nil, 400, CodeMalformedBody},
		{"a line break in the subject", `{"subject":"a\nb","ttlSeconds":60}`, nil, 400,
			CodeMalformedBody},
		{"a subject twice", `{"subject":"a","subject":"a","ttlSeconds":60}`, nil, 400, CodeMalformedBody},
		{"no life", `{"subject":"a"}`, nil, 400, CodeMalformedBody},
		{"no life at all", `{"subject":"a","ttlSeconds":0}`, nil, 400, CodeMalformedBody},
		{"a life in the past", `{"subject":"a","ttlSeconds":-1}`, nil, 400, CodeMalformedBody},
		{"too long a life", `{"subject":"a","ttlSeconds":86401}`, nil, 400, CodeMalformedBody},
		{"an endless life", `{"subject":"a","ttlSeconds":9223372036854775808}`, nil, 400,
			CodeMalformedBody},
		{"a life as text", `{"subject":"a","ttlSeconds":"60"}`, nil, 400, CodeMalformedBody},
		{"half a second", `{"subject":"a","ttlSeconds":0.5}`, nil, 400, CodeMalformedBody},
		{"accounts that are none", `{"subject":"a","ttlSeconds":60,"accounts":7}`, nil, 400,
			CodeMalformedBody},
		{"accounts as null", `{"subject":"a","ttlSeconds":60,"accounts":null}`, nil, 400,
			CodeMalformedBody},
		{"an account as text", `{"subject":"a","ttlSeconds":60,"accounts":["1"]}`, nil, 400,
			CodeMalformedBody},
		{"account 0", `{"subject":"a","ttlSeconds":60,"accounts":[0]}`, nil, 400, CodeMalformedBody},
		{"account -1", `{"subject":"a","ttlSeconds":60,"accounts":[-1]}`, nil, 400, CodeMalformedBody},
		{"account 2^32", `{"subject":"a","ttlSeconds":60,"accounts":[4294967296]}`, nil, 400,
			CodeMalformedBody},
		{"admin as text", `{"subject":"a","ttlSeconds":60,"admin":"true"}`, nil, 400, CodeMalformedBody},
		{"ADMIN", `{"subject":"a","ttlSeconds":60,"ADMIN":true}`, nil, 400, CodeMalformedBody},
		{"a name more", `{"subject":"a","ttlSeconds":60,"sub":"a"}`, nil, 400, CodeMalformedBody},
		{"something behind it", goodToken + "{}", nil, 400, CodeMalformedBody},
		{"a long subject", `{"subject":"` + strings.Repeat("a", 4000) + `","ttlSeconds":60}`, nil, 400,
			CodeMalformedBody},
		{"many accounts", `{"subject":"a","ttlSeconds":60,"accounts":[1` +
			strings.Repeat(",1000000", 500) + `]}`, nil, 400, CodeMalformedBody},
		{"a body over the limit", `{"subject":"` + strings.Repeat("a", maxBodyBytes) + `"}`, nil, 413,
			CodeBodyTooLarge},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r.now.Add(throttleFor.Milliseconds()) // no case is throttled for those before it
			a := r.mint(tt.body, tt.header)
			if tt.name == "no secret" || tt.name == "two secrets" { // the map has one value for a name
				a = r.rawMint(tt.name == "two secrets")
			}
			a.want(t, tt.status, tt.code)
			if strings.Contains(string(a.body), testMaster) || strings.Contains(string(a.body), "aaaa") {
				t.Errorf("the answer repeats the request: %s", a.body)
			}
		})
	}
	if log := r.log.String(); strings.Contains(log, "minted") {
		t.Errorf("minted: %s", log)
	}
}

// rawMint asks for a token with the master secret twice, or without it.
func (r *processorRig) rawMint(twice bool) answer {
	r.t.Helper()
	q := request{method: "POST", path: "/auth/dev-token", body: goodToken, header: map[string]string{}}
	if twice {
		q.header[headerMasterSecret] = testMaster
		q.header[strings.ToUpper(headerMasterSecret)] = testMaster
	}
	return r.call(q)
}

func TestDevTokenAsText(t *testing.T) {
	r := newProcessorRig(t)
	for _, tt := range []struct {
		accept string
		bare   bool
	}{
		{"text/plain", true}, {"TEXT/plain; charset=utf-8", true}, {"text/*", true},
		{"text/plain;q=0.9, application/json;q=0.8", true},
		{"application/json", false}, {"*/*", false}, {"text/plain, application/json", false},
		{"text/plain;q=0", false},
		{"text/html", false}, {"text/plain;q=0.5, */*", false}, {"", false},
	} {
		header := map[string]string{}
		if tt.accept != "" {
			header["Accept"] = tt.accept
		}
		a := r.mint(goodToken, header).want(t, 200, "")
		_, err := r.p.Verifier.Verify(a.body)
		if bare := a.header.Get("Content-Type") == contentTextUTF8; bare != tt.bare ||
			bare != (err == nil) {
			t.Errorf("Accept %q: %s %s", tt.accept, a.header.Get("Content-Type"), a.body)
		}
	}
}

// FuzzDevTokenBody: a minted token has the requested claims, in strict JSON, and a refusal is
// always a 400.
func FuzzDevTokenBody(f *testing.F) {
	for _, seed := range []string{goodToken, `{"subject":"a","ttlSeconds":1}`,
		`{"subject":"\ud83d\ude00","ttlSeconds":86400,"admin":true}`,
		`{"subject":" ","ttlSeconds":1}`, `{"ttlSeconds":1e2,"subject":"a"}`,
		`{"subject":"a","ttlSeconds":1,"accounts":[4294967295,1,1]}`, `[`} {
		f.Add([]byte(seed))
	}
	now := time.UnixMilli(testStart)
	clock := func() time.Time { return now }
	verifier := must.Get(gate.NewVerifier(testSecret, "", 0, clock))(f)
	p := NewTradeProcessor(ProcessorDeps{Verifier: verifier,
		Mint: TokenMint{MasterSecret: testMasterSecret, Now: clock}})
	f.Fuzz(func(t *testing.T, body []byte) {
		var ctx fasthttp.RequestCtx
		var req fasthttp.Request
		req.Header.SetMethod("POST")
		req.SetRequestURI("/auth/dev-token")
		req.Header.Set(headerMasterSecret, testMaster)
		req.SetBody(body)
		ctx.Init(&req, &net.TCPAddr{}, nil)
		p.handle(&ctx)
		var asked struct {
			Subject    *string
			Accounts   []uint32
			Admin      bool
			TTLSeconds int64
		}
		err := json.Unmarshal(body, &asked)
		if ctx.Response.StatusCode() != 200 {
			if ctx.Response.StatusCode() != 400 {
				t.Fatalf("%d %s", ctx.Response.StatusCode(), ctx.Response.Body())
			}
			return
		}
		if err != nil || asked.Subject == nil ||
			strings.TrimFunc(*asked.Subject, unicode.IsSpace) == "" ||
			asked.TTLSeconds < 1 || asked.TTLSeconds > 86400 || slices.Contains(asked.Accounts, 0) {
			t.Fatalf("minted for %q: %v", body, err)
		}
		var minted struct {
			Token     string
			ExpiresAt time.Time
		}
		must.OK(t, json.Unmarshal(ctx.Response.Body(), &minted))
		claims, err := verifier.Verify([]byte(minted.Token))
		if err != nil {
			t.Fatalf("%q: %v", body, err)
		}
		slices.Sort(asked.Accounts)
		got := fmt.Sprint(claims.Subject, claims.Accounts, claims.Admin, minted.ExpiresAt.UnixMilli())
		want := fmt.Sprint(*asked.Subject, slices.Compact(asked.Accounts), asked.Admin,
			testStart+asked.TTLSeconds*1000)
		if got != want {
			t.Fatalf("%q minted %s, want %s", body, got, want)
		}
	})
}
