package quorum

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
)

// ErrNoCA: the file of the members' certificate authority has no certificate in it.
var ErrNoCA = errors.New("no certificate in the file")

// MemberTLS reads what a member needs to talk to the others: its certificate and key, and the
// authority that has signed those of all members. Both sides of a connection prove their identity,
// over TLS 1.3. The dialling side also checks that the certificate is made out to the host that it
// has dialled. So a member's certificate is for server and client use.
//
// The files are read at the call: the result does not follow later changes of them. Errors name the
// file; ErrNoCA for one without a certificate.
func MemberTLS(certFile, keyFile, caFile string) (*tls.Config, error) {
	cert, err := tls.LoadX509KeyPair(certFile, keyFile)
	if err != nil {
		return nil, fmt.Errorf("quorum: read certificate=%s key=%s: %w", certFile, keyFile, err)
	}
	pem, err := os.ReadFile(caFile)
	if err != nil {
		return nil, fmt.Errorf("quorum: read ca=%s: %w", caFile, err)
	}
	authority := x509.NewCertPool()
	if !authority.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("quorum: read ca=%s: %w", caFile, ErrNoCA)
	}
	return &tls.Config{
		Certificates: []tls.Certificate{cert},
		RootCAs:      authority,
		ClientCAs:    authority,
		ClientAuth:   tls.RequireAndVerifyClientCert,
		MinVersion:   tls.VersionTLS13,
		// A resumed session would outlive a certificate that has expired meanwhile.
		SessionTicketsDisabled: true,
	}, nil
}
