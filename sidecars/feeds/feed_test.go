package feeds

import (
	"crypto/tls"
	"net/http"
	"testing"
)

// TestSnapshotsAreFetchedWithoutAProxy looks at the transport, because net/http reads HTTP_PROXY
// once for each process and never uses a proxy for loopback.
func TestSnapshotsAreFetchedWithoutAProxy(t *testing.T) {
	for scheme, config := range map[string]*tls.Config{"http": nil, "https": {}} {
		f := NewSnapshotFetcher(config, nil, nil)
		transport, own := f.client.Transport.(*http.Transport)
		if !own || transport.Proxy != nil || f.scheme != scheme {
			t.Errorf("%s: scheme %s, own transport %v", scheme, f.scheme, own)
		}
		if own && (transport.TLSClientConfig != nil) != (config != nil) {
			t.Errorf("%s: TLS %v", scheme, transport.TLSClientConfig)
		}
	}
}
