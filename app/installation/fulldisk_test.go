package installation

import (
	"math/rand/v2"
	"strings"
	"testing"

	"posttrade/app/apptest"
)

// A leader whose disk is full gives the leadership to a member with room, and not to another full
// one. Orders go on.
func TestFullLeaderHandsOver(t *testing.T) {
	c := newThree(t)
	const room = 2
	for _, m := range c.members[:room] {
		m.settings = append(m.settings, "journal.reserve-bytes", "1024TiB")
	}
	c.start()
	roomy := func() (bool, any) { return c.leader() == room, c.leader() }
	apptest.Until(t, "the member with room leads", roomy)
	random := rand.New(rand.NewPCG(1, 1))
	c.orders(random, 5)
	for range 2 { // to the first one, which is full
		apptest.Until(t, "a full member leads", func() (bool, any) {
			return c.leader() != room, c.members[room].open().Member.Node.HandOver()
		})
		apptest.Until(t, "the member with room leads again", roomy)
	}
	c.orders(random, 5)
	const line = "the disk is full: the leadership goes to a member with room"
	if n := strings.Count(c.members[0].log.String(), line); n != 1 {
		t.Errorf("%d lines in the log of member 1", n)
	}
	c.alike()
}
