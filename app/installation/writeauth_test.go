package installation

import (
	"net/http"
	"strings"
	"testing"

	"posttrade/app/apptest"
)

// TestWritesBeyondLoopbackNeedAnAdmin: a service that other machines can reach accepts a change
// only from an admin, whatever the setting says. Reads need no admin.
func TestWritesBeyondLoopbackNeedAnAdmin(t *testing.T) {
	tests := []struct {
		name string
		set  []string
		open bool
	}{
		{"loopback", nil, true},
		{"accounts on all interfaces", []string{"account-service.listen", "0.0.0.0:0"}, false},
		{"stocks on all interfaces, and off by name",
			[]string{"reference-data.listen", ":0", "reference.write-auth.enforced", "false"}, false},
		{"behind a proxy", []string{"http.behind-proxy", "true"}, false},
		{"set", []string{"reference.write-auth.enforced", "true"}, false},
	}
	writes := []struct{ service, path, body string }{
		{"account-service", "/account/", `{"id":77,"displayName":"Intruder"}`},
		{"reference-data", "/stocks", `{"ticker":"INTR","companyName":"Intruder"}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			i := install(t, t.TempDir(), tt.set...)
			for _, w := range writes {
				status, body := requested(i, "", "POST", w.service, w.path, w.body)
				if tt.open != (status/100 == 2) || !tt.open && status != http.StatusUnauthorized {
					t.Errorf("%s without a token: %d %s", w.path, status, body)
				}
				if status, body = requested(i, i.token, "POST", w.service, w.path, w.body); status/100 != 2 {
					t.Errorf("%s with an admin's token: %d %s", w.path, status, body)
				}
				if status, body = requested(i, "", "GET", w.service, w.path, ""); status != http.StatusOK {
					t.Errorf("%s read: %d %s", w.path, status, body)
				}
			}
		})
	}
}

// TestWhichWritesNeedAnAdmin tests the rule alone, for addresses on which a test cannot listen.
func TestWhichWritesNeedAnAdmin(t *testing.T) {
	production := []string{"profile", "production", "risk.entitlement.enforced", "true",
		"reference.write-auth.enforced", "true"}
	members := []string{"cluster.member-id", "1", "sidecars.enabled", "false", "cluster.tls-cert", "c",
		"cluster.tls-key", "k", "cluster.tls-ca", "a"}
	tests := []struct {
		name  string
		set   []string
		admin bool
	}{
		{"dev on loopback", nil, false},
		{"localhost", []string{"account-service.listen", "localhost:1", "reference-data.listen",
			"[::1]:1"}, false},
		{"only orders are public", []string{"order-matcher.listen", "0.0.0.0:1"}, false},
		{"production on loopback", production, true},
		{"any address", []string{"account-service.listen", ":1"}, true},
		{"an address of its own", []string{"reference-data.listen", "10.0.0.1:1"}, true},
		{"a cluster on loopback",
			append([]string{"cluster.members",
				"1=127.0.0.1:1@127.0.0.1:2,2=127.0.0.1:3@127.0.0.1:4,3=127.0.0.1:5@127.0.0.1:6"}, members...),
			false},
		{"another member is elsewhere",
			append([]string{"cluster.members",
				"1=127.0.0.1:1@127.0.0.1:2,2=127.0.0.1:3@10.0.0.2:4,3=127.0.0.1:5@127.0.0.1:6"}, members...),
			true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			needs, why := apptest.Settled(t, tt.set...).WritesNeedAdmin()
			if needs != tt.admin || needs != (why != "") || strings.Contains(why, "\n") {
				t.Errorf("needs an admin: %v, because %q", needs, why)
			}
		})
	}
}
