package session

import (
	"testing"
	"time"

	"posttrade/matcher"
	"posttrade/matcher/session/client"
	"posttrade/matcher/session/wire"
)

func TestBuckets(t *testing.T) {
	for _, tt := range []struct {
		nanos int64
		want  int
	}{{-1, 0}, {0, 0}, {1, 1}, {2, 2}, {3, 2}, {4, 3}, {1023, 10}, {1024, 11}, {1 << 34, 35},
		{1<<63 - 1, TimeBuckets - 1}} {
		if got := bucketOf(tt.nanos); got != tt.want {
			t.Errorf("%d ns: bucket %d, want %d", tt.nanos, got, tt.want)
		}
		if b := bucketOf(tt.nanos); b < TimeBuckets-1 && tt.nanos >= int64(1)<<b {
			t.Errorf("%d ns are not below the bound of bucket %d", tt.nanos, b)
		}
	}
	var times Times
	if times.At(1) != 0 {
		t.Error("a time of nothing")
	}
	times[10], times[12] = 99, 1
	for share, want := range map[float64]time.Duration{0.5: 1024, 0.99: 1024, 0.999: 4096, 1: 4096} {
		if got := times.At(share); got != want {
			t.Errorf("share %v: %v, want %v", share, got, want)
		}
	}
}

// Every answered command, decided or turned down, is timed once, under its own session. The count
// stays when the session ends.
func TestCommandsAreTimed(t *testing.T) {
	r := newRig(t)
	one, other := r.dial("", client.Options{}), r.dial("", client.Options{})
	r.dial("", client.Options{Role: wire.Trades})
	for i := range 10 {
		send(t, one, uint64(i), order(), "")
	}
	send(t, one, 11, with(order(), func(c *matcher.Command) { c.Qty = 0 }), "")
	send(t, other, 1, order(), "")
	list := r.server.Sessions(nil)
	if len(list) != 3 || list[0].Role != wire.Orders || list[2].Role != wire.Trades ||
		list[0].Peer == 0 || list[0].ID == list[1].ID {
		t.Fatalf("%+v", list)
	}
	for i, want := range []uint64{11, 1, 0} {
		if got := list[i].Times.Count(); got != want {
			t.Errorf("session %d: %d timed, want %d", i, got, want)
		}
	}
	if p50, most := list[0].Times.At(0.5), list[0].Times.At(1); p50 <= 0 || p50 > most {
		t.Errorf("p50 %v of at most %v", p50, most)
	}
	one.Close()
	until(t, "left", func() bool { return r.server.Metrics().Orders == 1 })
	times := r.server.Metrics().Times
	if got := times.Count(); got != 12 || len(r.server.Sessions(nil)) != 2 {
		t.Errorf("%d timed in all, %+v", got, r.server.Sessions(nil))
	}
}
