package installation

import (
	"crypto/tls"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"posttrade/app/apptest"
	"posttrade/app/settings"
	"posttrade/matcher/gate"
	"posttrade/ring/must"
)

// TestAdminListenerTakesTLS serves the admin listener with a certificate of its own. Plain requests
// get nothing. The program's own commands know the certificate and accept no other. Tokens are
// asked for as without TLS, and a renewed certificate is shown without a restart.
func TestAdminListenerTakesTLS(t *testing.T) {
	data := t.TempDir()
	certificate, key := selfSigned(t)
	in := install(t, data, "admin.tls-cert", certificate, "admin.tls-key", key,
		"admin.token-guard", "true")
	in.announced(data)
	if answer, err := http.Get("http://" + in.at("admin") + "/healthz"); err == nil {
		answer.Body.Close()
		if answer.StatusCode == http.StatusOK {
			t.Error("it answers without TLS")
		}
	}
	metrics := gate.Mint([]byte(must.Get(in.config.JWTSecret())(t)),
		gate.Claims{Subject: "scraper", Metrics: true}, "", 300*24*time.Hour, time.Now())
	ask := func(path, token string) int {
		request := must.Get(http.NewRequest("GET", "https://"+in.at("admin")+path, nil))(t)
		if token != "" {
			request.Header.Set("Authorization", "Bearer "+token)
		}
		answer := must.Get(trusting.Do(request))(t)
		defer answer.Body.Close()
		if _, err := io.Copy(io.Discard, answer.Body); err != nil {
			t.Error(err)
		}
		return answer.StatusCode
	}
	for _, tt := range []struct {
		path, token string
		want        int
	}{
		{"/healthz", "", 200}, {"/readyz", "", 200}, {"/metrics", "", 401},
		{"/metrics", metrics, 200}, {"/readyz", metrics, 200}, {"/version", metrics, 403},
		{"/debug/pprof/", metrics, 403}, {"/backup/journal", metrics, 403}, {"/metrics", in.token, 200},
	} {
		if got := ask(tt.path, tt.token); got != tt.want {
			t.Errorf("%s with %.9q: %d, want %d", tt.path, tt.token, got, tt.want)
		}
	}
	if status, _ := getWith(t, "http://"+in.at("trade-processor")+"/recon/status",
		metrics); status != http.StatusForbidden {
		t.Errorf("a token for metrics at a service: %d", status)
	}

	// What a container's health check asks needs neither a token nor the certificate.
	for _, asked := range [][]string{nil, {"--live"}} {
		if code, out, errs := apptest.Run("health", append(asked, "--data.dir="+data)...); code !=
			settings.ExitOK || !strings.HasPrefix(out, "{") {
			t.Errorf("health %v: %d %q %q", asked, code, out, errs)
		}
	}
	night := filepath.Join(t.TempDir(), "night")
	own := []string{"--data.dir=" + data, "--admin.tls-cert=" + certificate, "--admin.tls-key=" + key}
	program(t, "backup", append([]string{night}, own...)...)
	other, otherKey := selfSigned(t)
	programFails(t, settings.ExitFailed, "another certificate than admin.tls-cert", "backup",
		night+"2", "--data.dir="+data, "--admin.tls-cert="+other, "--admin.tls-key="+otherKey)

	for from, to := range map[string]string{other: certificate, otherKey: key} {
		text, err := os.ReadFile(from)
		if err == nil {
			err = os.WriteFile(to, text, 0o600)
		}
		must.OK(t, err)
	}
	if err := in.reload(slog.New(slog.DiscardHandler)); err != nil {
		t.Error(err)
	}
	pair := must.Get(tls.LoadX509KeyPair(other, otherKey))(t)
	c := must.Get(tls.Dial("tcp", in.at("admin"), &tls.Config{InsecureSkipVerify: true}))(t)
	defer c.Close()
	if string(c.ConnectionState().PeerCertificates[0].Raw) != string(pair.Certificate[0]) {
		t.Error("the renewed certificate is not shown")
	}
	program(t, "backup", append([]string{night + "3"}, own...)...)
}
