package feeds

import (
	"context"
	"crypto/tls"
	"errors"
	"net/http"
	"testing"
	"time"

	"posttrade/sidecars/broker"
	"posttrade/sidecars/outbox"
)

// awayOnce is an ownership whose database answers from the second question on.
type awayOnce struct{ asked bool }

func (o *awayOnce) Own(context.Context, uint64, *outbox.Message) (bool, uint64, error) {
	if !o.asked {
		o.asked = true
		return false, 0, errors.New("away")
	}
	return true, 1, nil
}

func (o *awayOnce) CountForeign(*outbox.Message) {}

// The age of LastHeard must not change when the wall clock is set.
func TestLastHeardBehindAQueryIsMonotonic(t *testing.T) {
	begun := time.Now()
	f := &Following{Following: new(broker.Following), own: new(awayOnce), begun: begun}
	if mine, err := f.mine(t.Context(), new(outbox.Message)); !mine || err != nil {
		t.Fatal(mine, err)
	}
	heard := f.LastHeard()
	if heard == heard.Round(0) || !heard.After(begun) { // Round(0) drops the reading
		t.Errorf("%v has no reading of the monotonic clock, or is not after %v", heard, begun)
	}
}

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
