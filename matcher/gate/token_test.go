package gate

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"posttrade/matcher"
	"posttrade/ring/must"
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
	return must.Get(NewVerifier(testSecret, issuer, leeway, func() time.Time { return testNow }))(t)
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
	v := must.Get(NewVerifier(testSecret, "", 0, func() time.Time { return now }))(t)
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
	v := must.Get(NewVerifier(testSecret, "", 0, nil))(t)
	if _, err := v.Verify([]byte(Mint(testSecret, Claims{Subject: "a"}, "", time.Minute,
		time.Now()))); err != nil {
		t.Errorf("by the system's clock: %v", err)
	}
}

func TestVerifierKeepsItsSecret(t *testing.T) {
	secret := bytes.Clone(testSecret)
	v := must.Get(NewVerifier(secret, "", 0, func() time.Time { return testNow }))(t)
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

// TestAFileMayOutlastItsToken, but not what was taken back: a revocation counts after the end too,
// and a secret that is gone.
func TestAFileMayOutlastItsToken(t *testing.T) {
	g, now := New(1, 1), testNow
	v := must.Get(NewVerifier(testSecret, "", 0, func() time.Time { return now }))(t)
	v.Obey(g)
	token := []byte(Mint(testSecret, Claims{Subject: "ann"}, "", time.Minute, testNow))
	want := func(when string, holds bool) {
		t.Helper()
		if v.Holds(token) != holds {
			t.Errorf("%s: holds %v", when, !holds)
		}
	}
	want("valid", true)
	now = testNow.Add(time.Hour)
	want("expired", true)
	ann := matcher.HashSubject("ann")
	g.Revoke(matcher.Revocation{Subject: ann, Millis: testNow.UnixMilli()})
	want("revoked after its end", false)
	token = []byte(Mint(testSecret, Claims{Subject: "bob"}, "", time.Minute, now))
	want("of another subject", true)
	must.OK(t, v.Renew([]byte("the next secret, of 32 bytes and more")))
	want("of a secret that is gone", false)
}
