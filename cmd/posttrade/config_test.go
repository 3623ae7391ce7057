package main

import (
	"strings"
	"testing"

	"posttrade/app/apptest"
	"posttrade/app/settings"
	"posttrade/ring/must"
)

func TestSecretsAreNeverShown(t *testing.T) {
	const secret = "correct-horse-battery-staple-0123456789"
	c := apptest.Settled(t, "auth.jwt.secret", secret, "auth.dev-token.master-secret", secret,
		"database.url", "postgres://user:"+secret+"@db/x", "nats.url", "nats://user:"+secret+"@bus")
	var table strings.Builder
	must.OK(t, printTable(c, &table))
	if strings.Contains(table.String(), secret) {
		t.Error("the table shows a secret")
	}
	for _, row := range shown(c) {
		if strings.Contains(row.Value, secret) {
			t.Errorf("%s shows %q", row.Name, row.Value)
		}
	}
	for _, name := range []string{"auth.jwt.secret", "auth.dev-token.master-secret", "database.url"} {
		_, err := settings.Read(settings.Sources{Flags: []settings.FlagValue{{Name: name,
			Text: "://" + secret + "\n"}}})
		if err == nil || strings.Contains(err.Error(), secret) {
			t.Errorf("%s: the error shows the value: %v", name, err)
		}
	}
	if got := settings.Named("database.url").Masked("postgres://u:%zz@h"); strings.Contains(got,
		"zz") {
		t.Errorf("an unreadable URL is shown as %q", got)
	}
}
