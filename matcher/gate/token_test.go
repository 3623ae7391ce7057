package gate

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
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
		{"usual", withBody(goodBody), Claims{"alice", false, []uint32{7, 22214}}},
		{"admin", withBody(`{"sub":"root","admin":true,"exp":1700000060}`), Claims{"root", true, nil}},
		{"admin false", withBody(`{"sub":"a","admin":false,"exp":1700000060}`), Claims{"a", false, nil}},
		{"ADMIN is unknown", withBody(`{"sub":"a","ADMIN":true,"exp":1700000060}`),
			Claims{"a", false, nil}},
		{"subject for sub", withBody(`{"subject":"a","exp":1700000060}`), Claims{"a", false, nil}},
		{"sub and subject agree", withBody(`{"subject":"a","sub":"a","exp":1700000060}`),
			Claims{"a", false, nil}},
		{"unknown claims",
			withBody(`{"sub":"a","x":{"y":[1,2.5,null,"\n"]},"aud":"z","exp":1700000060,"jti":"1"}`),
			Claims{"a", false, nil}},
		{"accounts in any order", withBody(`{"sub":"a","accounts":[4294967295,0,7,7],"exp":1700000060}`),
			Claims{"a", false, []uint32{0, 7, 4294967295}}},
		{"no accounts", withBody(`{"sub":"a","accounts":[],"exp":1700000060}`),
			Claims{"a", false, []uint32{}}},
		{"no typ", signed(`{"alg":"HS256"}`, goodBody), Claims{"alice", false, []uint32{7, 22214}}},
		{"key id and space", signed(" {\"kid\" : \"1\", \"alg\" :\n\"HS256\"} ", goodBody),
			Claims{"alice", false, []uint32{7, 22214}}},
		{"escaped letters", withBody(`{"su\u0062":"\u0061","exp":1700000060}`), Claims{"a", false, nil}},
		{"last second", withBody(`{"sub":"a","exp":1700000001}`), Claims{"a", false, nil}},
		{"nbf now, iat ahead", withBody(`{"sub":"a","nbf":1700000000,"iat":1800000000,"exp":1700000060}`),
			Claims{"a", false, nil}},
		{"exp far away", withBody(`{"sub":"a","nbf":-9223372036854775808,"exp":9223372036854775807}`),
			Claims{"a", false, nil}},
		{"issuer that nobody asks for", withBody(`{"sub":"a","iss":"other","exp":1700000060}`),
			Claims{"a", false, nil}},
		{"subject beyond ASCII", withBody(`{"sub":"Zoë","exp":1700000060}`), Claims{"Zoë", false, nil}},
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

// FuzzVerifyToken: the verifier accepts only a signed token, and then only claims that
// encoding/json reads in the same way.
func FuzzVerifyToken(f *testing.F) {
	for _, tt := range refusedTokens() {
		f.Add([]byte(tt.token), false)
	}
	for _, body := range []string{goodBody,
		`{"sub":"a","admin":true,"accounts":[1],"exp":1700000060,"x":[{}]}`} {
		f.Add([]byte(body), true)
		f.Add([]byte(withBody(body)), false)
	}
	v, err := NewVerifier(testSecret, "", 0, func() time.Time { return testNow })
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text []byte, asBody bool) {
		token := text
		if asBody {
			token = []byte(withBody(string(text)))
		}
		got, err := v.Verify(token)
		again, errAgain := v.Verify(token)
		if err != errAgain || got.Subject != again.Subject || got.Admin != again.Admin ||
			!slices.Equal(got.Accounts, again.Accounts) {
			t.Fatalf("%q: %+v, %v and then %+v, %v", text, got, err, again, errAgain)
		}
		if err != nil {
			return
		}
		parts := strings.Split(string(token), ".")
		if len(parts) != 3 || signText(parts[0]+"."+parts[1]) != string(token) {
			t.Fatalf("%q: taken without a signature", text)
		}
		body, err := base64.RawURLEncoding.DecodeString(parts[1])
		if err != nil {
			t.Fatal(err)
		}
		var want struct {
			Sub, Subject string
			Admin        bool
			Accounts     []uint32
			Exp          int64
		}
		var exact map[string]json.RawMessage
		if err := json.Unmarshal(body, &exact); err != nil {
			t.Fatalf("%q: taken, encoding/json says %v", text, err)
		}
		for name, to := range map[string]any{"sub": &want.Sub, "subject": &want.Subject,
			"admin":    &want.Admin,
			"accounts": &want.Accounts, "exp": &want.Exp} {
			if raw, ok := exact[name]; ok {
				if err := json.Unmarshal(raw, to); err != nil {
					t.Fatalf("%q: %s: %v", text, name, err)
				}
			}
		}
		accounts := slices.Compact(slices.Sorted(slices.Values(want.Accounts)))
		if (got.Subject != want.Sub && got.Subject != want.Subject) || got.Subject == "" ||
			got.Admin != want.Admin ||
			!slices.Equal(got.Accounts, accounts) || want.Exp <= testNow.Unix() {
			t.Fatalf("%q: got %+v, want %+v", text, got, want)
		}
	})
}

func BenchmarkVerifier(b *testing.B) {
	v := newTestVerifier(b, "", 0)
	known := []byte(Mint(testSecret, Claims{Subject: "trader-1", Accounts: []uint32{22214, 22215}}, "",
		time.Hour, testNow))
	b.Run("op=verify/token=known", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := v.Verify(known); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("op=verify/token=new", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := v.verify(known); err != nil {
				b.Fatal(err)
			}
		}
	})
	forged := bytes.Clone(known)
	forged[len(forged)-5] ^= 1
	b.Run("op=verify/token=forged", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := v.Verify(forged); err == nil {
				b.Fatal("taken")
			}
		}
	})
}

// TestFormerSecretIsStillAccepted: after a change of the secret tokens of both are good, of a third
// one not, and a former secret that is too short is refused.
func TestFormerSecretIsStillAccepted(t *testing.T) {
	now := func() time.Time { return testNow }
	former, foreign := bytes.Repeat([]byte("f"), 32), bytes.Repeat([]byte("x"), 32)
	v, err := NewVerifier(testSecret, "", 0, now, former)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		secret []byte
		want   error
	}{{testSecret, nil}, {former, nil}, {foreign, ErrTokenSignature}} {
		token := Mint(tt.secret, Claims{Subject: "a"}, "", time.Hour, testNow)
		if c, err := v.Verify([]byte(token)); !errors.Is(err, tt.want) || err == nil && c.Subject != "a" {
			t.Errorf("signed with %.4s: %+v, %v", tt.secret, c, err)
		}
	}
	if _, err := NewVerifier(testSecret, "", 0, now, former[:31]); !errors.Is(err, ErrSecret) {
		t.Errorf("a short former secret: %v", err)
	}
}
