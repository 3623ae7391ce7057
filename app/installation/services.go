package installation

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"posttrade/app/engine"
	"posttrade/app/settings"
	"posttrade/httpapi"
	"posttrade/journal/acts"
	"posttrade/journal/audit"
	"posttrade/matcher"
	"posttrade/matcher/gate"
	"posttrade/matcher/note"
)

// openEdges opens every listener: the order-matcher, the trade-processor when there are sidecars,
// and the admin listener, which shows the metrics of all.
//
// It returns the metrics, because the stats file reads the order-matcher's from them. The
// order-matcher opens first and the console last. An error leaves the edges that are open to Stop.
func openEdges(c *settings.Config, in *Installation,
	log *slog.Logger) (m httpapi.Metrics, err error) {
	k, d, l := in.Core, in.Beside.Load(), in.listeners
	verifier, err := in.newVerifier(c)
	if err != nil {
		return m, err
	}
	orders := newOrderMatcher(c, in, verifier, log)
	if err := l.start("order-matcher", orders); err != nil {
		return m, err
	}
	m = singleMetrics(k, orders)
	m.More = together(m.More, in.processMetrics, in.scrubbing.metrics, in.past.Collect,
		in.feed.Collect, in.evidence.metrics, in.backups.Metrics)
	if d != nil {
		if err := openSources(c, in, verifier, &m, log); err != nil {
			return m, err
		}
	}
	// The registry shows what the trade-processor counts. The trade-processor itself is made after the
	// registry, because it shows the registry.
	var processor *httpapi.TradeProcessor
	m.Services = append(m.Services, func(to httpapi.Counts) {
		if processor != nil {
			processor.Counted(to)
		}
	})
	m.More = together(m.More, in.listeners.bodies.Metrics)
	registry := httpapi.NewRegistry(m, log)
	if d != nil {
		if err := in.readMaster(c, log); err != nil {
			return m, err
		}
		processor = newTradeProcessor(c, in, d, verifier, registry, log)
		if err := l.start("trade-processor", processor); err != nil {
			return m, err
		}
	}
	if err := openAdmin(c, in, verifier, registry, log); err != nil {
		return m, err
	}
	return m, openConsole(c, l, verifier, registry, log)
}

// openAdmin opens the admin listener.
//
// It has a certificate of its own, and needs no service: a follower and a process without sidecars
// have it, too.
func openAdmin(c *settings.Config, in *Installation, verifier *gate.Verifier,
	registry *httpapi.Registry, log *slog.Logger) error {
	listener, err := in.listeners.listen("admin")
	if err != nil {
		return err
	}
	process, err := writeProcess(c.InDataDir(processFile))
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	in.listeners.serve("admin", newAdmin(c, in, process, verifier, registry, log), listener,
		in.listeners.adminTLS)
	return nil
}

// openSources opens the account-service and the reference-data service.
//
// The sidecars must be open: the services work on their tables.
func openSources(c *settings.Config, in *Installation, verifier *gate.Verifier, m *httpapi.Metrics,
	log *slog.Logger) error {
	d := in.Beside.Load()
	accounts, securities := newSources(c, in, d, verifier, log)
	m.More = together(m.More, d.metrics)
	m.Services = append(m.Services, accounts.Counted, securities.Counted)
	if err := in.listeners.start("account-service", accounts); err != nil {
		return err
	}
	return in.listeners.start("reference-data", securities)
}

// newSources makes the account-service and the reference-data service.
//
// A member's leader makes them and puts them behind relays; a single node gives each a listener.
// WritesNeedAdmin decides whether writes need a token, and the log says why if a setting does not.
func newSources(c *settings.Config, in *Installation, d *downstream, verifier *gate.Verifier,
	log *slog.Logger) (*httpapi.AccountService, *httpapi.ReferenceData) {
	k := in.Core
	writeAuth, because := c.WritesNeedAdmin()
	if writeAuth && !c.Bool("reference.write-auth.enforced") {
		log.Info("writes of accounts and stocks need an admin token", "because", because)
	}
	snapshotAuth := c.Bool("controlfeed.snapshot-auth")
	durability, inflight := c.Durability(), c.Int("http.max-inflight")
	return httpapi.NewAccountService(httpapi.AccountDeps{
			Accounts: d.sources.accounts, Verifier: verifier, WriteAuth: writeAuth,
			SnapshotAuth: snapshotAuth,
			Applied:      k.Views.Applied, Durable: k.Watermark.Durable, Projected: d.projected,
			State:      d.state,
			Durability: durability, Cluster: in.cluster(), MaxInflight: inflight, Logger: log,
		}), httpapi.NewReferenceData(httpapi.ReferenceDeps{
			Securities: d.sources.securities, Tick: k.Gate.Tick, Verifier: verifier, WriteAuth: writeAuth,
			SnapshotAuth: snapshotAuth,
			Applied:      k.Views.Applied, Durable: k.Watermark.Durable, Projected: d.projected,
			State:      d.state,
			Durability: durability, Cluster: in.cluster(), MaxInflight: inflight, Logger: log,
		})
}

// cluster is what the services know of the other members, nil on a single node.
//
// A nil *quorum.Node in the interface would not be nil there.
func (in *Installation) cluster() httpapi.Cluster {
	if in.Member == nil {
		return nil
	}
	return in.Member.Node
}

// projected is the input sequence up to which every fill is in SQL, 0 without a projection.
func (in *Installation) projected() uint64 {
	if d := in.Beside.Load(); d != nil {
		return d.projected()
	}
	return 0
}

// newOrderMatcher makes the service that takes orders, over the engine. On a member it stands
// behind the relay from the start, because reads are answered by every member. Functions and not
// values are given for what changes: the service asks at each request.
func newOrderMatcher(c *settings.Config, in *Installation, verifier *gate.Verifier,
	log *slog.Logger) *httpapi.OrderMatcher {
	k := in.Core
	deps := httpapi.Deps{
		Decider: AdmissionOf(c, k), Desk: k.Desk, Blotter: k.Blotter, Verifier: verifier,
		Durable: &k.Watermark, Seen: k.Stage.Applied,
		Clock:      func() int64 { return time.Now().UnixMilli() },
		Acts:       acts.New(k.Journal, k.Gate.Ticker),
		NeedReason: c.String("profile") == "production",
		Report:     audit.New(k.Journal, engine.RebuildFrom(k.Genesis).Engine, audit.Options{}),
		History:    in.history, FillsOf: k.Journal.FillsOf,
		AsOf: in.past.History, Feed: in.newFeed(c, log), Zone: tradeZone(c),
		PathPrefix: c.String("order-matcher.path-prefix"), Durability: c.Durability(),
		Cluster:     in.cluster(),
		MaxInflight: c.Int("http.max-inflight"), BlotterPage: c.Int("recon.blotter.page-size"),
		Logger: log,
	}
	if in.evidence != nil {
		deps.Evidence = in.evidence.source
	}
	if c.Bool("sidecars.enabled") {
		deps.Projected = in.projected
	}
	return httpapi.NewOrderMatcher(deps)
}

// newTradeProcessor makes the service of trades, settlement and reconciliation, over the sidecars
// d.
//
// A new leader makes it too, long after the start: it takes nothing from c that SIGHUP replaces.
func newTradeProcessor(c *settings.Config, in *Installation, d *downstream, verifier *gate.Verifier,
	registry *httpapi.Registry, log *slog.Logger) *httpapi.TradeProcessor {
	k := in.Core
	return httpapi.NewTradeProcessor(httpapi.ProcessorDeps{
		Trades: httpapi.StoreTrades{DB: d.Db}, Marks: d.extracts.marks, Settlement: d.settlement,
		Recon: d.recon, TCA: d.tca, Zone: tradeZone(c),
		Foreign: func() bool { return d.projection.Foreign() || isHeld(in.Core) }, Verifier: verifier,
		Mint: in.tokens.mint(), Metrics: registry, Record: recorder(k), Revocation: revocation(k),
		NeedReason: c.String("profile") == "production",
		Applied:    k.Views.Applied, Durable: k.Watermark.Durable, Projected: d.projected, State: d.state,
		ProjectedTrades: d.projectedTrades,
		Durability:      c.Durability(), Cluster: in.cluster(), MaxInflight: c.Int("http.max-inflight"),
		Logger: log,
	})
}

// tradeZone is the zone of trade dates.
//
// The setting's kind has checked the name, so a failure is a bug.
func tradeZone(c *settings.Config) *time.Location {
	zone, err := time.LoadLocation(c.String("settlement.timezone"))
	if err != nil {
		panic("installation: the settings let a time zone pass that is none: " + err.Error())
	}
	return zone
}

// recorder puts acts on record that are no commands.
//
// The result is the sequence of the note. It blocks until the note is durable.
func recorder(k *engine.Engine) httpapi.Recorder {
	return func(ctx context.Context, n *note.Note) (uint64, error) {
		return note.Record(ctx, k.Desk, n, time.Now())
	}
}

// revocation is POST /auth/revoke.
//
// The act and its note are in one submission, so neither is without the other.
func revocation(k *engine.Engine) httpapi.Revocation {
	return httpapi.Revocation{Gate: k.Gate, Pause: time.Sleep,
		Act: func(ctx context.Context, n *note.Note, act matcher.Command) (uint64, error) {
			return note.Act(ctx, k.Desk, n, act, time.Now())
		}}
}

// newAdmin makes the admin listener's server: health, metrics, profiles, and the resources of
// backups. Without the guard every caller is admitted, except to backups; the settings allow that
// on loopback only.
func newAdmin(c *settings.Config, in *Installation, process string, verifier *gate.Verifier,
	registry *httpapi.Registry, log *slog.Logger) *httpapi.Admin {
	a := httpapi.AdminConfig{
		Parts: func() []httpapi.Part {
			return append(append(in.coreParts(), in.Member.parts()...), in.Beside.Load().parts()...)
		},
		Version: map[string]string{"version": settings.Version()}, Registry: registry, Logger: log,
		Extra: in.backups.Handlers(), OpenHealth: c.Bool("admin.open-health"),
		Process: process,
	}
	if in.Member != nil {
		a.Vote = in.Member.vote
	}
	if c.Bool("admin.token-guard") {
		a.Admit = func(token string) (gate.Claims, error) {
			return verifier.VerifyMetrics([]byte(token))
		}
	}
	return httpapi.NewAdmin(a)
}
