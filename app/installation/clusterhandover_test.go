package installation

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"posttrade/app/apptest"
	"posttrade/ring/must"
	"posttrade/sidecars/broker/brokertest"
	"posttrade/sidecars/control"
	"posttrade/sidecars/feeds"
	"posttrade/sidecars/store"
	"posttrade/sidecars/store/storetest"
)

// leaderOf waits until a member leads and has opened the leader's services.
func (c *three) leaderOf() (at int, in *Installation) {
	c.t.Helper()
	apptest.Until(c.t, "a leader with its sidecars", func() (bool, any) {
		for i, m := range c.members {
			if in = m.open(); in != nil && in.Member.Node.Leads() && in.Beside.Load() != nil &&
				in.Core.Gate.Ready() {
				at = i
				return true, nil
			}
		}
		return false, c.members[0].log.String()
	})
	return at, in
}

// TestSidecarsMoveWithTheLeader trades on three members with a shared database and broker, stops
// the leader twice, and changes accounts and stocks through members that do not lead. Every fill
// has one row that agrees. Every change is on its stream once and in force, under every leader.
func TestSidecarsMoveWithTheLeader(t *testing.T) {
	if !hasPostgres(t) {
		return // members share a server
	}
	o := storetest.Options(t, store.Postgres)
	nats := brokertest.External(t)
	c := newThree(t, append([]string{
		"sidecars.enabled", "true", "risk.bootstrap.enabled", "true", "database.url", o.URL, "nats.url",
		nats.URL(),
	}, quick...)...)
	c.start()
	n, stocks := 0, 0
	trade := func(pairs int) {
		for range pairs {
			n++
			for _, side := range []string{"Buy", "Sell"} {
				body := fmt.Sprintf(
					`{"clientOrderId":"h%d%s","accountId":%d,"security":"AAPL","side":%q,"quantity":5,`+
						`"limitPrice":150}`, n, side, 1+len(side)%2, side)
				if status, answer := c.post(n, "/orders", body); status != 201 {
					t.Fatalf("order: %d %s", status, answer)
				}
			}
		}
	}
	addStock := func(at int) {
		stocks++
		body := fmt.Sprintf(`{"ticker":"NEW%d","companyName":"new"}`, stocks)
		apptest.Until(t, "a new stock", func() (bool, any) {
			in := c.members[at%3].open()
			if in == nil {
				at++
				return false, nil
			}
			status, answer := call(t, "POST", "http://"+in.listeners.addresses()["reference-data"]+"/stocks",
				body)
			return status == 201 || status == 200, answer
		})
	}
	for range 3 {
		at, leader := c.leaderOf()
		trade(40)
		addStock(at + 1)
		ticker := fmt.Sprintf("NEW%d", stocks)
		apptest.Until(t, ticker+" at every gate", func() (bool, any) {
			for _, m := range c.members {
				if in := m.open(); in != nil {
					if _, ok := in.Core.Gate.Security([]byte(ticker)); !ok {
						return false, m.id
					}
				}
			}
			return true, nil
		})
		if leader.Member.Node.Leads() {
			c.members[at].stop()
		}
		next, _ := c.leaderOf()
		trade(20)
		addStock(next)
		c.members[at].start()
		c.members[at].awaitOpen()
	}
	c.alike()
	_, leader := c.leaderOf()
	for _, m := range c.members {
		apptest.Until(t, fmt.Sprintf("member %d is ready", m.id), func() (bool, any) {
			in := m.open()
			if in == nil {
				return false, nil
			}
			status, answer := call(t, "GET", "http://"+in.listeners.addresses()["admin"]+"/readyz", "")
			return status == 200, answer
		})
	}
	apptest.Until(t, "every fill is projected", func() (bool, any) {
		d := leader.Beside.Load()
		if d == nil {
			_, leader = c.leaderOf()
			return false, nil
		}
		return d.projected() >= leader.Core.Journal.Answered()-1, d.projected()
	})
	in := &installed{t: t, Installation: leader}
	tr := replayJournal(t, leader.Core)
	rows := in.rows()
	if len(rows) != len(tr.fills) || len(rows) != 2*n {
		t.Errorf("%d rows, %d fills, %d orders traded", len(rows), len(tr.fills), 2*n)
	}
	if !slices.IsSortedFunc(rows, func(a, b store.Trade) int {
		return strings.Compare(fmt.Sprintf("%020d", a.Seq), fmt.Sprintf("%020d", b.Seq))
	}) {
		t.Error("rows are out of order")
	}
	stream := feeds.Stream{Broker: leader.Beside.Load().broker, Source: control.Security}
	last, _, _, err := stream.Last(t.Context())
	must.OK(t, err)
	t.Logf("%d fills, %d stocks added, the stream ends at %d", len(rows), stocks, last.Sequence)
}
