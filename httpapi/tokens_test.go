package httpapi

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"fmt"
	"hash"
	"strings"
	"testing"
	"time"

	"posttrade/matcher/gate"
	"posttrade/ring/must"
)

// The parts of a good token at testStart, issued by testIssuer.
const (
	tokenHead  = `{"alg":"HS256","typ":"JWT"}`
	testIssuer = "the tests"
)

// tokenBody is a payload with the given members, an expiry in an hour and the issuer.
func tokenBody(members string) string {
	return fmt.Sprintf(`{"exp":%d,"iss":"%s",%s}`, testStart/1000+3600, testIssuer, members)
}

// others are the other members of a good payload.
const others = `"sub":"tester","accounts":[1],"admin":true`

var rawURL = base64.RawURLEncoding

// signed makes a token of any header and payload.
func signed(head, body string, secret []byte, h func() hash.Hash) string {
	text := rawURL.EncodeToString([]byte(head)) + "." + rawURL.EncodeToString([]byte(body))
	mac := hmac.New(h, secret)
	mac.Write([]byte(text))
	return text + "." + rawURL.EncodeToString(mac.Sum(nil))
}

func sign(head, body string) string { return signed(head, body, testSecret, sha256.New) }

// parts are the three parts of a good admin token.
func parts() (head, body, signature string) {
	p := strings.Split(sign(tokenHead, tokenBody(others)), ".")
	return p[0], p[1], p[2]
}

// refusedHeaders are values of Authorization that no endpoint may accept, by what is wrong with
// them. Without the error each would be an admin's, entitled to account 1.
func refusedHeaders() map[string]string {
	head, body, signature := parts()
	good := head + "." + body + "." + signature
	expires := func(value string) string {
		return `{"iss":"` + testIssuer + `",` + others + `,"exp":` + value + `}`
	}
	flip := func(s string, at int) string {
		b := []byte(s)
		b[at] = map[bool]byte{true: 'B', false: 'A'}[b[at] == 'A']
		return string(b)
	}
	headers := map[string]string{
		"no scheme":               good,
		"another scheme":          "Basic " + good,
		"a scheme that is longer": "Bearers " + good,
		"a scheme and nothing":    "Bearer",
		"a scheme and blanks":     "Bearer   ",
		"two tokens":              "Bearer " + good + " " + good,
		"two tokens and a comma":  "Bearer " + good + "," + good,
		"quotes":                  `Bearer "` + good + `"`,
		"a tab for the blank":     "Bearer\t" + good,
	}
	for name, token := range map[string]string{
		"the word null":            "null",
		"the signing secret":       string(testSecret),
		"the master secret":        strings.ReplaceAll(testMaster, " ", "_"),
		"one part":                 body,
		"two parts":                head + "." + body,
		"four parts":               good + "." + signature,
		"a dot at the end":         good + ".",
		"a dot at the start":       "." + good,
		"no header":                "." + body + "." + signature,
		"no payload":               head + ".." + signature,
		"no signature":             head + "." + body + ".",
		"a padded header":          head + "=." + body + "." + signature,
		"a padded payload":         head + "." + body + "=." + signature,
		"a padded signature":       good + "=",
		"a character that is none": head + "." + body[:5] + "*" + body[6:] + "." + signature,
		"a blank inside":           head + "." + body[:5] + " " + body[5:] + "." + signature,
		"bits behind the last":     good[:len(good)-1] + string(nextChar(good[len(good)-1])),
		"too long": sign(tokenHead,
			tokenBody(others+`,"x":"`+strings.Repeat("y", 3100)+`"`)),
		"a shorter signature":  good[:len(good)-1],
		"a longer signature":   good + "A",
		"a signature of zeros": head + "." + body + "." + strings.Repeat("A", 43),
		"a signature bit":      head + "." + body + "." + flip(signature, 7),
		"a payload bit":        head + "." + flip(body, 9) + "." + signature,
		"another header": rawURL.EncodeToString([]byte(`{"typ":"JWT","alg":"HS256"}`)) + "." +
			body + "." + signature,
		"another payload": head + "." +
			rawURL.EncodeToString([]byte(tokenBody(`"sub":"root","admin":true`))) + "." + signature,
		"another secret": signed(tokenHead, tokenBody(others),
			[]byte("ffffffffffffffffffffffffffffffff"), sha256.New),
		"an empty secret":      signed(tokenHead, tokenBody(others), nil, sha256.New),
		"half of the secret":   signed(tokenHead, tokenBody(others), testSecret[:16], sha256.New),
		"the master as secret": signed(tokenHead, tokenBody(others), []byte(testMaster), sha256.New),
		"HS512":                signed(`{"alg":"HS512"}`, tokenBody(others), testSecret, sha512.New),
		"HS256 with SHA-512":   signed(tokenHead, tokenBody(others), testSecret, sha512.New),
		"alg none, unsigned":   rawURL.EncodeToString([]byte(`{"alg":"none"}`)) + "." + body + ".",
		"alg none, a dot":      rawURL.EncodeToString([]byte(`{"alg":"none"}`)) + "." + body + ".AA",
	} {
		headers[name] = "Bearer " + token
	}
	for name, head := range map[string]string{
		"alg none, signed": `{"alg":"none"}`, "alg nOnE": `{"alg":"nOnE"}`,
		"alg hs256": `{"alg":"hs256"}`, "alg RS256": `{"alg":"RS256"}`,
		"alg ES256": `{"alg":"ES256"}`, "alg HS384": `{"alg":"HS384"}`, "no alg": `{"typ":"JWT"}`,
		"alg a number": `{"alg":256}`,
		"alg an array": `{"alg":["HS256"]}`, "alg null": `{"alg":null}`,
		"alg twice":          `{"alg":"none","alg":"HS256"}`,
		"alg twice, escaped": `{"alg":"HS256","\u0061lg":"HS256"}`,
		"crit":               `{"alg":"HS256","crit":["exp"]}`, "a header that is an array": `["HS256"]`,
		"a header that is no JSON": `alg=HS256`, "an empty header object": `{}`,
		"something behind the header": tokenHead + "x",
	} {
		headers[name] = "Bearer " + sign(head, tokenBody(others))
	}
	for name, body := range map[string]string{
		"expired now": expires(itoa(testStart / 1000)), "expired long ago": expires("1"),
		"expires at 0": expires("0"), "expires before 1970": expires("-1"),
		"no expiry":               `{"iss":"` + testIssuer + `",` + others + `}`,
		"an expiry as text":       expires(`"1872445600"`),
		"a fraction of an expiry": expires("1872445600.5"),
		"an exponent as expiry":   expires("1e12"), "an expiry of null": expires("null"),
		"an expiry out of range":  expires("9223372036854775808"),
		"expires twice":           expires(`1,"exp":1872445600`),
		"not yet":                 tokenBody(others + `,"nbf":1872445600`),
		"not before as text":      tokenBody(others + `,"nbf":"1"`),
		"issued at as text":       tokenBody(others + `,"iat":"1"`),
		"another issuer":          fmt.Sprintf(`{"exp":1872445600,"iss":"others",%s}`, others),
		"no issuer":               fmt.Sprintf(`{"exp":1872445600,%s}`, others),
		"an issuer of null":       fmt.Sprintf(`{"exp":1872445600,"iss":null,%s}`, others),
		"issuers":                 fmt.Sprintf(`{"exp":1872445600,"iss":["%s"],%s}`, testIssuer, others),
		"nobody":                  tokenBody(`"accounts":[1],"admin":true`),
		"an empty subject":        tokenBody(`"sub":"","accounts":[1],"admin":true`),
		"a number for a subject":  tokenBody(`"sub":7,"admin":true`),
		"a subject of null":       tokenBody(`"sub":null,"admin":true`),
		"a subject twice":         tokenBody(`"sub":"a","sub":"a","admin":true`),
		"two subjects":            tokenBody(`"sub":"a","subject":"b","admin":true`),
		"an account as text":      tokenBody(`"sub":"a","accounts":["1"],"admin":true`),
		"accounts as text":        tokenBody(`"sub":"a","accounts":"1","admin":true`),
		"an account for accounts": tokenBody(`"sub":"a","accounts":1,"admin":true`),
		"account -1":              tokenBody(`"sub":"a","accounts":[-1],"admin":true`),
		"account 1.0":             tokenBody(`"sub":"a","accounts":[1.0],"admin":true`),
		"account 2^32":            tokenBody(`"sub":"a","accounts":[4294967296],"admin":true`),
		"accounts of null":        tokenBody(`"sub":"a","accounts":null,"admin":true`),
		"accounts twice":          tokenBody(`"sub":"a","accounts":[1],"accounts":[1],"admin":true`),
		"admin as text":           tokenBody(`"sub":"a","accounts":[1],"admin":"true"`),
		"admin as a number":       tokenBody(`"sub":"a","accounts":[1],"admin":1`),
		"admin of null":           tokenBody(`"sub":"a","accounts":[1],"admin":null`),
		"admin twice":             tokenBody(`"sub":"a","accounts":[1],"admin":false,"admin":true`),
		"admin twice, escaped": tokenBody(
			`"sub":"a","accounts":[1],"admin":true,"adm\u0069n":true`),
		"a payload that is an array": `[` + tokenBody(others) + `]`,
		"a payload that is text":     `"admin"`, "an empty payload object": `{}`,
		"something behind the payload": tokenBody(others) + "{}",
		"a byte order mark":            "\ufeff" + tokenBody(others),
		"no UTF-8":                     tokenBody(others + ",\"x\":\"\xff\""),
		"half a payload":               tokenBody(others)[:30],
	} {
		headers[name] = "Bearer " + sign(tokenHead, body)
	}
	return headers
}

// nextChar is a base64 character with the same leading bits and different trailing bits.
func nextChar(ch byte) byte {
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	return alphabet[strings.IndexByte(alphabet, ch)^1]
}

// issuing verifies tokens of testIssuer on a clock of its own.
func issuing(t *testing.T) *gate.Verifier {
	return must.Get(gate.NewVerifier(testSecret, testIssuer, 0,
		func() time.Time { return time.UnixMilli(testStart) }))(t)
}

// insufficient are the claims of valid tokens that are enough neither for an admin endpoint nor for
// account 1.
var insufficient = map[string]string{
	"of nobody's account":     `"sub":"a","accounts":[]`,
	"of another account":      `"sub":"a","accounts":[2,3,4294967295]`,
	"without accounts":        `"sub":"a"`,
	"of ADMIN":                `"sub":"a","ADMIN":true,"Admin":true,"accounts":[2]`,
	"of accounts by any name": `"sub":"a","Accounts":[1],"account":1,"accountId":1`,
	"of an admin not":         `"subject":"a","admin":false,"accounts":[11]`,
	"of a role":               `"sub":"admin","role":"admin","scope":"admin"`,
}

// TestTokensAreRefusedEverywhere sends every token to every endpoint that requires one, of both
// services, and checks that nothing behind the edge was called.
func TestTokensAreRefusedEverywhere(t *testing.T) {
	verifier := issuing(t)
	matching := newRig(t, func(r *rig) { r.deps.Verifier, r.deps.Enforced = verifier, false })
	admin := sign(tokenHead, tokenBody(others))
	matching.post("/prices", `[{"security":"AAA","price":100}]`, admin).want(t, 202, "")
	matching.order("1", "Sell", "10", "101", "").want(t, 201, "")
	for matching.sequence() < 5 { // SW-5 is one of the endpoints
		matching.post("/swaps", goodSwap, "").want(t, 200, "")
	}
	matching.serve(func(d *Deps) { d.Verifier, d.Enforced = verifier, true })
	processing := newProcessorRig(t, func(d *ProcessorDeps) { d.Verifier = verifier })

	type target struct {
		request, body string
		admin         bool
		call          func(q request) answer
	}
	var targets []target
	for _, q := range adminRequests {
		targets = append(targets, target{q.request, q.body, true, matching.call})
	}
	for _, request := range historyRequests {
		targets = append(targets, target{request, "", true, matching.call})
	}
	for _, q := range accountRequests {
		targets = append(targets, target{q.request, q.body, false, matching.call})
	}
	for _, request := range processorAdmin {
		targets = append(targets, target{request, "", true, processing.call})
	}
	for _, request := range processorAccount {
		targets = append(targets, target{request, "", false, processing.call})
	}
	targets = append(targets, target{putMarksRequest, goodMarks, true, processing.call})
	refused := refusedHeaders()
	t.Logf("%d refused and %d insufficient tokens at %d endpoints", len(refused), len(insufficient),
		len(targets))
	if len(refused) < 60 {
		t.Errorf("%d tokens", len(refused))
	}
	before, asked := matching.sequence(), matching.report.calls.Load()+matching.history.calls.Load()
	for _, target := range targets {
		method, path, _ := strings.Cut(target.request, " ")
		send := func(header string) answer {
			q := request{method: method, path: path, body: target.body, header: map[string]string{}}
			if header != "" {
				q.header["Authorization"] = header
			}
			return target.call(q)
		}
		for name, header := range refused {
			if a := send(header); a.status != 401 || a.field(t, "code") != string(CodeUnauthorized) ||
				a.header.Get("WWW-Authenticate") != "Bearer" {
				t.Errorf("%s, %s: %d %s", target.request, name, a.status, a.body)
			}
		}
		code, calls := CodeNotEntitled, processing.fakes.calls.Load()
		if target.admin {
			code = CodeAdminRequired
		}
		for name, members := range insufficient {
			if a := send("Bearer " + sign(tokenHead, tokenBody(members))); a.status != 403 ||
				a.field(t, "code") != string(code) {
				t.Errorf("%s, a token %s: %d %s", target.request, name, a.status, a.body)
			}
		}
		// For the 403 of an account one call is needed: it finds the account of the trade.
		if n := processing.fakes.calls.Load() - calls; target.admin && n != 0 ||
			n > int64(len(insufficient)) {
			t.Errorf("%s: %d calls behind the edge", target.request, n)
		}
	}
	if matching.sequence() != before ||
		matching.report.calls.Load()+matching.history.calls.Load() != asked {
		t.Error("the order-matcher acted on a refused token")
	}
	for _, request := range processorAny {
		method, path, _ := strings.Cut(request, " ")
		calls := processing.fakes.calls.Load()
		for name, header := range refused {
			if a := processing.call(authorized(method, path, header)); a.status != 401 ||
				processing.fakes.calls.Load() != calls {
				t.Errorf("%s, %s: %d %s", request, name, a.status, a.body)
			}
		}
	}
	// Without this check of the good token the other checks would prove nothing.
	for _, target := range targets {
		method, path, _ := strings.Cut(target.request, " ")
		if path == "/recon/orphan-sweep/last" {
			continue // 404 before the first sweep
		}
		a := target.call(request{method: method, path: path, body: target.body, token: admin})
		if a.status >= 300 {
			t.Errorf("%s: %d %s", target.request, a.status, a.body)
		}
	}
}

// authorized is a request with any Authorization header.
func authorized(method, path, header string) request {
	return request{method: method, path: path, header: map[string]string{"Authorization": header}}
}
