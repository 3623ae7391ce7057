package installation

import (
	"net/http"
	"strings"
	"testing"

	"posttrade/app/apptest"
	"posttrade/app/settings"
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
	if now, _ := m.open().Core.Journal.Head(); now <= head {
		t.Errorf("the journal ends at %d, before at %d", now, head)
	}
}
