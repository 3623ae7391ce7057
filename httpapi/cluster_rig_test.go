package httpapi

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
)

// leading is a cluster that the named member leads, without end.
func leading(member string) Cluster {
	c := &fakeCluster{member: member}
	c.lead(member, map[string]string{})
	return c
}

// fakeCluster is a Cluster as one member sees it.
type fakeCluster struct {
	member string
	asked  atomic.Int64 // calls of Confirm

	mu        sync.Mutex
	leads     bool
	leader    string
	addresses map[string]string // of the leader's services
	doubt     error             // of Confirm
	onLeader  func()            // called by every Leader, before it looks
}

func (c *fakeCluster) Member() string { return c.member }

func (c *fakeCluster) Leads() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.leads
}

func (c *fakeCluster) Leader(service string) (member, address string) {
	c.mu.Lock()
	hook := c.onLeader
	c.mu.Unlock()
	if hook != nil {
		hook()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.leader, c.addresses[service]
}

func (c *fakeCluster) Confirm(ctx context.Context) error {
	c.asked.Add(1)
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := ctx.Deadline(); !ok {
		return errors.New("confirm without a deadline")
	}
	return c.doubt
}

// lead makes a member the leader as this member sees it; "" for none.
func (c *fakeCluster) lead(member string, addresses map[string]string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.leads, c.leader, c.addresses = member == c.member, member, addresses
}

// set changes what the member sees.
func (c *fakeCluster) set(change func(c *fakeCluster)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	change(c)
}
