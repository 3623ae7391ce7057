package installation

import (
	"context"
	"net"
	"slices"
	"sync"
	"time"

	"posttrade/journal/quorum"
)

// memberHosts knows the addresses of the hosts that the members run on.
type memberHosts struct {
	names []string

	mu      sync.Mutex
	looked  time.Time
	resolve func(ctx context.Context, name string) ([]string, error)
	known   []string
}

// The bounds of a look-up of names.
const (
	hostsFresh  = time.Minute
	hostsWithin = time.Second
)

func newMemberHosts(members []quorum.Member) *memberHosts {
	h := &memberHosts{resolve: net.DefaultResolver.LookupHost}
	for _, m := range members {
		for _, at := range []string{m.HTTP, m.Raft} {
			if host, _, err := net.SplitHostPort(at); err == nil && !slices.Contains(h.names, host) {
				h.names = append(h.names, host)
			}
		}
	}
	return h
}

// has reports that an address is the host of a member. It looks names up at most once a minute; a
// name that cannot be looked up has no address.
func (h *memberHosts) has(address string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.known == nil || time.Since(h.looked) > hostsFresh {
		h.looked, h.known = time.Now(), []string{}
		ctx, cancel := context.WithTimeout(context.Background(), hostsWithin)
		defer cancel()
		for _, name := range h.names {
			if found, err := h.resolve(ctx, name); err == nil {
				h.known = append(h.known, found...)
			}
		}
	}
	return slices.Contains(h.known, address)
}
