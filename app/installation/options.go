package installation

import (
	"posttrade/app/engine"
	"posttrade/app/settings"
	"posttrade/matcher"
	"posttrade/matcher/admission"
	"posttrade/ring"
)

// EngineOptions are the options of the engine of these settings, for a server and for the
// measuring tools. Fatal is left to the caller; Feeds, Approve and Log to Open. It opens nothing:
// Genesis and Session are functions that the engine calls.
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
		ArchiveDir:       c.String("journal.archive-dir"),
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

// AdmissionOf is what orders to an engine are admitted by: one answer, whatever way they come.
//
// HTTP and shared-memory sessions each have a Decider of their own over the same gate and views. A
// Decider has no state; its functions are called for each command and read memory only.
func AdmissionOf(c *settings.Config, k *engine.Engine) admission.Decider {
	return admission.Decider{
		Gate: k.Gate, Views: k.Views,
		Failed: k.Journal.Err, StorageFull: k.Journal.StorageFull,
		Held:             func() bool { return isHeld(k) },
		Enforced:         c.Bool("risk.entitlement.enforced"),
		SequenceRefusals: c.Bool("audit.sequence-refusals"),
	}
}

// openTo reports whether any command can be sequenced now, as requests are told: the sidecars that
// sequence what other programs publish ask it first.
func openTo(c *settings.Config, k *engine.Engine) (open func() bool) {
	d := AdmissionOf(c, k)
	return func() bool { return d.Open() == admission.Admitted }
}
