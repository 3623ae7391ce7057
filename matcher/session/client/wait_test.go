package client

import (
	"testing"

	"posttrade/matcher/session/wire"
	"posttrade/ring"
	"posttrade/ring/must"
)

// For a single command on its way, the client looks before it gives the core away; for one of
// several it does not. A flush during idle time does not change the number of looks at once in that
// idle time.
func TestWhoWaitsForSeveralGivesTheCoreAway(t *testing.T) {
	const slots, spins = 8, 3
	total, _ := wire.CommandBytes(slots)
	region := must.Get(ring.Anonymous(total))(t)
	defer region.Close()
	send := must.Get(ring.NewSPSC[wire.Request](region, slots))(t)
	c := &Client{send: send, spins: spins, yields: 100}
	for _, tt := range []struct{ flushed, answers, during, looks int }{
		{looks: spins},
		{flushed: 1, looks: spins},
		{flushed: 1, answers: 1, during: 1, looks: spins},
		{flushed: 0, looks: 0}, // two are on their way by now
		{flushed: 1, looks: 0},
		{flushed: 0, answers: 2, looks: spins}, // of three
	} {
		flush := func(n int) {
			for range n {
				send.Claim()
			}
			send.Publish()
		}
		flush(tt.flushed)
		c.answers += int64(tt.answers)
		c.looks = 0 // a record arrived
		c.wait()
		flush(tt.during)
		for range spins + 2 {
			c.wait()
		}
		if c.first != tt.looks || c.looks != spins+3 {
			t.Errorf("%+v: %d looks before a yield and %d in all", tt, c.first, c.looks)
		}
	}
}
