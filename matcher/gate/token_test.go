package gate

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"posttrade/matcher/strictjson"
)

var (
	testSecret = []byte("0123456789abcdef0123456789abcdef")
	testNow    = time.Unix(1_700_000_000, 400_000_000)
)

const (
	goodHeader = `{"alg":"HS256","typ":"JWT"}`
	goodBody   = `{"sub":"alice","accounts":[7,22214],"exp":1700000060}`
)

func newTestVerifier(t testing.TB, issuer string, leeway time.Duration) *Verifier {
	t.Helper()
	v, err := NewVerifier(testSecret, issuer, leeway, func() time.Time { return testNow })
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func b64(s string) string { return base64.RawURLEncoding.EncodeToString([]byte(s)) }

func signed(header, body string) string { return sign(testSecret, []byte(header), []byte(body)) }

func withBody(body string) string { return signed(goodHeader, body) }

// signText signs parts that are already encoded, valid or not.
func signText(text string) string {
	mac := hmac.New(sha256.New, testSecret)
	mac.Write([]byte(text))
	return text + "." + base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

func TestVerifyTakesGoodTokens(t *testing.T) {
	tests := []struct {
		name, token string
		want        Claims
	}{
		{"usual", withBody(goodBody), Claims{Subject: "alice", Accounts: []uint32{7, 22214}}},
		{"admin", withBody(`{"sub":"root","admin":true,"exp":1700000060}`),
			Claims{Subject: "root", Admin: true}},
		{"admin false", withBody(`{"sub":"a","admin":false,"exp":1700000060}`), Claims{Subject: "a"}},
		{"ADMIN is unknown", withBody(`{"sub":"a","ADMIN":true,"exp":1700000060}`),
			Claims{Subject: "a"}},
		{"subject for sub", withBody(`{"subject":"a","exp":1700000060}`), Claims{Subject: "a"}},
		{"sub and subject agree", withBody(`{"subject":"a","sub":"a","exp":1700000060}`),
			Claims{Subject: "a"}},
		{"unknown claims",
			withBody(`{"sub":"a","x":{"y":[1,2.5,null,"\n"]},"aud":"z","exp":1700000060,"jti":"1"}`),
			Claims{Subject: "a"}},
		{"accounts in any order", withBody(`{"sub":"a","accounts":[4294967295,0,7,7],"exp":1700000060}`),
			Claims{Subject: "a", Accounts: []uint32{0, 7, 4294967295}}},
		{"no accounts", withBody(`{"sub":"a","accounts":[],"exp":1700000060}`),
			Claims{Subject: "a", Accounts: []uint32{}}},
		{"no typ", signed(`{"alg":"HS256"}`, goodBody),
			Claims{Subject: "alice", Accounts: []uint32{7, 22214}}},
		{"key id and space", signed(" {\"kid\" : \"1\", \"alg\" :\n\"HS256\"} ", goodBody),
			Claims{Subject: "alice", Accounts: []uint32{7, 22214}}},
		{"escaped letters", withBody(`{"su\u0062":"\u0061","exp":1700000060}`), Claims{Subject: "a"}},
		{"last second", withBody(`{"sub":"a","exp":1700000001}`), Claims{Subject: "a"}},
		{"nbf now, iat ahead", withBody(`{"sub":"a","nbf":1700000000,"iat":1800000000,"exp":1700000060}`),
			Claims{Subject: "a"}},
		{"exp far away", withBody(`{"sub":"a","nbf":-9223372036854775808,"exp":9223372036854775807}`),
			Claims{Subject: "a"}},
		{"issuer that is not asked for", withBody(`{"sub":"a","iss":"other","exp":1700000060}`),
			Claims{Subject: "a"}},
		{"no admin and no accounts beside metrics", withBody(
			`{"sub":"a","metrics":false,"admin":true,"exp":1700000060}`), Claims{Subject: "a", Admin: true}},
		{"subject beyond ASCII", withBody(`{"sub":"Zoë","exp":1700000060}`), Claims{Subject: "Zoë"}},
	}
	v := newTestVerifier(t, "", 0)
	for _, tt := range tests {
		for _, again := range []string{"", ", again"} {
			got, err := v.Verify([]byte(tt.token))
			if err != nil || got.Subject != tt.want.Subject || got.Admin != tt.want.Admin ||
				!slices.Equal(got.Accounts, tt.want.Accounts) {
				t.Errorf("%s%s: got %+v, %v, want %+v", tt.name, again, got, err, tt.want)
			}
		}
	}
}

// refusedTokens are malformed, forged, expired and otherwise unacceptable tokens.
func refusedTokens() []struct {
	name, token string
	want        error
} {
	good := withBody(goodBody)
	head, rest, _ := strings.Cut(good, ".")
	body, signature, _ := strings.Cut(rest, ".")
	other := sign([]byte("another secret of at least 32 bytes!"), []byte(goodHeader), []byte(goodBody))
	mac512 := hmac.New(sha512.New, testSecret)
	mac512.Write([]byte(b64(`{"alg":"HS512"}`) + "." + body))
	hs512 := b64(`{"alg":"HS512"}`) + "." + body + "." +
		base64.RawURLEncoding.EncodeToString(mac512.Sum(nil))
	hexMac := fmt.Sprintf("%x", signature)
	// The 43rd character of a signature carries 4 bits: the next letter has other trailing bits only.
	alphabet := "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	lastAt := strings.IndexByte(alphabet, signature[42])
	trailing := signature[:42] + string(alphabet[lastAt|1])
	// 16 bytes encode to 22 characters of which the last carries 2 bits.
	shortHead := `{"alg":"HS256" }`
	loose := []byte(b64(shortHead))
	loose[21] = alphabet[strings.IndexByte(alphabet, loose[21])|1]

	return []struct {
		name, token string
		want        error
	}{
		{"empty", "", ErrTokenFormat}, {"one part", head, ErrTokenFormat},
		{"two parts", head + "." + body, ErrTokenFormat},
		{"four parts", good + "." + signature, ErrTokenFormat},
		{"five parts", head + "." + rest + "..", ErrTokenFormat},
		{"dots only", "..", ErrTokenFormat}, {"no header", "." + body + "." + signature, ErrTokenFormat},
		{"no payload", head + ".." + signature, ErrTokenFormat},
		{"no signature", head + "." + body + ".", ErrTokenFormat},
		{"leading space", " " + good, ErrTokenFormat}, {"trailing space", good + " ", ErrTokenSignature},
		{"bearer kept", "Bearer " + good, ErrTokenFormat},
		{"line break in header", head[:4] + "\n" + head[4:] + "." + rest, ErrTokenFormat},
		{"line break in signature", head + "." + body + "." + signature[:42] + "\n", ErrTokenFormat},
		{"line break in payload, signed", signText(head + "." + body[:4] + "\r\n" + body[4:]),
			ErrTokenFormat},
		{"padded header", signText(head + "=." + body), ErrTokenFormat},
		{"padded payload", signText(head + "." + body + "=="), ErrTokenFormat},
		{"padded signature", good + "=", ErrTokenSignature},
		{"standard alphabet", signText(head + "." + b64(`{"sub":"a"}`) + "+/"), ErrTokenFormat},
		{"one letter of payload", signText(head + ".A"), ErrTokenFormat},
		{"five letters", signText(head + "." + "AAAAA"), ErrTokenFormat},
		{"loose bits in header", signText(string(loose) + "." + body), ErrTokenFormat},
		{"loose bits in signature", head + "." + body + "." + trailing, ErrTokenFormat},
		{"not base64", signText("!!!!." + body), ErrTokenFormat},
		{"JSON serialization", `{"payload":"` + body + `"}`, ErrTokenFormat},
		{"zero bytes", "\x00\x00.\x00.\x00", ErrTokenFormat},

		{"alg none", b64(`{"alg":"none"}`) + "." + body + "." + signature, ErrTokenHeader},
		{"alg none, unsigned", b64(`{"alg":"none"}`) + "." + body + ".", ErrTokenFormat},
		{"alg None, signed", signed(`{"alg":"None"}`, goodBody), ErrTokenHeader},
		{"alg in lower case", signed(`{"alg":"hs256"}`, goodBody), ErrTokenHeader},
		{"alg HS512", hs512, ErrTokenHeader},
		{"alg HS512, signed with 256",
			signed(`{"alg":"HS512"}`, goodBody), ErrTokenHeader},
		{"alg RS256", signed(`{"alg":"RS256"}`, goodBody), ErrTokenHeader},
		{"alg missing", signed(`{"typ":"JWT"}`, goodBody), ErrTokenHeader},
		{"alg a list", signed(`{"alg":["HS256"]}`, goodBody), ErrTokenHeader},
		{"alg null", signed(`{"alg":null}`, goodBody), ErrTokenHeader},
		{"alg twice", signed(`{"alg":"HS256","alg":"HS256"}`, goodBody), ErrTokenHeader},
		{"alg twice, none first", signed(`{"alg":"none","alg":"HS256"}`, goodBody), ErrTokenHeader},
		{"alg twice, escaped", signed(`{"alg":"HS256","\u0061lg":"none"}`, goodBody), ErrTokenHeader},
		{"crit", signed(`{"alg":"HS256","crit":["exp"]}`, goodBody), ErrTokenHeader},
		{"crit empty", signed(`{"crit":[],"alg":"HS256"}`, goodBody), ErrTokenHeader},
		{"crit null", signed(`{"alg":"HS256","crit":null}`, goodBody), ErrTokenHeader},
		{"typ a number", signed(`{"alg":"HS256","typ":1}`, goodBody), ErrTokenHeader},
		{"header a list", signed(`["HS256"]`, goodBody), ErrTokenHeader},
		{"header empty", signed(`{}`, goodBody), ErrTokenHeader},
		{"header with a tail", signed(goodHeader+"x", goodBody), ErrTokenHeader},
		{"header not UTF-8", signed("{\"alg\":\"HS256\",\"x\":\"\xff\"}", goodBody), ErrTokenHeader},
		{"header with a mark", signed("\ufeff"+goodHeader, goodBody), ErrTokenHeader},

		{"another secret", other, ErrTokenSignature},
		{"signature of zeros", head + "." + body + "." + strings.Repeat("A", 43), ErrTokenSignature},
		{"signature cut", good[:len(good)-1], ErrTokenSignature},
		{"signature longer", good + "A", ErrTokenSignature},
		{"signature in hex", head + "." + body + "." + hexMac, ErrTokenSignature},
		{"one bit of payload", head + "." + b64(strings.Replace(goodBody, "alice", "alicf", 1)) + "." +
			signature, ErrTokenSignature},
		{"admin added", head + "." + b64(`{"sub":"alice","admin":true,"exp":1700000060}`) + "." +
			signature, ErrTokenSignature},
		{"header respelt", b64(`{"typ":"JWT","alg":"HS256"}`) + "." + body + "." + signature,
			ErrTokenSignature},
		{"signature before claims", head + "." + b64(`not JSON`) + "." + signature, ErrTokenSignature},
		{"signature before expiry", head + "." + b64(`{"sub":"a","exp":1}`) + "." + signature,
			ErrTokenSignature},

		{"no sub", withBody(`{"exp":1700000060}`), ErrTokenClaims},
		{"sub empty", withBody(`{"sub":"","exp":1700000060}`), ErrTokenClaims},
		{"subject empty", withBody(`{"subject":"","exp":1700000060}`), ErrTokenClaims},
		{"sub a number", withBody(`{"sub":7,"exp":1700000060}`), ErrTokenClaims},
		{"sub null", withBody(`{"sub":null,"exp":1700000060}`), ErrTokenClaims},
		{"sub and subject differ", withBody(`{"sub":"a","subject":"b","exp":1700000060}`),
			ErrTokenClaims},
		{"sub empty, subject not", withBody(`{"sub":"","subject":"b","exp":1700000060}`), ErrTokenClaims},
		{"sub with a control character", withBody(`{"sub":"a\u0000","exp":1700000060}`), ErrTokenClaims},
		{"sub twice", withBody(`{"sub":"a","sub":"a","exp":1700000060}`), ErrTokenClaims},
		{"sub twice, escaped", withBody(`{"sub":"a","\u0073ub":"b","exp":1700000060}`), ErrTokenClaims},
		{"unknown claim twice", withBody(`{"sub":"a","x":1,"exp":1700000060,"x":1}`), ErrTokenClaims},
		{"duplicate key inside", withBody(`{"sub":"a","x":{"y":1,"y":1},"exp":1700000060}`),
			ErrTokenClaims},
		{"no exp", withBody(`{"sub":"a"}`), ErrTokenClaims},
		{"exp a string", withBody(`{"sub":"a","exp":"1700000060"}`), ErrTokenClaims},
		{"exp a float", withBody(`{"sub":"a","exp":1700000060.5}`), ErrTokenClaims},
		{"exp with .0", withBody(`{"sub":"a","exp":1700000060.0}`), ErrTokenClaims},
		{"exp with exponent", withBody(`{"sub":"a","exp":17e8}`), ErrTokenClaims},
		{"exp null", withBody(`{"sub":"a","exp":null}`), ErrTokenClaims},
		{"exp too large", withBody(`{"sub":"a","exp":9223372036854775808}`), ErrTokenClaims},
		{"exp true", withBody(`{"sub":"a","exp":true}`), ErrTokenClaims},
		{"exp twice", withBody(`{"sub":"a","exp":1,"exp":1700000060}`), ErrTokenClaims},
		{"nbf a string", withBody(`{"sub":"a","nbf":"1","exp":1700000060}`), ErrTokenClaims},
		{"iat a float", withBody(`{"sub":"a","iat":1.5,"exp":1700000060}`), ErrTokenClaims},
		{"iss a number", withBody(`{"sub":"a","iss":1,"exp":1700000060}`), ErrTokenClaims},
		{"admin a string", withBody(`{"sub":"a","admin":"true","exp":1700000060}`), ErrTokenClaims},
		{"admin 1", withBody(`{"sub":"a","admin":1,"exp":1700000060}`), ErrTokenClaims},
		{"admin null", withBody(`{"sub":"a","admin":null,"exp":1700000060}`), ErrTokenClaims},
		{"admin twice", withBody(`{"sub":"a","admin":false,"admin":true,"exp":1700000060}`),
			ErrTokenClaims},
		{"accounts a number", withBody(`{"sub":"a","accounts":7,"exp":1700000060}`), ErrTokenClaims},
		{"accounts strings", withBody(`{"sub":"a","accounts":["7"],"exp":1700000060}`), ErrTokenClaims},
		{"accounts floats", withBody(`{"sub":"a","accounts":[7.0],"exp":1700000060}`), ErrTokenClaims},
		{"accounts negative", withBody(`{"sub":"a","accounts":[-1],"exp":1700000060}`), ErrTokenClaims},
		{"accounts too large", withBody(`{"sub":"a","accounts":[4294967296],"exp":1700000060}`),
			ErrTokenClaims},
		{"accounts null", withBody(`{"sub":"a","accounts":null,"exp":1700000060}`),
			ErrTokenClaims},
		{"accounts with null", withBody(`{"sub":"a","accounts":[null],"exp":1700000060}`),
			ErrTokenClaims},
		{"accounts an object", withBody(`{"sub":"a","accounts":{},"exp":1700000060}`),
			ErrTokenClaims},
		{"accounts that wrap", withBody(`{"sub":"a","accounts":[18446744073709551623],"exp":1700000060}`),
			ErrTokenClaims},
		{"payload a list", withBody(`[]`), ErrTokenClaims},
		{"payload a string", withBody(`"alice"`), ErrTokenClaims},
		{"payload not JSON", withBody(`sub=alice`), ErrTokenClaims},
		{"payload cut", withBody(goodBody[:len(goodBody)-1]), ErrTokenClaims},
		{"payload with a tail", withBody(goodBody + "{}"), ErrTokenClaims},
		{"payload not UTF-8", withBody("{\"sub\":\"\xff\",\"exp\":1700000060}"), ErrTokenClaims},
		{"lone surrogate", withBody(`{"sub":"\ud800","exp":1700000060}`), ErrTokenClaims},
		{"too deep", withBody(`{"sub":"a","exp":1700000060,"x":` + strings.Repeat("[",
			strictjson.MaxDepth) + strings.Repeat("]", strictjson.MaxDepth) + `}`), ErrTokenClaims},
		{"zero byte in payload", withBody("{\"sub\":\"a\x00\",\"exp\":1700000060}"), ErrTokenClaims},

		{"expired", withBody(`{"sub":"a","exp":1699999999}`), ErrTokenExpired},
		{"expires now", withBody(`{"sub":"a","exp":1700000000}`), ErrTokenExpired},
		{"exp 0", withBody(`{"sub":"a","exp":0}`), ErrTokenExpired},
		{"exp negative", withBody(`{"sub":"a","exp":-9223372036854775808}`), ErrTokenExpired},
		{"not yet", withBody(`{"sub":"a","nbf":1700000001,"exp":1700000060}`), ErrTokenEarly},
		{"never", withBody(`{"sub":"a","nbf":9223372036854775807,"exp":9223372036854775807}`),
			ErrTokenEarly},
		{"too long", withBody(`{"sub":"` + strings.Repeat("a", MaxTokenBytes) + `","exp":1700000060}`),
			ErrTokenLength},
	}
}

func TestVerifyRefuses(t *testing.T) {
	tests := refusedTokens()
	if len(tests) < 60 {
		t.Fatalf("%d tokens, want at least 60", len(tests))
	}
	v := newTestVerifier(t, "", 0)
	for _, tt := range tests {
		for _, again := range []string{"", ", again"} {
			got, err := v.Verify([]byte(tt.token))
			if err != tt.want || got.Subject != "" || got.Admin || got.Accounts != nil {
				t.Errorf("%s%s: got %+v, %v, want %v", tt.name, again, got, err, tt.want)
			}
		}
	}
	if _, err := v.Verify(nil); err != ErrTokenFormat {
		t.Errorf("no token: got %v, want %v", err, ErrTokenFormat)
	}
}

// Every single-bit change of a token makes it a different token.
func TestVerifyRefusesEveryFlippedBit(t *testing.T) {
	v := newTestVerifier(t, "", 0)
	token := []byte(withBody(goodBody))
	if _, err := v.Verify(token); err != nil {
		t.Fatal(err)
	}
	for i := range len(token) * 8 {
		flipped := bytes.Clone(token)
		flipped[i/8] ^= 1 << (i % 8)
		if got, err := v.Verify(flipped); err == nil {
			t.Errorf("bit %d flipped: taken as %+v", i, got)
		}
	}
}

func TestVerifyIssuer(t *testing.T) {
	v := newTestVerifier(t, "https://issuer", 0)
	for body, want := range map[string]error{
		`{"sub":"a","iss":"https://issuer","exp":1700000060}`:  nil,
		`{"sub":"a","iss":"https://issuer/","exp":1700000060}`: ErrTokenIssuer,
		`{"sub":"a","iss":"","exp":1700000060}`:                ErrTokenIssuer,
		`{"sub":"a","exp":1700000060}`:                         ErrTokenIssuer,
	} {
		if _, err := v.Verify([]byte(withBody(body))); err != want {
			t.Errorf("%s: got %v, want %v", body, err, want)
		}
	}
}

func TestVerifyLeeway(t *testing.T) {
	v := newTestVerifier(t, "", 30*time.Second)
	for body, want := range map[string]error{
		`{"sub":"a","exp":1699999971}`:                  nil,
		`{"sub":"a","exp":1699999970}`:                  ErrTokenExpired,
		`{"sub":"a","nbf":1700000030,"exp":1700000060}`: nil,
		`{"sub":"a","nbf":1700000031,"exp":1700000060}`: ErrTokenEarly,
	} {
		if _, err := v.Verify([]byte(withBody(body))); err != want {
			t.Errorf("%s: got %v, want %v", body, err, want)
		}
	}
}

// A remembered token that was valid stops being valid in its last second.
func TestVerifyJudgesTimeAnew(t *testing.T) {
	now := testNow
	v, err := NewVerifier(testSecret, "", 0, func() time.Time { return now })
	if err != nil {
		t.Fatal(err)
	}
	token := []byte(withBody(`{"sub":"a","nbf":1700000000,"exp":1700000060}`))
	for _, step := range []struct {
		at   int64
		want error
	}{{1700000000, nil}, {1700000059, nil}, {1700000060, ErrTokenExpired}, {1699999999, ErrTokenEarly},
		{1700000000, nil}} {
		now = time.Unix(step.at, 999_999_999)
		if _, err := v.Verify(token); err != step.want {
			t.Errorf("at %d: got %v, want %v", step.at, err, step.want)
		}
	}
}

func TestNewVerifierRefusesWeakSettings(t *testing.T) {
	if _, err := NewVerifier(testSecret[:31], "", 0, nil); !errors.Is(err, ErrSecret) {
		t.Errorf("got %v, want %v", err, ErrSecret)
	}
	for _, leeway := range []time.Duration{-1, 30*time.Second + 1} {
		if _, err := NewVerifier(testSecret, "", leeway, nil); !errors.Is(err, ErrLeeway) {
			t.Errorf("leeway %s: got %v, want %v", leeway, err, ErrLeeway)
		}
	}
	v, err := NewVerifier(testSecret, "", 0, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := v.Verify([]byte(Mint(testSecret, Claims{Subject: "a"}, "", time.Minute,
		time.Now()))); err != nil {
		t.Errorf("by the system's clock: %v", err)
	}
}

func TestVerifierKeepsItsSecret(t *testing.T) {
	secret := bytes.Clone(testSecret)
	v, err := NewVerifier(secret, "", 0, func() time.Time { return testNow })
	if err != nil {
		t.Fatal(err)
	}
	clear(secret)
	if _, err := v.Verify([]byte(withBody(goodBody))); err != nil {
		t.Errorf("after the caller's copy was wiped: %v", err)
	}
}

func TestMintedTokenVerifies(t *testing.T) {
	v := newTestVerifier(t, "posttrade", 0)
	for _, c := range []Claims{
		{Subject: "alice", Accounts: []uint32{22214, 7}}, {Subject: "root", Admin: true},
		{Subject: `quote " and <tag> ` + "\u2028"}, {Subject: "Zoë😀", Accounts: []uint32{0, 4294967295}},
	} {
		token := Mint(testSecret, c, "posttrade", time.Minute, testNow)
		got, err := v.Verify([]byte(token))
		want := slices.Sorted(slices.Values(c.Accounts))
		if err != nil || got.Subject != c.Subject || got.Admin != c.Admin ||
			!slices.Equal(got.Accounts, want) {
			t.Errorf("got %+v, %v, want %+v", got, err, c)
		}
	}
	if _, err := v.Verify([]byte(Mint(testSecret, Claims{Subject: "a"}, "posttrade", 0,
		testNow))); err != ErrTokenExpired {
		t.Errorf("ttl 0: got %v, want %v", err, ErrTokenExpired)
	}
	if _, err := v.Verify([]byte(Mint(testSecret, Claims{}, "posttrade", time.Minute,
		testNow))); err != ErrTokenClaims {
		t.Errorf("no subject: got %v, want %v", err, ErrTokenClaims)
	}
	if _, err := v.Verify([]byte(Mint(testSecret, Claims{Subject: "a"}, "", time.Minute,
		testNow))); err != ErrTokenIssuer {
		t.Errorf("no issuer: got %v, want %v", err, ErrTokenIssuer)
	}
}

func TestEntitled(t *testing.T) {
	some, admin, none := Claims{Accounts: []uint32{1, 5, 9}}, Claims{Admin: true}, Claims{}
	for account, want := range map[uint32]bool{0: false, 1: true, 2: false, 5: true, 9: true,
		10: false} {
		if some.Entitled(account) != want || !admin.Entitled(account) || none.Entitled(account) {
			t.Errorf("account %d: got %v, %v, %v", account, some.Entitled(account), admin.Entitled(account),
				none.Entitled(account))
		}
	}
}

func TestVerifyIsSafeForMany(t *testing.T) {
	v := newTestVerifier(t, "", 0)
	var callers sync.WaitGroup
	for g := range 8 {
		callers.Go(func() {
			for i := range 300 {
				name := fmt.Sprintf("u%d", (g+i)%40)
				token := Mint(testSecret, Claims{Subject: name}, "", time.Minute, testNow)
				if i%3 == 0 {
					token = token[:len(token)-2] + "AA"
				}
				c, err := v.Verify([]byte(token))
				if err == nil && c.Subject != name || (err == nil) == (i%3 == 0) && err != ErrTokenSignature {
					t.Errorf("%s: got %+v, %v", name, c, err)
				}
			}
		})
	}
	callers.Wait()
}

func TestVerifyDoesNotAllocate(t *testing.T) {
	v := newTestVerifier(t, "", 0)
	known, forged := []byte(withBody(goodBody)), []byte(withBody(goodBody))
	forged[len(forged)-5] ^= 1
	v.Verify(known)
	for name, token := range map[string][]byte{"known": known, "forged": forged} {
		if n := testing.AllocsPerRun(500, func() { v.Verify(token) }); n > 0 && !raceEnabled {
			t.Errorf("%s token: %v allocations, want 0", name, n)
		}
	}
}
