package installation

import (
	"posttrade/app/engine"
	"posttrade/app/settings"
	"posttrade/matcher"
	"posttrade/ring"
)

func EngineOptions(c *settings.Config) engine.Options {
	idle, err := ring.ParseStrategy(c.String("ring.idle"))
	if err != nil {
		panic(err) // the setting's kind has checked the value
	}
	return engine.Options{
		Dir:              c.InDataDir("journal"),
		Member:           c.Clustered(),
		Durability:       c.JournalDurability(),
		FlushInterval:    c.Duration("journal.flush-interval"),
		ReserveBytes:     c.Bytes("journal.reserve-bytes"),
		SnapshotInterval: c.Int64("snapshot.interval-commands"),
		InputSlots:       c.Int("ring.input-slots"),
		OutputSlots:      c.Int("ring.output-slots"),
		Idle:             idle,
		MatcherCPU:       c.Int("matcher.cpu"),
		RecorderCPU:      c.Int("recorder.cpu"),
		BlotterCapacity:  c.Int("recon.blotter.capacity"),
		Tickets:          c.Int("http.max-inflight"),
		Sessions:         c.Int("session.max-sessions"),
		Session:          sessions(c),
		Genesis:          func() (*matcher.Genesis, error) { return settings.NewGenesis(c) },
	}
}

// limitSettings are the settings that a journal's genesis record fixes. Capacities are not
// among them: see capacitySettings.
var limitSettings = []struct {
	name string
	of   func(matcher.Limits) int64
}{
	{"risk.max-order-quantity", func(l matcher.Limits) int64 { return l.MaxOrderQty }},
	{"risk.max-order-notional", func(l matcher.Limits) int64 { return l.MaxOrderNotional }},
	{"risk.max-position-quantity", func(l matcher.Limits) int64 { return l.MaxPositionQty }},
	{"risk.max-concentration-notional",
		func(l matcher.Limits) int64 { return l.MaxConcentrationNotional }},
	{"risk.credit-limit", func(l matcher.Limits) int64 { return l.CreditLimit }},
	{"risk.price.max-age-ms", func(l matcher.Limits) int64 { return l.PriceMaxAgeMillis }},
	{"risk.price.collar-bps", func(l matcher.Limits) int64 { return l.PriceCollarBps }},
	{"risk.idempotency.capacity",
		func(l matcher.Limits) int64 { return int64(l.IdempotencyCapacity) }},
	{"risk.max-open-orders", func(l matcher.Limits) int64 { return int64(l.MaxOpenOrders) }},
	{"risk.retained-orders", func(l matcher.Limits) int64 { return int64(l.RetainedOrders) }},
}

// SameLimits refuses a limit that was set to another value than that in the journal's genesis
// record. The engine would not keep it, and the operator must not think that it does.
func SameLimits(c *settings.Config, g *matcher.Genesis) error {
	wanted := c.Limits()
	for _, s := range limitSettings {
		if c.Source(s.name) != "default" && s.of(wanted) != s.of(g.Limits) {
			return settings.Usagef(
				"%s: this journal was created with another value, which its genesis record fixes; "+
					"leave the setting out, or start with an empty data.dir", s.name)
		}
	}
	return nil
}
