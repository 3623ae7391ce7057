package main

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"posttrade/httpapi"
	"posttrade/journal"
	"posttrade/matcher"
	"posttrade/matcher/gate"
	"posttrade/ring"
)

// runServe is `posttrade serve`.
func runServe(args []string, stdout, stderr io.Writer) int {
	f := newFlags("serve [flags]", "Runs everything, on embedded defaults unless a setting says otherwise. Stops in order on SIGINT and SIGTERM.")
	c, err := f.read(args, 0, stdout)
	if err != nil {
		return exit(stderr, err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	return exit(stderr, serve(ctx, c, stdout, stderr))
}

// serve starts the installation, waits for ctx or a failure, and stops it.
func serve(ctx context.Context, c *config, stdout, stderr io.Writer) (err error) {
	log := slog.New(slog.NewTextHandler(stderr, nil))
	if err := c.onlyWhatIsThere(); err != nil {
		return err
	}
	dir := c.String("data.dir")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("data.dir: %w", err)
	}
	failed := make(chan error, 1)

	// 1. The core: journal, recovery, rings, matcher, recorder.
	o := coreOptionsFrom(c)
	o.fatal = func(err error) { exitOnJournalFailure(stderr, err) }
	k, err := openCore(o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, k.stop()) }()
	if err := c.sameLimits(k.genesis); err != nil {
		return err
	}
	logRecovery(log, k)

	// 2. The order-matcher's listener.
	matcherEdge, err := newOrderMatcher(c, k, log)
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", c.Addr("order-matcher.listen"))
	if err != nil {
		return fmt.Errorf("order-matcher.listen: %w", err)
	}
	tlsConfig, err := c.tls()
	if err != nil {
		listener.Close()
		return err
	}
	serving := listener
	if tlsConfig != nil {
		serving = tls.NewListener(listener, tlsConfig)
	}
	go func() { failed <- matcherEdge.Serve(serving) }()
	defer shutdown(matcherEdge.Shutdown, &err)

	// 3. The admin listener.
	admin, err := newAdmin(c, k, matcherEdge, log)
	if err != nil {
		return err
	}
	adminListener, err := net.Listen("tcp", c.Addr("admin.listen"))
	if err != nil {
		return fmt.Errorf("admin.listen: %w", err)
	}
	go func() { failed <- admin.Serve(adminListener) }()
	defer shutdown(admin.Shutdown, &err)

	// 4. Say where.
	ports := map[string]string{
		"order-matcher": listener.Addr().String(),
		"admin":         adminListener.Addr().String(),
	}
	if err := writePorts(filepath.Join(dir, "ports.json"), ports); err != nil {
		return err
	}
	for _, name := range []string{"order-matcher", "admin"} {
		fmt.Fprintf(stdout, "%s listening on %s\n", name, ports[name])
	}

	select {
	case <-ctx.Done():
		log.Info("stopping")
		return nil
	case err := <-failed:
		return err
	}
}

// shutdownTimeout is how long requests in flight may take to end.
const shutdownTimeout = 10 * time.Second

func shutdown(f func(context.Context) error, err *error) {
	ctx, cancel := context.WithTimeout(context.Background(), shutdownTimeout)
	defer cancel()
	*err = errors.Join(*err, f(ctx))
}

// journalGrace is how long callers who wait get to hear that the journal has
// failed, before the process ends.
const journalGrace = 100 * time.Millisecond

// exitOnJournalFailure is fail-stop: the waiting callers have been told, one
// line says why, the process ends. Nothing more is promised.
func exitOnJournalFailure(stderr io.Writer, err error) {
	fmt.Fprintf(stderr, "posttrade: journal failed, stopping: %v\n", err)
	time.Sleep(journalGrace)
	os.Exit(exitFailed)
}

func coreOptionsFrom(c *config) coreOptions {
	idle, err := ring.ParseStrategy(c.String("ring.idle"))
	if err != nil {
		panic(err) // the setting's kind has checked the word
	}
	return coreOptions{
		dir:              c.inDataDir("journal"),
		durability:       c.String("journal.durability"),
		flushInterval:    c.Duration("journal.flush-interval"),
		reserveBytes:     c.Bytes("journal.reserve-bytes"),
		snapshotInterval: c.Int64("snapshot.interval-commands"),
		inputSlots:       c.Int("ring.input-slots"),
		outputSlots:      c.Int("ring.output-slots"),
		idle:             idle,
		matcherCPU:       c.Int("matcher.cpu"),
		recorderCPU:      c.Int("recorder.cpu"),
		blotterCapacity:  c.Int("recon.blotter.capacity"),
		tickets:          c.Int("http.max-inflight"),
		genesis:          func() (*matcher.Genesis, error) { return genesisFrom(c) },
	}
}

// onlyWhatIsThere refuses settings that ask for a part which this version does
// not have: they would be ignored, and nobody may think they are not.
func (c *config) onlyWhatIsThere() error {
	for _, name := range []string{"cluster.members", "session.socket", "database.url", "nats.url"} {
		if c.Source(name) != "default" {
			return usagef("%s: this version runs on one node with its embedded parts only", name)
		}
	}
	return nil
}

// limitSettings are the settings that a journal's genesis record fixes.
var limitSettings = []struct {
	name string
	of   func(matcher.Limits) int64
}{
	{"risk.max-order-quantity", func(l matcher.Limits) int64 { return l.MaxOrderQty }},
	{"risk.max-order-notional", func(l matcher.Limits) int64 { return l.MaxOrderNotional }},
	{"risk.max-position-quantity", func(l matcher.Limits) int64 { return l.MaxPositionQty }},
	{"risk.max-concentration-notional", func(l matcher.Limits) int64 { return l.MaxConcentrationNotional }},
	{"risk.credit-limit", func(l matcher.Limits) int64 { return l.CreditLimit }},
	{"risk.price.max-age-ms", func(l matcher.Limits) int64 { return l.PriceMaxAgeMillis }},
	{"risk.price.collar-bps", func(l matcher.Limits) int64 { return l.PriceCollarBps }},
	{"risk.idempotency.capacity", func(l matcher.Limits) int64 { return int64(l.IdempotencyCapacity) }},
	{"risk.max-accounts", func(l matcher.Limits) int64 { return int64(l.MaxAccounts) }},
	{"risk.max-securities", func(l matcher.Limits) int64 { return int64(l.MaxSecurities) }},
	{"risk.max-contracts", func(l matcher.Limits) int64 { return int64(l.MaxContracts) }},
	{"risk.max-open-orders", func(l matcher.Limits) int64 { return int64(l.MaxOpenOrders) }},
	{"risk.retained-orders", func(l matcher.Limits) int64 { return int64(l.RetainedOrders) }},
}

// sameLimits refuses a limit that was set to something else than the journal's
// genesis record says: it would not be kept, and nobody may think it is.
func (c *config) sameLimits(g *matcher.Genesis) error {
	wanted := c.limits()
	for _, s := range limitSettings {
		if c.Source(s.name) != "default" && s.of(wanted) != s.of(g.Limits) {
			return usagef("%s: this journal was created with another value, which its genesis record fixes; "+
				"leave the setting out, or start with an empty data.dir", s.name)
		}
	}
	return nil
}

func logRecovery(log *slog.Logger, k *core) {
	r := k.recovered
	for _, note := range r.notes {
		log.Warn("snapshot passed over", "reason", note)
	}
	log.Info("recovered", "sequence", r.sequence, "trades", r.tradeSeq, "snapshot", r.snapshot,
		"replayed", r.replayed, "took", r.took.Round(time.Millisecond), "durability", k.o.durability)
}

// verifier checks access tokens as the settings say.
func (c *config) verifier() (*gate.Verifier, error) {
	secret, err := c.jwtSecret()
	if err != nil {
		return nil, err
	}
	return gate.NewVerifier(secret, c.String("auth.jwt.issuer"), c.Duration("auth.jwt.leeway"), time.Now)
}

func newOrderMatcher(c *config, k *core, log *slog.Logger) (*httpapi.OrderMatcher, error) {
	verifier, err := c.verifier()
	if err != nil {
		return nil, err
	}
	return httpapi.NewOrderMatcher(httpapi.Deps{
		Gate: k.gate, Desk: k.desk, Views: k.views, Blotter: k.blotter, Verifier: verifier,
		Durable: &k.watermark, Seen: k.stage.Applied,
		Clock:       func() int64 { return time.Now().UnixMilli() },
		StorageFull: k.journal.StorageFull, Failed: k.journal.Err,
		Enforced: c.Bool("risk.entitlement.enforced"), SequenceRefusals: c.Bool("audit.sequence-refusals"),
		PathPrefix: c.String("order-matcher.path-prefix"), Durability: c.String("journal.durability"),
		MaxInflight: c.Int("http.max-inflight"), BlotterPage: c.Int("recon.blotter.page-size"), Logger: log,
	}), nil
}

func newAdmin(c *config, k *core, edge *httpapi.OrderMatcher, log *slog.Logger) (*httpapi.Admin, error) {
	a := httpapi.AdminConfig{
		Parts: func() []httpapi.Part { return parts(k) }, Version: map[string]string{"version": version()}, Metrics: metrics(k, edge), Logger: log,
	}
	if c.Bool("admin.token-guard") {
		verifier, err := c.verifier()
		if err != nil {
			return nil, err
		}
		a.Admit = func(token string) bool {
			claims, err := verifier.Verify([]byte(token))
			return err == nil && claims.Admin
		}
	}
	return httpapi.NewAdmin(a), nil
}

// parts is /readyz: what must hold for an order to be admitted.
func parts(k *core) []httpapi.Part {
	list := []httpapi.Part{{Name: "recovery", Ready: true,
		Detail: fmt.Sprintf("sequence %d in %s", k.recovered.sequence, k.recovered.took.Round(time.Millisecond))}}
	switch err := k.journal.Err(); {
	case err != nil:
		list = append(list, httpapi.Part{Name: "journal", Detail: err.Error()})
	case k.journal.StorageFull():
		list = append(list, httpapi.Part{Name: "journal", Detail: "storage full"})
	default:
		list = append(list, httpapi.Part{Name: "journal", Ready: true,
			Detail: fmt.Sprintf("durable %d, mode %s", k.journal.Durable(), k.o.durability)})
	}
	for _, s := range k.gate.Snapshot().Sources {
		list = append(list, httpapi.Part{Name: "source " + s.Name, Ready: s.State == gate.Ready, Detail: s.State.String()})
	}
	return list
}

// metrics adds the stages' counters to those of the edge.
func metrics(k *core, edge *httpapi.OrderMatcher) httpapi.Metrics {
	m := edge.Metrics()
	m.Rings = func(emit func(string, uint64)) {
		emit("input", uint64(k.in.Depth()))
		emit("output", uint64(k.out.Depth()))
	}
	m.Stages = func(emit func(string, uint64)) {
		emit("matcher", k.stage.Applied())
		emit("recorder", k.journal.Applied())
		emit("views", k.views.Applied())
		emit("durable", k.journal.Durable())
	}
	m.JournalCommits = func() httpapi.Histogram { return commitHistogram(k.journal.Metrics()) }
	m.JournalBytes = func() uint64 { return k.journal.Metrics().CommitBytes }
	return m
}

func commitHistogram(m journal.Metrics) httpapi.Histogram {
	h := httpapi.Histogram{Sum: m.CommitSeconds, Buckets: make(map[float64]uint64, len(journal.CommitBuckets))}
	for i, n := range m.CommitCounts {
		h.Count += n
		if i < len(journal.CommitBuckets) {
			h.Buckets[journal.CommitBuckets[i]] = h.Count
		}
	}
	return h
}

// writePorts tells other programs where everything listens. The file appears
// whole or not at all.
func writePorts(path string, ports map[string]string) error {
	text, err := json.MarshalIndent(ports, "", "  ")
	if err != nil {
		return err
	}
	temporary := path + ".new"
	if err := os.WriteFile(temporary, append(text, '\n'), 0o644); err != nil {
		return fmt.Errorf("ports.json: %w", err)
	}
	if err := os.Rename(temporary, path); err != nil {
		return fmt.Errorf("ports.json: %w", err)
	}
	return nil
}
