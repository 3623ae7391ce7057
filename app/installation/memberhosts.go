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
//
// A relay asks for each request that another member sends on, so the answer is kept for a while.
type memberHosts struct {
	// The hosts in the list of members, each once; constant.
	names []string

	mu sync.Mutex
	// When known was made; guarded by mu, like known.
	looked time.Time
	// Looks a name up; tests have another one.
	resolve func(ctx context.Context, name string) ([]string, error)
	// The addresses of all names; nil before the first look-up.
	known []string
}

// The bounds of a look-up of names.
//
// A member that gets another address is recognised after hostsFresh at the latest. hostsWithin is
// for all names of a look-up together, because a request waits for it.
const (
	hostsFresh  = time.Minute
	hostsWithin = time.Second
)

// newMemberHosts takes the hosts of both addresses of each member: requests come from either. It
// looks nothing up.
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
//
// address is an IP address without a port. The request that needs a look-up waits for it at most
// hostsWithin, and others wait for the lock.
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
