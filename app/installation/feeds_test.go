package installation

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"posttrade/app/apptest"
	"posttrade/app/settings"
	"posttrade/matcher/gate"
	"posttrade/ring/must"
	"posttrade/sidecars/bootstrap"
	"posttrade/sidecars/broker/brokertest"
	"posttrade/sidecars/control"
	"posttrade/sidecars/store"
)

// installFed opens an installation with a gate that follows the control sources.
func installFed(t *testing.T, data string, nameValue ...string) *installed {
	t.Helper()
	return install(t, data, append([]string{"risk.bootstrap.enabled", "true"}, nameValue...)...)
}

// trusting is a client for services with a certificate that no authority has signed.
var trusting = &http.Client{
	Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}

// requested calls a service and returns status and body; with token "" it sends no token.
func requested(i *installed, token, method, service, path, body string) (int, string) {
	i.t.Helper()
	scheme := "http://"
	if i.config.String("http.tls-cert") != "" && service != "admin" {
		scheme = "https://"
	}
	asked := must.Get(http.NewRequest(method, scheme+i.at(service)+path, strings.NewReader(body)))(i.t)
	if token != "" {
		asked.Header.Set("Authorization", "Bearer "+token)
	}
	answer := must.Get(trusting.Do(asked))(i.t)
	defer answer.Body.Close()
	text := must.Get(io.ReadAll(answer.Body))(i.t)
	return answer.StatusCode, string(text)
}

// refusalOf sends an order and returns "" when it is accepted, otherwise the reason.
func refusalOf(i *installed, account uint32, ticker string) string {
	i.t.Helper()
	status, body := requested(i, i.token, "POST", "order-matcher", "/orders",
		fmt.Sprintf(`{"accountId":%d,"security":%q,"side":"Buy","quantity":1,"limitPrice":1}`, account,
			ticker))
	if status == http.StatusCreated {
		return ""
	}
	var refused struct{ Reason string }
	if err := json.Unmarshal([]byte(body), &refused); err != nil || refused.Reason == "" {
		return fmt.Sprint(status, " ", body)
	}
	return refused.Reason
}

// awaitAdmission returns when an order of the account in the security has that outcome.
func awaitAdmission(i *installed, account uint32, ticker, want string) {
	i.t.Helper()
	apptest.Until(i.t, fmt.Sprintf("an order of account %d in %s: %q", account, ticker, want),
		func() (bool, any) {
			got := refusalOf(i, account, ticker)
			return got == want, got
		})
}

// postAccount and postStock change a record through its service.
func postAccount(i *installed, id uint32, enabled bool) {
	i.t.Helper()
	body := fmt.Sprintf(`{"id":%d,"displayName":"Account %d","enabled":%v}`, id, id, enabled)
	if status, text := requested(i, i.token, "POST", "account-service", "/account/",
		body); status != http.StatusOK {
		i.t.Fatalf("account %d: %d %s", id, status, text)
	}
}

func postStock(i *installed, ticker string, enabled, halted bool) (status int) {
	i.t.Helper()
	body := fmt.Sprintf(`{"ticker":%q,"companyName":"Company","enabled":%v,"halted":%v}`, ticker,
		enabled, halted)
	status, text := requested(i, i.token, "POST", "reference-data", "/stocks", body)
	if status != http.StatusOK && status != http.StatusCreated {
		i.t.Fatalf("stock %s: %d %s", ticker, status, text)
	}
	return status
}

// awaitFed returns when every source is ready and the gate shows exactly the records of the
// services.
func awaitFed(i *installed) {
	i.t.Helper()
	apptest.Until(i.t, "the gate shows what the sources have", func() (bool, any) {
		if s := i.Core.Gate.Snapshot(); !s.Ready {
			return false, s.Sources
		}
		differ := feedDifference(i)
		return differ == "", differ
	})
}

// feedDifference is the first record on which the gate and a service disagree.
func feedDifference(i *installed) string {
	i.t.Helper()
	accounts, err := i.Beside.Load().sources.accounts.List(i.t.Context())
	if err != nil {
		return err.Error()
	}
	securities, err := i.Beside.Load().sources.securities.List(i.t.Context())
	if err != nil {
		return err.Error()
	}
	want := map[string]string{}
	for _, a := range accounts {
		want[fmt.Sprint(a.ID)] = fmt.Sprint(a.Enabled, false)
	}
	for _, s := range securities {
		want[s.Ticker] = fmt.Sprint(s.Enabled, s.Halted)
	}
	image := i.Core.Gate.Snapshot()
	got := map[string]string{}
	for _, a := range image.Accounts {
		got[fmt.Sprint(a.ID)] = fmt.Sprint(a.Enabled, false)
	}
	for _, s := range image.Securities {
		got[s.Ticker] = fmt.Sprint(s.Enabled, s.Halted)
	}
	for key, flags := range want {
		if got[key] != flags {
			return fmt.Sprintf("%s is %q in the gate, %q at its source", key, got[key], flags)
		}
	}
	for key, flags := range got {
		if want[key] == "" && !strings.HasPrefix(flags, "false") {
			return fmt.Sprintf("%s is %q in the gate and nowhere else", key, flags)
		}
	}
	return ""
}

func feedStatus(i *installed, s control.Source) bootstrap.Status {
	return i.Beside.Load().sources.feeds[s].Bootstrap.Load().Status()
}

// TestSourceChangesReachTheGate makes accounts and securities, closes, halts and opens them through
// their services, and checks that orders follow. Then it starts again and finds the same universe,
// without a command that repeats what is known.
func TestSourceChangesReachTheGate(t *testing.T) {
	eachDatabase(t, func(t *testing.T, d store.Dialect) {
		data, flags := t.TempDir(), databaseFlags(t, d)
		i := installFed(t, data, flags...)
		awaitFed(i)
		if got := refusalOf(i, 1, "ZZTOP"); got != "UNKNOWN_SECURITY" {
			t.Errorf("an unknown security: %q", got)
		}
		if got := refusalOf(i, 777, "AAPL"); got != "UNKNOWN_ACCOUNT" {
			t.Errorf("an unknown account: %q", got)
		}
		if status := postStock(i, "ZZTOP", true, false); status != http.StatusCreated {
			t.Errorf("a new stock: %d", status)
		}
		awaitAdmission(i, 1, "ZZTOP", "")
		for _, flags := range [][2]bool{{false, false}, {true, true}, {false, true}} {
			if status := postStock(i, "ZZTOP", flags[0], flags[1]); status != http.StatusOK {
				t.Errorf("a stock that is there: %d", status)
			}
			awaitAdmission(i, 1, "ZZTOP", "SECURITY_DISABLED")
			postStock(i, "ZZTOP", true, false)
			awaitAdmission(i, 1, "ZZTOP", "")
		}
		postAccount(i, 777, false)
		awaitAdmission(i, 777, "AAPL", "ACCOUNT_DISABLED")
		postAccount(i, 777, true)
		awaitAdmission(i, 777, "AAPL", "")
		postAccount(i, 2, false)
		awaitAdmission(i, 2, "AAPL", "ACCOUNT_DISABLED")
		if got := refusalOf(i, 1, "AAPL"); got != "" {
			t.Errorf("an account that no operator has touched: %q", got)
		}
		awaitFed(i)
		awaitRecorded(i)
		before, head := i.Core.Gate.Snapshot(), i.Core.Journal.Answered()
		i.stop()

		for start := range 2 {
			i = installFed(t, data, flags...)
			awaitFed(i)
			after := i.Core.Gate.Snapshot()
			if !reflect.DeepEqual(after, before) {
				t.Errorf("start %d: the image is\n%+v\nbefore\n%+v", start, after, before)
			}
			if now := i.Core.Journal.Answered(); now != head {
				t.Errorf("start %d sequenced %d commands that say nothing new", start, now-head)
			}
			i.stop()
		}
		if code, out, errs := apptest.Run("journal", "verify", "--data.dir="+data); code !=
			settings.ExitOK {
			t.Errorf("verify: %d %s %s", code, out, errs)
		}
		// The universe is in the journal: without the sources it is the same.
		i = install(t, data, flags...)
		if after := i.Core.Gate.Snapshot(); !reflect.DeepEqual(after.Accounts, before.Accounts) ||
			!reflect.DeepEqual(after.Securities, before.Securities) {
			t.Error("a replay of the journal alone gives another universe")
		}
	})
}

// feedPromise is the time in which a change must be in force with default settings.
const feedPromise = 500 * time.Millisecond

func TestChangeIsInForceSoon(t *testing.T) {
	i := installFed(t, t.TempDir())
	awaitFed(i)
	var took []time.Duration
	for n := range 10 {
		ticker := fmt.Sprintf("SOON%d", n)
		for _, step := range []struct {
			change func()
			want   string
		}{
			{func() { postStock(i, ticker, true, false) }, ""},
			{func() { postStock(i, ticker, false, false) }, "SECURITY_DISABLED"},
			{func() { postAccount(i, 3, n%2 == 0); postStock(i, ticker, true, false) },
				map[bool]string{true: "", false: "ACCOUNT_DISABLED"}[n%2 == 0]},
		} {
			begun := time.Now()
			step.change()
			awaitAdmission(i, 3, ticker, step.want)
			took = append(took, time.Since(begun))
		}
		if n%2 == 1 {
			postAccount(i, 3, true)
			awaitFed(i)
		}
	}
	slices.Sort(took)
	t.Logf("median %v, longest %v of %d", took[len(took)/2], took[len(took)-1], len(took))
	if took[0] > feedPromise { // the fastest of them, because the machine may be busy
		t.Errorf("a change is in force after %v, at the fastest of %d", took[0], len(took))
	}
}

// TestSeedsOnly is risk.bootstrap.enabled=false, and the same without sidecars: ready at once, and
// changes at the services do not change the gate.
func TestSeedsOnly(t *testing.T) {
	t.Run("bootstrap disabled", func(t *testing.T) {
		i := install(t, t.TempDir())
		if !i.Core.Gate.Ready() {
			t.Error("not ready at once")
		}
		if got := refusalOf(i, 1, "AAPL"); got != "" {
			t.Errorf("an order: %q", got)
		}
		before := i.Core.Gate.Snapshot()
		postStock(i, "ZZTOP", true, false)
		postStock(i, "AAPL", false, false)
		postAccount(i, 1, false)
		apptest.Until(t, "the changes are published", func() (bool, any) {
			n := map[control.Source]uint64{}
			for name, feed := range i.Beside.Load().sources.feeds {
				n[name] = feed.Outbox.Published()
				if feed.Outbox.Unpublished() > 0 {
					return false, n
				}
			}
			return n[control.Account] == 12+1 && n[control.Security] == 583+2, n
		})
		if after := i.Core.Gate.Snapshot(); !reflect.DeepEqual(after, before) {
			t.Errorf("the gate has changed: %+v", after.Sources)
		}
		if got := refusalOf(i, 1, "AAPL"); got != "" {
			t.Errorf("an order of an account that its service has closed: %q", got)
		}
		if got := refusalOf(i, 1, "ZZTOP"); got != "UNKNOWN_SECURITY" {
			t.Errorf("an order in a security that came later: %q", got)
		}
		wantMetrics(t, i, `svc_replica_ready{source="account"} 1`,
			`svc_replica_ready{source="security"} 1`)
	})
	t.Run("no sidecars", func(t *testing.T) {
		i := install(t, t.TempDir(), "sidecars.enabled", "false", "risk.bootstrap.enabled", "true")
		if !i.Core.Gate.Ready() {
			t.Error("not ready at once")
		}
		if got := refusalOf(i, 1, "AAPL"); got != "" {
			t.Errorf("an order: %q", got)
		}
		if status, body := requested(i, "", "GET", "admin", "/readyz", ""); status != http.StatusOK {
			t.Errorf("readyz: %d %s", status, body)
		}
	})
}

// wantMetrics waits for metrics in which each of lines is the start of a line: gauges are updated
// with a delay.
func wantMetrics(t *testing.T, i *installed, lines ...string) {
	t.Helper()
	apptest.Until(t, "/metrics has every line", func() (bool, any) {
		status, text := requested(i, i.token, "GET", "admin", "/metrics", "")
		for _, line := range lines {
			if !strings.Contains("\n"+text, "\n"+line) {
				return false, fmt.Sprintf("%d without %s", status, line)
			}
		}
		return true, nil
	})
}

func TestFeedMetrics(t *testing.T) {
	i := installFed(t, t.TempDir())
	awaitFed(i)
	lines := []string{
		"# TYPE svc_replica_source_watermark gauge", "# TYPE svc_replica_quarantine_total counter",
		"# TYPE svc_outbox_publish_lag_seconds gauge", "# TYPE svc_outbox_unpublished_rows gauge",
		"# TYPE svc_replica_ready gauge",
		`svc_replica_source_watermark{source="account"} 12`,
		`svc_replica_source_watermark{source="security"} 583`,
	}
	for _, s := range []string{"account", "security"} {
		lines = append(lines, fmt.Sprintf("svc_replica_ready{source=%q} 1", s),
			fmt.Sprintf("svc_outbox_publish_lag_seconds{source=%q} 0", s),
			fmt.Sprintf("svc_outbox_unpublished_rows{source=%q} 0", s),
			fmt.Sprintf("svc_replica_bootstrap_seconds{source=%q}", s),
			fmt.Sprintf("svc_replica_lag_records{source=%q} 0", s))
		for _, reason := range bootstrap.Reasons() {
			lines = append(lines, fmt.Sprintf("svc_replica_quarantine_total{reason=%q,source=%q} 0", reason,
				s))
		}
	}
	wantMetrics(t, i, lines...)
}

// TestFeedsBehindTokensAndTLS turns on everything that a production installation may use: writes
// and snapshots need an admin's token, and the services use TLS.
func TestFeedsBehindTokensAndTLS(t *testing.T) {
	certificate, key := selfSigned(t)
	server := brokertest.External(t)
	i := installFed(t, t.TempDir(), "nats.url", server.URL(), "controlfeed.snapshot-auth", "true",
		"reference.write-auth.enforced", "true",
		"http.tls-cert", certificate, "http.tls-key", key)
	awaitFed(i)
	user := gate.Mint(mustSecret(t, i), gate.Claims{Subject: "user", Accounts: []uint32{1}}, "",
		time.Hour, time.Now())
	for _, at := range []struct{ method, service, path, body string }{
		{"GET", "account-service", "/account/control-snapshot", ""},
		{"GET", "reference-data", "/stocks/control-snapshot", ""},
		{"POST", "reference-data", "/stocks", `{"ticker":"ZZTOP","companyName":"Z"}`},
		{"POST", "account-service", "/account/", `{"id":777,"displayName":"Z"}`},
	} {
		for token, want := range map[string]int{"": 401, user: 403} {
			if status, body := requested(i, token, at.method, at.service, at.path, at.body); status != want {
				t.Errorf("%s %s: %d %s, want %d", at.method, at.path, status, body, want)
			}
		}
	}
	postStock(i, "ZZTOP", true, false)
	postAccount(i, 777, true)
	awaitAdmission(i, 777, "ZZTOP", "")
	// The replica fetches again, not just once.
	server.DeleteConsumers(control.Account.Stream())
	apptest.Until(t, "quarantined and healed", func() (bool, any) {
		s := feedStatus(i, control.Account)
		return s.Quarantines[bootstrap.Disconnected] == 1 && s.State == bootstrap.Ready, s
	})
}

func mustSecret(t *testing.T, i *installed) []byte {
	t.Helper()
	return must.Get(i.config.JWTSecret())(t)
}

// selfSigned writes a self-signed certificate and its key.
func selfSigned(t *testing.T, names ...string) (certificate, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must.OK(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "posttrade"},
		IPAddresses: []net.IP{net.IPv6loopback}, DNSNames: names,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	must.OK(t, err)
	text, err := x509.MarshalPKCS8PrivateKey(private)
	must.OK(t, err)
	dir := t.TempDir()
	certificate, key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	for name, block := range map[string]*pem.Block{certificate: {Type: "CERTIFICATE", Bytes: der},
		key: {Type: "PRIVATE KEY", Bytes: text}} {
		must.OK(t, os.WriteFile(name, pem.EncodeToMemory(block), 0o600))
	}
	return certificate, key
}
