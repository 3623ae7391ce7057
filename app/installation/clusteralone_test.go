package installation

import (
	"net"
	"net/http"
	"strings"
	"testing"

	"posttrade/app/apptest"
	"posttrade/app/settings"
	"posttrade/journal/quorum"
	"posttrade/ring/must"
)

// TestAMemberGoesOnAlone: while another member takes part the command is refused and nothing
// changes. When the others are gone, the member leads by itself and takes orders.
func TestAMemberGoesOnAlone(t *testing.T) {
	c := newThree(t)
	c.start()
	if status, answer := c.post(0, "/orders", sellOrder); status != http.StatusCreated {
		t.Fatalf("order: %d %s", status, answer)
	}
	head := c.alike()
	m := c.members[2]
	m.stop()
	args := []string{"alone", "--data.dir=" + m.data, "--cluster.members=" + m.settings[3],
		"--cluster.member-id=3"}
	programFails(t, settings.ExitFailed, "takes part: its disk is not lost", "cluster", args...)
	c.members[0].stop()
	c.members[1].stop()
	first, _, _ := strings.Cut(m.settings[3], ",")
	at := must.Get(quorum.ParseMember(first))(t).Raft
	mute := must.Get(net.Listen("tcp", at))(t) // its machine is there, and it does not speak
	go func() {
		for {
			conn, err := mute.Accept()
			if err != nil {
				return
			}
			conn.Close()
		}
	}()
	programFails(t, settings.ExitFailed, "whether its disk is lost cannot be told", "cluster", args...)
	mute.Close()
	program(t, "cluster", args...)
	m.start()
	m.awaitOpen()
	apptest.Until(t, "it leads", func() (bool, any) {
		return m.open().Member.Node.Leads(), m.log.String()
	})
	order := strings.Replace(sellOrder, `"s"`, `"s2"`, 1)
	if status, answer := c.post(2, "/orders", order); status != http.StatusCreated {
		t.Errorf("order: %d %s", status, answer)
	}
	apptest.Until(t, "its journal has the order", func() (bool, any) {
		now, _ := m.open().Core.Journal.Head()
		return now > head, now
	})
}
