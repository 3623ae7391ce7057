package quorum

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"posttrade/ring/must"
)

// authority signs certificates for tests.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	file string
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	key := newKey(t)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority"}, IsCA: true,
		BasicConstraintsValid: true,
		NotBefore:             time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		KeyUsage: x509.KeyUsageCertSign,
	}
	der := must.Get(x509.CreateCertificate(rand.Reader, template, template, key.Public(), key))(t)
	cert := must.Get(x509.ParseCertificate(der))(t)
	return &authority{cert, key, writePEM(t, "CERTIFICATE", der)}
}

func newKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	return must.Get(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
}

func writePEM(t *testing.T, kind string, der []byte) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "pem")
	must.OK(t, os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600))
	return file
}

// pair signs a certificate for a host, valid until then, and returns its files.
func (a *authority) pair(t *testing.T, host string, until time.Time) (certFile, keyFile string) {
	t.Helper()
	key := newKey(t)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "member"}, DNSNames: []string{host},
		NotBefore: time.Now().Add(-2 * time.Hour), NotAfter: until,
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	if ip := net.ParseIP(host); ip != nil {
		template.DNSNames, template.IPAddresses = nil, []net.IP{ip}
	}
	der := must.Get(x509.CreateCertificate(rand.Reader, template, a.cert, key.Public(), a.key))(t)
	keyDER := must.Get(x509.MarshalECPrivateKey(key))(t)
	return writePEM(t, "CERTIFICATE", der), writePEM(t, "EC PRIVATE KEY", keyDER)
}

// member is the configuration of a member with a good certificate for the loopback address.
func (a *authority) member(t *testing.T) *tls.Config {
	t.Helper()
	return a.config(t, a, "127.0.0.1", time.Now().Add(time.Hour))
}

// config is the configuration of a member with a certificate signed by a, which trusts ca.
func (a *authority) config(t *testing.T, ca *authority, host string, until time.Time) *tls.Config {
	t.Helper()
	certFile, keyFile := a.pair(t, host, until)
	return must.Get(MemberTLS(certFile, keyFile, ca.file))(t)
}

func TestMemberTLSNamesTheFileItCannotUse(t *testing.T) {
	ca := newAuthority(t)
	certFile, keyFile := ca.pair(t, "127.0.0.1", time.Now().Add(time.Hour))
	_, otherKey := ca.pair(t, "127.0.0.1", time.Now().Add(time.Hour))
	for _, tt := range []struct {
		name, cert, key, ca string
		want                error
	}{
		{"no certificate", "absent", keyFile, ca.file, os.ErrNotExist},
		{"no key", certFile, "absent", ca.file, os.ErrNotExist},
		{"no authority", certFile, keyFile, "absent", os.ErrNotExist},
		{"another's key", certFile, otherKey, ca.file, nil},
		{"an authority without a certificate", certFile, keyFile, keyFile, ErrNoCA},
	} {
		t.Run(tt.name, func(t *testing.T) {
			config, err := MemberTLS(tt.cert, tt.key, tt.ca)
			if err == nil || config != nil {
				t.Fatalf("accepted: %v", config)
			}
			if tt.want != nil {
				must.Be(t, err, tt.want)
			}
		})
	}
}
