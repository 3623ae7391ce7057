package gate

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"time"
)

// Mint is the function Mint with the verifier's own secret and issuer.
func (v *Verifier) Mint(c Claims, ttl time.Duration, now time.Time) string {
	return Mint(v.keys.Load().first, c, v.issuer, ttl, now)
}

// Mint returns a token for the claims that is valid from now for ttl, both cut to whole seconds. It
// names the issuer unless issuer is "". The caller has checked that the subject is not empty, is
// UTF-8 and has no control characters, and that the token is at most MaxTokenBytes long. Mint does
// not check the claims against each other either: Verify refuses a token for metrics that has more.
func Mint(secret []byte, c Claims, issuer string, ttl time.Duration, now time.Time) string {
	accounts := slices.Clone(c.Accounts)
	if accounts == nil {
		accounts = []uint32{}
	}
	body, err := json.Marshal(struct {
		Issuer   string   `json:"iss,omitempty"`
		Subject  string   `json:"sub"`
		Accounts []uint32 `json:"accounts"`
		Admin    bool     `json:"admin"`
		Metrics  bool     `json:"metrics,omitempty"`
		IssuedAt int64    `json:"iat"`
		Expires  int64    `json:"exp"`
	}{issuer, c.Subject, accounts, c.Admin, c.Metrics, now.Unix(), now.Add(ttl).Unix()})
	if err != nil {
		panic(fmt.Sprintf("gate: claims of plain types do not marshal: %v", err))
	}
	return sign(secret, []byte(`{"alg":"HS256","typ":"JWT"}`), body)
}

// sign builds a token from its parts and signs it: HS256 over both parts in base64url without
// padding (RFC 7515).
func sign(secret, header, body []byte) string {
	text := encoding.EncodeToString(header) + "." + encoding.EncodeToString(body)
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte(text))
	return text + "." + encoding.EncodeToString(mac.Sum(nil))
}
