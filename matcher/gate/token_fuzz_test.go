package gate

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"posttrade/matcher"
	"posttrade/ring/must"
)

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
	v := must.Get(NewVerifier(testSecret, "", 0, func() time.Time { return testNow }))(f)
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
		must.OK(t, err)
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
			if _, err := v.verify(v.keys.Load(), known); err != nil {
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
	v := must.Get(NewVerifier(testSecret, "", 0, now, former))(t)
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

// TestMetricsTokensOpenNothingElse: a token for metrics is refused where any other is good, and one
// with a further claim is refused everywhere.
func TestMetricsTokensOpenNothingElse(t *testing.T) {
	v := newTestVerifier(t, "", 0)
	token := []byte(withBody(
		`{"sub":"a","metrics":true,"admin":false,"accounts":[],"exp":1700000060}`))
	for range 2 { // the second time it is remembered
		if claims, err := v.Verify(token); !errors.Is(err, ErrTokenMetrics) || claims.Subject != "" {
			t.Errorf("claims %+v, %v", claims, err)
		}
		if claims, err := v.VerifyMetrics(token); err != nil || !claims.Metrics || claims.Subject != "a" {
			t.Errorf("for metrics: claims %+v, %v", claims, err)
		}
	}
	for _, more := range []string{`"admin":true`, `"accounts":[0]`, `"metrics":1`} {
		body := `{"sub":"a","metrics":true,` + more + `,"exp":1700000060}`
		if more == `"metrics":1` {
			body = `{"sub":"a",` + more + `,"exp":1700000060}`
		}
		if _, err := v.VerifyMetrics([]byte(withBody(body))); !errors.Is(err, ErrTokenClaims) {
			t.Errorf("%s: %v", body, err)
		}
	}
}

// TestRevokedTokens: at the gate of the verifier, for this subject, up to this second; a remembered
// token is refused as well.
func TestRevokedTokens(t *testing.T) {
	g, v := New(1, 1), newTestVerifier(t, "", 0)
	v.Obey(g)
	at := func(claims string) []byte {
		return []byte(withBody(`{"sub":"ann",` + claims + `"exp":1700000060}`))
	}
	early, same, late, timeless := at(`"iat":1699999999,`), at(`"iat":1700000000,`),
		at(`"iat":1700000001,`), at("")
	other := []byte(withBody(`{"sub":"bob","exp":1700000060}`))
	want := func(when string, token []byte, want error) {
		t.Helper()
		if _, err := v.Verify(token); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", when, err, want)
		}
	}
	for _, token := range [][]byte{early, same, late, timeless, other} {
		want("before", token, nil)
	}
	ann := matcher.HashSubject("ann")
	g.Revoke(matcher.Revocation{Subject: ann, Millis: 1_700_000_000_001})
	g.Revoke(matcher.Revocation{Subject: ann, Millis: 5})
	want("issued before", early, ErrTokenRevoked)
	want("issued in the same second", same, ErrTokenRevoked)
	want("without iat", timeless, ErrTokenRevoked)
	want("issued later", late, nil)
	want("another subject", other, nil)
	c := matcher.NewTokenRevoke(matcher.HashSubject("bob"), 1_700_000_000_000)
	observed := matcher.Event{Kind: matcher.EventApplied, Flags: matcher.EventFirst, InputSeq: 9}
	*observed.Cmd() = c
	g.Observe(&observed)
	want("another subject, by an event", other, ErrTokenRevoked)
}

// TestSecretsAreRenewed: from then on the new secrets alone count, for remembered tokens too, and
// the first one signs. A weak one changes nothing.
func TestSecretsAreRenewed(t *testing.T) {
	v := newTestVerifier(t, "", 0)
	old := []byte(withBody(goodBody))
	must.Get(v.Verify(old))(t)
	if err := v.Renew(testSecret, []byte("short")); !errors.Is(err, ErrSecret) {
		t.Errorf("a weak secret: %v", err)
	}
	next := []byte("the next secret, of 32 bytes and more")
	for _, former := range [][][]byte{{testSecret}, nil} {
		must.OK(t, v.Renew(next, former...))
		minted := v.Mint(Claims{Subject: "a"}, time.Minute, time.Unix(1_700_000_000, 0))
		if claims, err := v.Verify([]byte(minted)); err != nil || claims.Subject != "a" {
			t.Errorf("%d former secrets: a minted token %+v, %v", len(former), claims, err)
		}
		want := error(nil)
		if former == nil {
			want = ErrTokenSignature
		}
		if _, err := v.Verify(old); !errors.Is(err, want) {
			t.Errorf("%d former secrets: %v, want %v", len(former), err, want)
		}
	}
}
