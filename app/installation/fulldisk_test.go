package installation

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"strings"
	"testing"

	"posttrade/app/apptest"
	"posttrade/ring/must"
	"posttrade/sidecars/broker"
	"posttrade/sidecars/riskextract"
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

// While the disk is full, prices and the end of a day from the message broker lengthen the journal
// as little as the requests for the same do. The end of the day stays with the broker, and is
// sequenced when there is room.
func TestMessagesAreNotSequencedOnAFullDisk(t *testing.T) {
	i := install(t, t.TempDir(), "journal.reserve-bytes", "1024TiB")
	head := i.Core.Journal.Answered()
	for _, path := range []string{"/prices", "/risk/extract"} {
		body := map[string]string{"/prices": `[{"security":"AAPL","price":5}]`,
			"/risk/extract": `{"sessionDate":"2026-11-20"}`}[path]
		if status, text := requested(i, i.token, "POST", "order-matcher", path, body); status != 503 ||
			!strings.Contains(text, "STORAGE_FULL") {
			t.Errorf("%s: %d %s", path, status, text)
		}
	}
	d := i.Beside.Load()
	for range 3 {
		d.prices.Take("pricing.AAPL", []byte(`{"ticker":"AAPL","price":5}`))
	}
	apptest.Until(t, "the prices are dropped", func() (bool, any) {
		if n := d.prices.Sequenced.Load(); n > 0 {
			t.Fatalf("%d prices are sequenced", n)
		}
		return d.prices.Dropped.Load() == 3, nil
	})
	x := NewExtracts(i.config, i.Core, nil, nil, riskextract.RoleSingle, slog.Default())
	word := broker.Message{Sequence: 1, Data: []byte(`{"sessionDate":"2026-11-20","version":1}`)}
	ended, end := context.WithCancel(t.Context())
	end() // it waits for no extract
	must.Be(t, x.take(ended, []broker.Message{word}), errShut)
	if n := i.Core.Journal.Answered(); n != head {
		t.Errorf("%d commands came to a full disk", n-head)
	}
}
