package client

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestWhomTheClientTrusts: the system's authorities have not signed the server's certificate.
func TestWhomTheClientTrusts(t *testing.T) {
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter,
		_ *http.Request) {
		io.WriteString(w, `{"status":"ok"}`) // no report
	}))
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // of the handshakes
	server.StartTLS()
	defer server.Close()
	roots := x509.NewCertPool()
	roots.AddCert(server.Certificate())
	for _, tt := range []struct {
		name    string
		trust   *tls.Config
		trusted bool
	}{
		{"the system's alone", nil, false},
		{"none", &tls.Config{RootCAs: x509.NewCertPool()}, false},
		{"the server's own", &tls.Config{RootCAs: roots}, true},
		{"the server's own, by another name",
			&tls.Config{RootCAs: roots, ServerName: "elsewhere"}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := New(Config{Address: strings.TrimPrefix(server.URL, "https://"), TLS: true,
				TLSConfig: tt.trust})
			defer c.Close()
			if tt.trust != nil {
				tt.trust.RootCAs = nil // the client has its own
			}
			if _, err := c.Health(t.Context()); (err == nil) != tt.trusted {
				t.Errorf("health: %v", err)
			}
			if _, err := c.RegulatoryReport(t.Context(), 0, 0); errors.Is(err, ErrAnswer) != tt.trusted {
				t.Errorf("report: %v", err)
			}
		})
	}
}
