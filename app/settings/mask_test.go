package settings

import "testing"

func TestNoSecretOfAURLIsShown(t *testing.T) {
	for value, want := range map[string]string{
		"postgres://u@db:5432/x?sslmode=disable":   "",
		"postgres://u:geheim@db/x":                 "postgres://u:xxxxx@db/x",
		"postgres://db/x?user=u&password=geheim":   "postgres://db/x?user=u&password=xxxxx",
		"postgres://db/x?ssl%50assword=geheim&a=b": "postgres://db/x?ssl%50assword=xxxxx&a=b",
		"postgres://u:a@h1,h2/x":                   "postgres://u:xxxxx@h1,h2/x",
		"nats://mq:4222":                           "",
		"nats://geheim@mq:4222":                    "nats://xxxxx@mq:4222",
		"tls://u:geheim@mq":                        "tls://u:xxxxx@mq",
		"nats://a:1,nats://b:2":                    "",
		"nats://u:geheim@a,nats://u2:geheim@b":     "nats://u:xxxxx@a,nats://u2:xxxxx@b",
		"nats://a,nats://u2:geheim@b":              "nats://a,nats://u2:xxxxx@b",
		"nats://u:p,geheim@a,nats://b":             "xxxxx,xxxxx,nats://b",
		"nats://%zz:geheim@a":                      "xxxxx",
	} {
		name := "nats.url"
		if value[0] == 'p' {
			name = "database.url"
		}
		if want == "" {
			want = value
		}
		if got := Named(name).Masked(value); got != want {
			t.Errorf("%s is shown as %s, want %s", value, got, want)
		}
	}
}
