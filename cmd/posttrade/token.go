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

// maxTokenTTL is the longest life of a token, as for POST /auth/dev-token.
const maxTokenTTL = 24 * time.Hour

// runToken mints an access token with the local secret and prints it.
func runToken(args []string, stdout, stderr io.Writer) int {
	f := newFlags("token --subject=name [--accounts=1,2] [--admin] [--ttl=1h] [flags]",
		"Mints an access token with the secret of this installation (auth.jwt.secret, or the one in\n"+
			"data.dir, which is made when there is none) and prints it.")
	subject := f.String("subject", "", "who the token speaks for (`name`)")
	accounts := f.String("accounts", "", "accounts the token is entitled to (`ids`, comma separated)")
	admin := f.Bool("admin", false, "entitle to the cross-account endpoints, and to every account")
	ttl := f.Duration("ttl", time.Hour, "how `long` the token lives, 1s..24h")
	cfg, err := f.read(args, 0, stdout)
	if err != nil {
		return settings.Exit(stderr, err)
	}
	token, err := mintToken(cfg, *subject, *accounts, *admin, *ttl, time.Now())
	if err != nil {
		return settings.Exit(stderr, err)
	}
	fmt.Fprintln(stdout, token)
	return settings.ExitOK
}

// mintToken checks the claims and signs them.
func mintToken(cfg *settings.Config, subject, accounts string, admin bool, ttl time.Duration,
	now time.Time) (string, error) {
	if !validSubject(subject) {
		return "", settings.Usagef("--subject: %s is not a name of 1 to 128 printable bytes",
			settings.Printable(subject))
	}
	ids, err := settings.ParseAccountIDs(accounts)
	if err != nil {
		return "", settings.Usagef("--accounts: %s is not %s", settings.Printable(accounts),
			settings.AccountIDs.Allowed)
	}
	if ttl < time.Second || ttl > maxTokenTTL {
		return "", settings.Usagef("--ttl: %s is not 1s..24h", ttl)
	}
	secret, err := cfg.JWTSecret()
	if err != nil {
		return "", err
	}
	claims := gate.Claims{Subject: subject, Admin: admin,
		Accounts: slices.Sorted(slices.Values(ids.([]uint32)))}
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
