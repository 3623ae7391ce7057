package main

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"posttrade/app/apptest"
	"posttrade/app/settings"
	"posttrade/matcher/gate"
	"posttrade/ring/must"
)

func TestMintedTokenIsTheServersOwn(t *testing.T) {
	c := apptest.Settled(t, "data.dir", t.TempDir(), "auth.jwt.issuer", "here")
	now := time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)
	token := must.Get(mintFor(c, "alice", "7, 3", true, false, time.Hour, now))(t)
	secret := must.Get(c.JWTSecret())(t)
	clock := now.Add(59 * time.Minute)
	v := must.Get(gate.NewVerifier(secret, "here", 0, func() time.Time { return clock }))(t)
	claims := must.Get(v.Verify([]byte(token)))(t)
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
			_, err := mintFor(c, tt.subject, tt.accounts, false, false, tt.ttl, time.Now())
			apptest.WantUsageError(t, err, tt.want)
		})
	}
}

// mintFor reads the claims and mints, as the command does.
func mintFor(c *settings.Config, subject, accounts string, admin, metrics bool, ttl time.Duration,
	now time.Time) (string, error) {
	claims, err := readClaims(subject, accounts, admin, metrics)
	if err != nil {
		return "", err
	}
	return mintToken(c, claims, ttl, now)
}

// TestMetricsTokenLivesLongAndOpensNothingElse: 400 days, no accounts, no admin, and the services
// refuse it.
func TestMetricsTokenLivesLongAndOpensNothingElse(t *testing.T) {
	c := apptest.Settled(t, "data.dir", t.TempDir())
	var out, errs strings.Builder
	if code := runToken([]string{"--metrics", "--data.dir=" + c.String("data.dir")}, &out,
		&errs); code != settings.ExitOK {
		t.Fatalf("exit %d: %s", code, errs.String())
	}
	secret, err := c.JWTSecret()
	must.OK(t, err)
	clock := time.Now().Add(maxMetricsTTL - time.Hour)
	v, err := gate.NewVerifier(secret, "", 0, func() time.Time { return clock })
	must.OK(t, err)
	token := []byte(strings.TrimSpace(out.String()))
	claims, err := v.VerifyMetrics(token)
	if err != nil || claims.Subject != "metrics" || claims.Admin || len(claims.Accounts) != 0 {
		t.Errorf("claims %+v, %v", claims, err)
	}
	if _, err := v.Verify(token); !errors.Is(err, gate.ErrTokenMetrics) {
		t.Errorf("a service takes it: %v", err)
	}
	clock = clock.Add(2 * time.Hour)
	if _, err := v.VerifyMetrics(token); !errors.Is(err, gate.ErrTokenExpired) {
		t.Errorf("after 400 days: %v", err)
	}
	for _, tt := range []struct {
		accounts string
		admin    bool
		ttl      time.Duration
		want     string
	}{{"1", false, time.Hour, "--metrics"}, {"", true, time.Hour, "--metrics"},
		{"", false, maxMetricsTTL + time.Second, "--ttl: 9600h0m1s is not 1s..9600h"}} {
		_, err := mintFor(c, "scraper", tt.accounts, tt.admin, true, tt.ttl, time.Now())
		apptest.WantUsageError(t, err, tt.want)
	}
}
