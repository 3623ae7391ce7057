package main

import (
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"posttrade/app/apptest"
	"posttrade/matcher/gate"
)

func TestMintedTokenIsTheServersOwn(t *testing.T) {
	c := apptest.Settled(t, "data.dir", t.TempDir(), "auth.jwt.issuer", "here")
	now := time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)
	token, err := mintToken(c, "alice", "7, 3", true, time.Hour, now)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := c.JWTSecret()
	if err != nil {
		t.Fatal(err)
	}
	clock := now.Add(59 * time.Minute)
	v, err := gate.NewVerifier(secret, "here", 0, func() time.Time { return clock })
	if err != nil {
		t.Fatal(err)
	}
	claims, err := v.Verify([]byte(token))
	if err != nil {
		t.Fatal(err)
	}
	if claims.Subject != "alice" || !claims.Admin || !slices.Equal(claims.Accounts, []uint32{3, 7}) {
		t.Errorf("claims %+v", claims)
	}
	clock = now.Add(time.Hour)
	if _, err := v.Verify([]byte(token)); err == nil {
		t.Error("the token outlives its ttl")
	}
}

func TestTokenRefusesBadClaims(t *testing.T) {
	c := apptest.Settled(t, "data.dir", t.TempDir())
	var many []string
	for id := 1_000_000_000; id < 1_000_000_400; id++ {
		many = append(many, strconv.Itoa(id))
	}
	tests := []struct {
		name, subject, accounts string
		ttl                     time.Duration
		want                    string
	}{
		{"no subject", "", "", time.Hour, "--subject"},
		{"blank subject", "  ", "", time.Hour, "--subject"},
		{"long subject", strings.Repeat("a", 129), "", time.Hour, "--subject"},
		{"control character", "a\x07", "", time.Hour, "--subject"},
		{"broken UTF-8", "a\xff", "", time.Hour, "--subject"},
		{"account 0", "a", "0", time.Hour, "--accounts"},
		{"account twice", "a", "1,1", time.Hour, "--accounts"},
		{"too many accounts", "a", strings.Join(many, ","), time.Hour, "--accounts: a token of"},
		{"no time", "a", "", 0, "--ttl"},
		{"too long", "a", "", 25 * time.Hour, "--ttl"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := mintToken(c, tt.subject, tt.accounts, false, tt.ttl, time.Now())
			apptest.WantUsageError(t, err, tt.want)
		})
	}
}
