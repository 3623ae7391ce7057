package session

import (
	"fmt"
	"testing"

	"posttrade/journal"
	"posttrade/matcher"
	"posttrade/matcher/session/client"
	"posttrade/matcher/session/wire"
	"posttrade/ring"
)

// BenchmarkSession has a client in another process, which sends orders that trade: over the whole
// path in memory, where every event is durable at once, and with a journal on disk.
func BenchmarkSession(b *testing.B) {
	for _, durability := range []string{"memory", journal.DurabilityOS} {
		for _, idle := range []ring.Strategy{ring.Adaptive, ring.Park} {
			for _, window := range []int{1, 64, 1024} {
				b.Run(fmt.Sprintf("op=order/durability=%s/idle=%s/window=%d", durability, idle, window),
					func(b *testing.B) {
						change := []rigOptions{func(r *rig) { r.o.Idle = idle }}
						if durability != "memory" {
							change = append(change, journaled(b.TempDir(), durability))
						}
						r := newRig(b, change...)
						b.ResetTimer()
						out, err := r.start("load", max(b.N, 2), window, idle).Output()
						if err != nil {
							b.Fatal(err)
						}
						b.Logf("%s sleeps=%d rescues=%d", out, r.server.Metrics().Sleeps, r.server.Metrics().Rescues)
					})
			}
		}
	}
}

// BenchmarkObserve measures the cost of an event for the recorder, without a feed and with one.
func BenchmarkObserve(b *testing.B) {
	for _, feeds := range []int{0, 1} {
		b.Run(fmt.Sprintf("op=observe/feeds=%d", feeds), func(b *testing.B) {
			r := newRig(b)
			if feeds > 0 {
				r.dial("", client.Options{Role: wire.Trades})
			}
			ev := matcher.Event{Kind: matcher.EventAccepted}
			b.ReportAllocs()
			for b.Loop() {
				r.server.Observe(&ev, nil)
			}
		})
	}
}
