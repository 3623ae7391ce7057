package gate

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha512"
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"posttrade/matcher/strictjson"
	"posttrade/ring/must"
)

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
	must.Get(v.Verify(token))(t)
	for i := range len(token) * 8 {
		flipped := bytes.Clone(token)
		flipped[i/8] ^= 1 << (i % 8)
		if got, err := v.Verify(flipped); err == nil {
			t.Errorf("bit %d flipped: taken as %+v", i, got)
		}
	}
}
