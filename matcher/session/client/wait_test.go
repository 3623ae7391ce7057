package client

import (
	"testing"

	"posttrade/matcher/session/wire"
	"posttrade/ring"
)

// A command that is alone on its way is looked for before the core is given away, one of
// several is not, and what is flushed during an idle spell leaves that spell as it began.
func TestWhoWaitsForSeveralGivesTheCoreAway(t *testing.T) {
	const slots, spins = 8, 3
	total, _ := wire.CommandBytes(slots)
	region, err := ring.Anonymous(total)
	if err != nil {
		t.Fatal(err)
	}
	defer region.Close()
	send, err := ring.NewSPSC[wire.Request](region, slots)
	if err != nil {
		t.Fatal(err)
	}
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
		c.looks = 0 // something came
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
