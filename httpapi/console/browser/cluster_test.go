package browser

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/chromedp/kb"
)

// startCluster starts three members without sidecars.
func startCluster(t *testing.T) []*server {
	t.Helper()
	var members []*server
	var list []string
	for i := range 3 {
		m := newServer(t)
		members = append(members, m)
		list = append(list, fmt.Sprintf("%d=%s@%s", i+1, freePort(t), m.ports["order-matcher"]))
	}
	for i, m := range members {
		m.flags = []string{fmt.Sprintf("--cluster.member-id=%d", i+1),
			"--cluster.members=" + strings.Join(list, ","), "--sidecars.enabled=false",
			"--auth.jwt.secret=" + strings.Repeat("s", 32), "--cluster.heartbeat-ms=500"}
		m.run()
	}
	for _, m := range members {
		m.ready()
	}
	return members
}

// TestAMembersConsoleReachesTheLeader: the console of any member places orders, shows all members,
// and goes on when the leader is killed.
func TestAMembersConsoleReachesTheLeader(t *testing.T) {
	members := startCluster(t)
	leader := ""
	eventually(t, "there is a leader", func() bool {
		leader, _ = members[0].call("GET", "order-matcher", "/health", nil)["leader"].(string)
		return leader != ""
	})
	follower := members[0]
	if leader == "1" {
		follower = members[1]
	}
	p := open(t)
	p.signIn(follower)
	p.goTo(follower, "/cluster")
	p.says("this one", "leader", "follower", "vote")
	p.eventually("three members answer", func() bool {
		return strings.Count(
			eval[string](p, "document.querySelector('table[aria-label=Members]').innerText"),
			"follower") == 2
	})
	p.picture("cluster-three-light-1280")
	p.accessible("cluster-three")
	p.goTo(follower, "/trade?account=1&security=AAPL")
	place := func(want string) {
		t.Helper()
		p.typeIn("Quantity", "5")
		p.typeIn("Price", "187.2")
		p.press(kb.Enter)
		p.says(want)
	}
	follower.price("AAPL", 187.20)
	place("ord-1")
	p.says("durability quorum")
	p.clean(follower)

	members[int(leader[0]-'1')].kill()
	eventually(t, "another member leads", func() bool {
		status, h := follower.try("GET", "order-matcher", "/health", nil)
		next, _ := h["leader"].(string)
		return status == 200 && next != "" && next != leader
	})
	eventually(t, "it takes orders", func() bool {
		status, _ := follower.try("POST", "order-matcher", "/prices",
			[]any{map[string]any{"security": "AAPL", "price": 187.2}})
		return status < 300
	})
	place("ord-2")
	p.eventually("both orders work", func() bool {
		text := eval[string](p,
			"document.querySelector('table[aria-label=\"Working orders\"]').innerText")
		return strings.Count(text, "ord-1") == 1 && strings.Count(text, "ord-2") == 1
	})
	p.goTo(follower, "/cluster")
	p.says("does not answer")
}
