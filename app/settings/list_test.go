package settings

import (
	"crypto/tls"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"posttrade/journal/quorum"
	"posttrade/ring/must"
)

// mustConfig settles a configuration from flags alone.
func mustConfig(t *testing.T, nameValue ...string) *Config {
	t.Helper()
	return must.Get(Read(Sources{Flags: pairs(nameValue)}))(t)
}

func pairs(nameValue []string) (out []FlagValue) {
	for i := 0; i+1 < len(nameValue); i += 2 {
		out = append(out, FlagValue{nameValue[i], nameValue[i+1]})
	}
	return out
}

// TestDefaultsAreTheContract pins every name and default that other programs
// may rely on.
func TestDefaultsAreTheContract(t *testing.T) {
	contract := map[string]string{
		"profile": "dev", "data.dir": "./data",
		"order-matcher.listen": "127.0.0.1:18110", "trade-processor.listen": "127.0.0.1:18091",
		"account-service.listen": "127.0.0.1:18088", "reference-data.listen": "127.0.0.1:18085",
		"console.listen": "127.0.0.1:18100", "console.hosts": "",
		"admin.listen": "127.0.0.1:18111", "order-matcher.path-prefix": "",
		"journal.durability": "fsync", "journal.flush-interval": "50ms",
		"journal.reserve-bytes":      "256MiB",
		"snapshot.interval-commands": "1000000",
		"ring.input-slots":           "65536", "ring.output-slots": "131072", "ring.idle": "adaptive",
		"matcher.cpu": "none", "recorder.cpu": "none", "session.socket": "", "session.quota": "1024",
		"session.max-sessions": "64", "database.url": "", "nats.url": "",
		"auth.jwt.secret": "", "auth.jwt.secret-file": "", "auth.jwt.issuer": "", "auth.jwt.leeway": "0s",
		"auth.dev-token.master-secret": "",
		"risk.entitlement.enforced":    "false", "reference.write-auth.enforced": "false",
		"controlfeed.snapshot-auth": "false",
		"risk.bootstrap.enabled":    "true", "risk.bootstrap.buffer-capacity": "8192",
		"risk.feed.max-silence-ms": "10000",
		"audit.sequence-refusals":  "true", "sidecars.enabled": "true", "http.max-inflight": "4096",
		"http.max-body-memory": "256MiB", "http.behind-proxy": "false",
		"risk.seed.accounts": "", "risk.seed.securities": "", "seed.accounts": "", "seed.securities": "",
		"risk.max-order-quantity": "1000000", "risk.max-order-notional": "1000000000",
		"risk.max-position-quantity": "1000000", "risk.max-concentration-notional": "5000000000",
		"risk.credit-limit": "5000000000", "risk.price.max-age-ms": "30000",
		"risk.price.collar-bps":     "5000",
		"risk.idempotency.capacity": "65536", "risk.max-accounts": "4096", "risk.max-securities": "4096",
		"risk.max-contracts": "1048576", "risk.max-open-orders": "1048576",
		"recon.blotter.capacity": "500000", "recon.blotter.page-size": "1000",
		"recon.poll.interval-ms": "1000",
		"recon.grace-ms":         "5000", "settlement.t-plus-days": "1",
		"settlement.calendar": "US-SETTLEMENT",
		"settlement.timezone": "America/New_York", "settlement.sweep.interval-ms": "5000",
		"tca.window-minutes": "5", "outbox.poll-interval-ms": "250",
		"cluster.member-id": "", "cluster.members": "", "cluster.heartbeat-ms": "150",
		"cluster.adopt":        "false",
		"accept-older-journal": "false",
		"cluster.tls-cert":     "", "cluster.tls-key": "", "cluster.tls-ca": "",
		"flight.budget-ms": "0", "flight.dir": "", "profile.contention": "false",
		"extract.sink": "", "extract.counterparties": "", "extract.instruments": "",
	}
	for name, want := range contract {
		s := Named(name)
		if s == nil {
			t.Errorf("no setting %s", name)
		} else if s.Default != want {
			t.Errorf("%s defaults to %q, want %q", name, s.Default, want)
		}
	}
}

func TestEverySettingIsWellFormed(t *testing.T) {
	seen := map[string]string{}
	for _, s := range List {
		if first, twice := seen[EnvName(s.Name)]; twice {
			t.Errorf("%s and %s share the variable %s", s.Name, first, EnvName(s.Name))
		}
		seen[EnvName(s.Name)] = s.Name
		if s.Help == "" || s.Kind.Allowed == "" || s.Kind.parse == nil {
			t.Errorf("%s has no help or no kind", s.Name)
		}
		if s.Default == "" && s.Empty == "" {
			t.Errorf("%s does not say what empty stands for", s.Name)
		}
		if s.Name != strings.ToLower(s.Name) || strings.Contains(s.Name, "_") {
			t.Errorf("%s is not in dotted lower case", s.Name)
		}
	}
	if got := EnvName("settlement.t-plus-days"); got != "POSTTRADE_SETTLEMENT_T_PLUS_DAYS" {
		t.Errorf("variable %s, want SETTLEMENT_T_PLUS_DAYS", got)
	}
}

func TestLaterSourcesWin(t *testing.T) {
	file := filepath.Join(t.TempDir(), "posttrade.conf")
	content := "# limits\n\n risk.price.collar-bps = 100 " +
		"\ntca.window-minutes=10\nsettlement.t-plus-days=3\n"
	must.OK(t, os.WriteFile(file, []byte(content), 0o600))
	c := must.Get(Read(Sources{
		File: file,
		Environ: []string{"TCA_WINDOW_MINUTES=20", "SETTLEMENT_T_PLUS_DAYS=4", "UNKNOWN_VARIABLE=x",
			"DATA_DIR=", "tca.window-minutes=99"},
		Flags: []FlagValue{{"settlement.t-plus-days", "5"}, {"settlement.t-plus-days", "6"}},
	}))(t)
	tests := []struct {
		name   string
		value  int
		source string
	}{
		{"recon.grace-ms", 5000, "default"},
		{"risk.price.collar-bps", 100, "file " + file + ":3"},
		{"tca.window-minutes", 20, "environment TCA_WINDOW_MINUTES"},
		{"settlement.t-plus-days", 6, "flag"},
	}
	for _, tt := range tests {
		if got := c.Int(tt.name); got != tt.value {
			t.Errorf("%s is %d, want %d", tt.name, got, tt.value)
		}
		if got := c.Source(tt.name); got != tt.source {
			t.Errorf("%s is from %q, want %q", tt.name, got, tt.source)
		}
	}
	if got := c.String("data.dir"); got != "./data" || c.Source("data.dir") != "default" {
		t.Errorf("an empty variable set data.dir to %q", got)
	}
}

func TestBadFilesAreNamedWithTheirLine(t *testing.T) {
	tests := []struct{ name, content, want string }{
		{"no equals sign", "profile\n", `:1: want key=value, got "profile"`},
		{"twice", "# x\nprofile=dev\nprofile=dev\n", `:3: "profile" is set twice, first on line 2`},
		{"unknown key", "\nrisk.max=5\n", `unknown setting "risk.max" (file `},
		{"invalid value", "risk.price.collar-bps=-1\n", "invalid setting risk.price.collar-bps (file "},
		{"too large", strings.Repeat("#", maxConfigBytes+1), "larger than"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "x.conf")
			must.OK(t, os.WriteFile(file, []byte(tt.content), 0o600))
			_, err := Read(Sources{File: file})
			wantUsage(t, err, tt.want)
		})
	}
	_, err := Read(Sources{File: filepath.Join(t.TempDir(), "absent")})
	wantUsage(t, err, "no such file")
	_, err = Read(Sources{File: t.TempDir()})
	wantUsage(t, err, "is a directory")
}

func wantUsage(t *testing.T, err error, want string) {
	t.Helper()
	var usage UsageError
	if !errors.As(err, &usage) {
		t.Fatalf("got %v, want a usage error with %q", err, want)
	}
	if !strings.Contains(usage.message, want) || strings.Contains(usage.message, "\n") {
		t.Errorf("got %q, want one line with %q", usage.message, want)
	}
}

// TestValuesAreChecked tries every kind of setting with values that it allows and values that it
// does not.
func TestValuesAreChecked(t *testing.T) {
	tests := []struct {
		name string
		good []string
		bad  []string
	}{
		{"profile", []string{"dev"}, []string{"", "test", "Dev"}},
		{"data.dir", []string{"/var/lib/x", "./data"}, []string{"", "a\nb", "a\x00"}},
		{"order-matcher.listen", []string{"127.0.0.1:0", "0.0.0.0:18110", "[::1]:80", ":8080",
			"localhost:65535"},
			[]string{"", "127.0.0.1", "127.0.0.1:", "127.0.0.1:65536", "127.0.0.1:http", "a b:1", "x:01",
				"x:-1"}},
		{"order-matcher.path-prefix", []string{"", "/matcher", "/a/b-c.d_e"},
			[]string{"matcher", "/", "/a/", "/a//b", "/../b", "/.", "/a b"}},
		{"journal.durability", []string{"fsync", "os"}, []string{"quorum", ""}},
		{"journal.flush-interval", []string{"1ms", "10s", "0.05s"},
			[]string{"0s", "11s", "50", "", "-1ms"}},
		{"journal.reserve-bytes", []string{"0", "4096", "64KiB", "1GiB", "10B", "1024TiB"},
			[]string{"", "-1", "1.5GiB", "1MB", "KiB", "2048TiB", "9223372036854775807KiB",
				"99999999999999999999"}},
		{"ring.input-slots", []string{"1024", "65536"}, []string{"65535", "0", "512", "33554432", "x"}},
		{"session.quota", []string{"1", "16384"}, []string{"0", "16385", "65536", ""}},
		{"matcher.cpu", []string{"none", "0", "1023"}, []string{"", "-1", "1024"}},
		{"database.url", []string{"", "postgres://u:p@h/db", "postgresql://h/db"},
			[]string{"mysql://h", "postgres:", "h/db", "postgres://%zz"}},
		{"nats.url", []string{"", "nats://h:4222", "tls://h"}, []string{"http://h"}},
		{"auth.jwt.secret", []string{"", strings.Repeat("s", 32),
			strings.Repeat("s", 32) + "," + strings.Repeat("t", 32)},
			[]string{strings.Repeat("s", 31), strings.Repeat("s", 40) + "\n",
				strings.Repeat("s", 32) + ",", strings.Repeat("s", 65) + "," + strings.Repeat("t", 31)}},
		{"auth.jwt.leeway", []string{"0s", "30s"}, []string{"31s", "-1s"}},
		{"http.max-body-memory", []string{"16MiB", "1GiB"}, []string{"", "0", "15MiB", "many"}},
		{"http.behind-proxy", []string{"true", "false", "1", "off"}, []string{"", "TRUE", "maybe"}},
		{"risk.seed.accounts", []string{"", "1", "1, 2,4294967295"},
			[]string{"0", "1,1", "1,,2", "x", "4294967296"}},
		{"risk.seed.securities", []string{"", "AAPL, BRK.B"},
			[]string{"aapl", "AAPL,AAPL", "A,", "ABCDEFGHIJKLMNOPQ"}},
		{"risk.max-order-notional", []string{"1", "0.000001", "9223372036854.775807", "5e9"},
			[]string{"0", "-1", "0.0000001", "9223372036854.775808", "", "1,000", "NaN"}},
		{"risk.max-order-quantity", []string{"1", "2147483647"},
			[]string{"0", "2147483648", "1.0", "1e3"}},
		{"recon.blotter.page-size", []string{"1", "1000"}, []string{"0", "1001"}},
		{"settlement.t-plus-days", []string{"0", "365"}, []string{"-1", "366"}},
		{"settlement.timezone", []string{"UTC", "Europe/Berlin"}, []string{"", "Local", "Mars/Base"}},
		{"snapshot.interval-commands", []string{"0", "9223372036854775807"},
			[]string{"-1", "9223372036854775808"}},
	}
	for _, tt := range tests {
		for _, text := range tt.good {
			if _, err := Read(Sources{Flags: []FlagValue{{tt.name, text}}}); err != nil {
				t.Errorf("%s=%q: %v", tt.name, text, err)
			}
		}
		for _, text := range tt.bad {
			_, err := Read(Sources{Flags: []FlagValue{{tt.name, text}}})
			var usage UsageError
			if !errors.As(err, &usage) || !strings.Contains(usage.message, tt.name) {
				t.Errorf("%s=%q: got %v, want an error that names it", tt.name, text, err)
			}
		}
	}
	_, err := Read(Sources{Environ: []string{"TCA_WINDOW_MINUTES=x"}})
	wantUsage(t, err, "tca.window-minutes (environment TCA_WINDOW_MINUTES)")
	_, err = Read(Sources{Flags: []FlagValue{{"no.such", "x"}}})
	wantUsage(t, err, `unknown setting "no.such" (flag)`)
}

func TestAccessorsReturnWhatWasSet(t *testing.T) {
	c := mustConfig(t, "journal.reserve-bytes", "64KiB", "risk.credit-limit", "12.5",
		"auth.jwt.leeway", "3s",
		"recon.grace-ms", "1500", "risk.seed.accounts", "3, 7", "risk.seed.securities", "B,A",
		"http.behind-proxy", "on",
		"sidecars.enabled", "false", "cluster.member-id", "2",
		"cluster.members", "1=127.0.0.1:7001@a:8001,2=127.0.0.1:7002@b:8001")
	check := func(name string, got, want any) {
		t.Helper()
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	check("bytes", c.Bytes("journal.reserve-bytes"), int64(65536))
	check("decimal", c.Decimal("risk.credit-limit"), int64(12_500_000))
	check("duration", c.Duration("auth.jwt.leeway"), 3*time.Second)
	check("millis", c.Millis("recon.grace-ms"), 1500*time.Millisecond)
	check("accounts", c.AccountIDs("risk.seed.accounts"), []uint32{3, 7})
	check("tickers", c.Tickers("risk.seed.securities"), []string{"B", "A"})
	check("bool", c.Bool("http.behind-proxy"), true)
	check("cpu", c.Int("matcher.cpu"), -1)
	check("address", c.Addr("admin.listen"), "127.0.0.1:18111")
	check("members", c.Members(), []quorum.Member{{ID: "1", Raft: "127.0.0.1:7001", HTTP: "a:8001"},
		{ID: "2", Raft: "127.0.0.1:7002", HTTP: "b:8001"}})
	check("sink", c.ExtractSink(), "data/extracts")
	check("own sink", mustConfig(t, "extract.sink", "/x").ExtractSink(), "/x")
}

func TestAccessorsPanicOnBugs(t *testing.T) {
	c := mustConfig(t)
	for name, call := range map[string]func(){
		"unknown name": func() { c.Int("no.such") },
		"other kind":   func() { c.Int("profile") },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			call()
		}()
	}
}

func TestCombinationsAreChecked(t *testing.T) {
	const members = "1=127.0.0.1:7001@a:8001,2=127.0.0.1:7002@b:8001"
	tests := []struct {
		name string
		set  []string
		want string // empty: allowed
	}{
		{"certificate without key", []string{"http.tls-cert", "c.pem"}, "http.tls-cert and http.tls-key"},
		{"admin key without certificate", []string{"admin.tls-key", "k.pem"},
			"admin.tls-cert and admin.tls-key"},
		{"two sources of a secret", []string{"auth.jwt.secret", strings.Repeat("s", 32),
			"auth.jwt.secret-file", "keys"}, "auth.jwt.secret-file"},
		{"public admin", []string{"admin.listen", "0.0.0.0:18111"}, "admin.listen"},
		{"public admin by name", []string{"admin.listen", "matcher.example:1"}, "admin.listen"},
		{"guarded public admin", []string{"admin.listen", "0.0.0.0:18111", "admin.token-guard", "true"},
			""},
		{"public console in dev", []string{"console.listen", "0.0.0.0:18100"}, "console.listen"},
		{"no console", []string{"console.listen", ""}, ""},
		{"loopback admin", []string{"admin.listen", "[::1]:0"}, ""},
		{"member without cluster", []string{"cluster.member-id", "1"}, "cluster.member-id: needs"},
		{"cluster without member", []string{"cluster.members", members}, "cluster.members: needs"},
		{"stranger", []string{"cluster.members", members, "cluster.member-id", "3"},
			"cluster.member-id: 3 is not in"},
		{"cluster without database", []string{"cluster.members", members, "cluster.member-id", "1"},
			"database.url"},
		{"cluster without broker", []string{"cluster.members", members, "cluster.member-id", "1",
			"database.url", "postgres://h/d"}, "nats.url"},
		{"cluster engine alone", []string{"cluster.members", members, "cluster.member-id", "1",
			"sidecars.enabled", "false"}, ""},
		{"cluster with everything", []string{"cluster.members", members, "cluster.member-id", "1",
			"database.url", "postgres://h/d", "nats.url", "nats://h"}, ""},
		{"cluster in the open", []string{"cluster.members", "1=a:7001@a:8001,2=b:7001@b:8001",
			"cluster.member-id", "1", "sidecars.enabled", "false"}, "cluster.tls-cert"},
		{"cluster with certificates", []string{"cluster.members", "1=a:7001@a:8001,2=b:7001@b:8001",
			"cluster.member-id", "1", "sidecars.enabled", "false",
			"cluster.tls-cert", "c.pem", "cluster.tls-key", "k.pem", "cluster.tls-ca", "a.pem"}, ""},
		{"half a certificate", []string{"cluster.members", members, "cluster.member-id", "1",
			"sidecars.enabled", "false", "cluster.tls-cert", "c.pem"}, "cluster.tls-key"},
		{"cluster in mode os", []string{"cluster.members", members, "cluster.member-id", "1",
			"sidecars.enabled", "false", "journal.durability", "os"}, "journal.durability"},
		{"cluster in mode quorum", []string{"cluster.members", members, "cluster.member-id", "1",
			"sidecars.enabled", "false", "journal.durability", "quorum"}, ""},
		{"quorum without cluster", []string{"journal.durability", "quorum"}, "journal.durability"},
		{"member twice", []string{"cluster.members", "1=a:1@a:2,1=b:1@b:2"}, "cluster.members"},
		{"address twice", []string{"cluster.members", "1=a:1@a:2,2=a:1@b:2"}, "cluster.members"},
		{"no http address", []string{"cluster.members", "1=a:1"}, "cluster.members"},
		{"no host", []string{"cluster.members", "1=:1@a:2"}, "cluster.members"},
		{"any port", []string{"cluster.members", "1=a:0@a:2"}, "cluster.members"},
		{"member 0", []string{"cluster.members", "0=a:1@a:2"}, "cluster.members"},
		{"member id 256", []string{"cluster.member-id", "256"}, "cluster.member-id"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := Read(Sources{Flags: pairs(tt.set)})
			if tt.want == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			wantUsage(t, err, tt.want)
		})
	}
}

func TestProductionRefusesUnsafeSettings(t *testing.T) {
	safe := []string{"profile", "production", "risk.entitlement.enforced", "true",
		"reference.write-auth.enforced", "true"}
	member := []string{"cluster.member-id", "1", "sidecars.enabled", "false",
		"cluster.members", "1=127.0.0.1:1@127.0.0.1:2,2=127.0.0.1:3@127.0.0.1:4"}
	tests := []struct {
		name string
		set  []string
		want string
	}{
		{"safe", nil, ""},
		{"entitlement off", []string{"risk.entitlement.enforced", "false"}, "risk.entitlement.enforced"},
		{"write protection off", []string{"reference.write-auth.enforced", "false"},
			"reference.write-auth.enforced"},
		{"public console", []string{"console.listen", "0.0.0.0:1"}, "console.listen"},
		{"public console with TLS", []string{"console.listen", "0.0.0.0:1", "http.tls-cert", "c",
			"http.tls-key", "k"}, ""},
		{"public order-matcher", []string{"order-matcher.listen", "0.0.0.0:1"}, "order-matcher.listen"},
		{"public trade-processor", []string{"trade-processor.listen", ":1"}, "trade-processor.listen"},
		{"public account-service", []string{"account-service.listen", "[::]:1"},
			"account-service.listen"},
		{"public reference-data", []string{"reference-data.listen", "10.0.0.1:1"},
			"reference-data.listen"},
		{"public behind a proxy", []string{"order-matcher.listen", "0.0.0.0:1", "http.behind-proxy",
			"true"}, ""},
		{"public with TLS", []string{"order-matcher.listen", "0.0.0.0:1", "http.tls-cert", "c",
			"http.tls-key", "k"}, ""},
		{"public admin without TLS", []string{"admin.listen", "0.0.0.0:1", "admin.token-guard", "true"},
			"admin.tls-cert"},
		{"public admin with the services' TLS alone", []string{"admin.listen", ":1",
			"admin.token-guard", "true", "http.tls-cert", "c", "http.tls-key", "k",
			"http.behind-proxy", "true"}, "admin.tls-cert"},
		{"public admin with TLS", []string{"admin.listen", "0.0.0.0:1", "admin.token-guard", "true",
			"admin.tls-cert", "c", "admin.tls-key", "k"}, ""},
		{"short master secret", []string{"auth.dev-token.master-secret", "short"},
			"auth.dev-token.master-secret"},
		{"a password in a query", []string{"database.url", "postgres://db/x?user=u&password=p"},
			"database.url"},
		{"a token of a broker", []string{"nats.url", "nats://token@mq"}, "nats.url"},
		{"a password of a second broker", []string{"nats.url", "nats://a:1,nats://u:p@b:2"},
			"nats.url"},
		{"members without certificates", member, "cluster.tls-cert"},
		{"members with certificates", append(slices.Clone(member), "cluster.tls-cert", "c",
			"cluster.tls-key", "k", "cluster.tls-ca", "a"), ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := Read(Sources{Flags: pairs(slices.Concat(safe, tt.set))})
			if tt.want == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			wantUsage(t, err, tt.want+": profile=production needs")
		})
	}
}

func TestTLSComesFromItsFiles(t *testing.T) {
	for of, load := range map[string]func(*Config) (*tls.Config, error){
		servicesTLS: (*Config).TLS, adminTLS: (*Config).AdminTLS,
	} {
		if got, err := load(mustConfig(t)); got != nil || err != nil {
			t.Errorf("%s without a certificate: %v, %v", of, got, err)
		}
		_, err := load(mustConfig(t, of+"-cert", "absent.pem", of+"-key", "absent.pem"))
		if err == nil || !strings.Contains(err.Error(), of+"-cert") {
			t.Errorf("got %v, want an error that names %s-cert", err, of)
		}
	}
}
