package installation

import (
	"strconv"
	"testing"
	"time"

	"posttrade/app/settings"
	"posttrade/blotter"
	"posttrade/blotter/feed"
	"posttrade/sidecars/bootstrap"
	"posttrade/sidecars/outbox"
	"posttrade/sidecars/recon"
)

// TestSettingsAndRoomsHaveTheSameDefaults compares the defaults of settings with those of rooms
// that the settings may not import.
func TestSettingsAndRoomsHaveTheSameDefaults(t *testing.T) {
	millis := func(d time.Duration) int { return int(d.Milliseconds()) }
	for name, want := range map[string]int{
		"feed.max-clients":               feed.DefaultMaxReaders,
		"recon.blotter.capacity":         blotter.DefaultCapacity,
		"recon.poll.interval-ms":         millis(recon.DefaultInterval),
		"recon.grace-ms":                 millis(recon.DefaultGrace),
		"recon.verify.interval-ms":       millis(recon.DefaultVerifyInterval),
		"outbox.poll-interval-ms":        millis(outbox.DefaultPoll),
		"risk.bootstrap.buffer-capacity": bootstrap.DefaultBufferCapacity,
		"risk.feed.max-silence-ms":       millis(bootstrap.DefaultMaxSilence),
	} {
		if got := settings.Named(name).Default; got != strconv.Itoa(want) {
			t.Errorf("%s defaults to %s, its room to %d", name, got, want)
		}
	}
}
