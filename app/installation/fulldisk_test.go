package installation

import (
	"math/rand/v2"
	"strings"
	"testing"

	"posttrade/app/apptest"
)

// A leader whose disk is full gives the leadership to a member with room, and orders go on. While
// most members are full it keeps the leadership: no order may fill their disks to the last byte.
func TestFullLeaderHandsOver(t *testing.T) {
	c := newThree(t)
	const full = 0
	c.members[full].settings = append(c.members[full].settings, "journal.reserve-bytes", "1024TiB")
	c.start()
	roomy := func() (bool, any) { return c.leader() > full, c.leader() }
	apptest.Until(t, "a member with room leads", roomy)
	random := rand.New(rand.NewPCG(1, 1))
	c.orders(random, 5)
	for range 2 { // to the first one, which is full
		apptest.Until(t, "the full member leads", func() (bool, any) {
			at := c.leader()
			return at == full, c.members[max(at, 0)].open().Member.Node.HandOver()
		})
		apptest.Until(t, "a member with room leads again", roomy)
	}
	c.orders(random, 5)
	const line = "the disk is full: the leadership goes to a member with room"
	if n := strings.Count(c.members[full].log.String(), line); n != 1 {
		t.Errorf("%d lines in the log of member 1", n)
	}
	c.alike()
}
