package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"posttrade/app/settings"
	"posttrade/matcher/gate"
)

// maxMetricsTTL is the longest life of a token for metrics, which a scraper's configuration holds.
const maxMetricsTTL = 400 * 24 * time.Hour

// runToken mints an access token with the local secret and prints it.
//
// It asks no server: any process that may read the secret may mint. A token is accepted by every
// server that has the same secret and issuer.
func runToken(args []string, stdout, stderr io.Writer) int {
	f := newFlags("token --subject=name [--accounts=1,2] [--admin] [--metrics] [--ttl=1h] [flags]",
		"Mints an access token with the secret of this installation (auth.jwt.secret, or the one in\n"+
			"data.dir, which is made when there is none) and prints it.")
	subject := f.String("subject", "", "the caller that the token stands for (`name`)")
	accounts := f.String("accounts", "", "accounts the token is entitled to (`ids`, comma separated)")
	admin := f.Bool("admin", false, "entitle to the cross-account endpoints, and to every account")
	metrics := f.Bool("metrics", false,
		"for a scraper: opens /metrics and /readyz of the admin listener alone; lives up to 9600h")
	ttl := f.Duration("ttl", time.Hour, "how `long` the token lives, 1s..24h; with --metrics 9600h")
	cfg, err := f.read(args, 0, stdout)
	if err != nil {
		return settings.Exit(stderr, err)
	}
	if *metrics && !f.given("subject") {
		*subject = "metrics"
	}
	if *metrics && !f.given("ttl") {
		*ttl = maxMetricsTTL
	}
	claims, err := readClaims(*subject, *accounts, *admin, *metrics)
	if err != nil {
		return settings.Exit(stderr, err)
	}
	token, err := mintToken(cfg, claims, *ttl, time.Now())
	if err != nil {
		return settings.Exit(stderr, err)
	}
	fmt.Fprintln(stdout, token)
	return settings.ExitOK
}

// readClaims checks what the token shall say. Errors are usage errors, which name the flag. A token
// for metrics has no other right, because it lives in the file of a scraper.
func readClaims(subject, accounts string, admin, metrics bool) (gate.Claims, error) {
	if !validSubject(subject) {
		return gate.Claims{}, settings.Usagef("--subject: %s is not a name of 1 to 128 printable bytes",
			settings.Printable(subject))
	}
	ids, err := settings.ParseAccountIDs(accounts)
	if err != nil {
		return gate.Claims{}, settings.Usagef("--accounts: %s is not %s", settings.Printable(accounts),
			settings.AccountIDs.Allowed)
	}
	if metrics && (admin || accounts != "") {
		return gate.Claims{}, settings.Usagef("--metrics: such a token has no accounts and is no " +
			"admin's: leave out --accounts and --admin")
	}
	return gate.Claims{Subject: subject, Admin: admin, Metrics: metrics,
		Accounts: slices.Sorted(slices.Values(ids.([]uint32)))}, nil
}

// mintToken signs the claims. A token that is longer than a server reads is refused here: it would
// be answered with 401 later.
func mintToken(cfg *settings.Config, claims gate.Claims, ttl time.Duration,
	now time.Time) (string, error) {
	longest := gate.MaxTokenLife
	if claims.Metrics {
		longest = maxMetricsTTL
	}
	if ttl < time.Second || ttl > longest {
		return "", settings.Usagef("--ttl: %s is not 1s..%.0fh", ttl, longest.Hours())
	}
	secret, err := cfg.JWTSecret()
	if err != nil {
		return "", err
	}
	token := gate.Mint(secret, claims, cfg.String("auth.jwt.issuer"), ttl, now)
	if len(token) > gate.MaxTokenBytes {
		return "", settings.Usagef("--accounts: a token of %d bytes is longer than %d", len(token),
			gate.MaxTokenBytes)
	}
	return token, nil
}

// validSubject reports whether s can name a caller in a token and in a log line.
func validSubject(s string) bool {
	return strings.TrimSpace(s) != "" && len(s) <= 128 && utf8.ValidString(s) &&
		!strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) })
}
