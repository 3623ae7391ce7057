package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"posttrade/app/engine"
	"posttrade/app/settings"
	"posttrade/journal"
	"posttrade/matcher"
	"posttrade/ring"
)

// runServe is `posttrade serve`.
func runServe(args []string, stdout, stderr io.Writer) int {
	f := newFlags("serve [flags]",
		"Runs everything, on embedded defaults unless a setting says otherwise. Stops in order on SIGINT and SIGTERM.")
	c, err := f.read(args, 0, stdout)
	if err != nil {
		return exit(stderr, err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	return serveToTheEnd(ctx, c, EngineOptions(c), stdout, newLastWords(stderr))
}

// serveToTheEnd is serve; it returns the exit code for the error with which serve ended.
func serveToTheEnd(ctx context.Context, c *settings.Config, o engine.Options, stdout io.Writer,
	words *lastWords) int {
	o.Fatal = words.failed
	err := serve(ctx, c, o, slog.New(slog.NewTextHandler(words, nil)), stdout)
	if errors.Is(err, journal.ErrPoisoned) || words.said() {
		words.failed(err) // the failure may come here before it is written, or after that
	}
	return exit(words, err)
}

// serve starts the installation, waits for ctx or a failure, and stops it.
func serve(ctx context.Context, c *settings.Config, o engine.Options, log *slog.Logger,
	stdout io.Writer) error {
	for {
		if err := serveOnce(ctx, c, o, log, stdout); !restarts(err, log) {
			return err
		}
	}
}

// restarts reports whether an installation that ended with err must be opened again. If so, it logs
// all of err, because no caller sees it then.
func restarts(err error, log *slog.Logger) bool {
	if !errors.Is(err, errRestart) {
		return false
	}
	log.Warn("starting again", "because", err)
	return true
}

// serveOnce serves until the installation must be opened again: errRestart.
func serveOnce(ctx context.Context, c *settings.Config, o engine.Options, log *slog.Logger,
	stdout io.Writer) (err error) {
	in, err := Open(ctx, c, o, log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, in.stop()) }()
	in.awaitReady(ctx)
	if err := writePorts(c.InDataDir("ports.json"), in.listeners.addresses()); err != nil {
		return err
	}
	if at := in.listeners.consoleURL(); at != "" {
		fmt.Fprintf(stdout, "console: open %s in a browser\n", at)
	}
	for _, e := range in.listeners.open {
		fmt.Fprintf(stdout, "%s listening on %s\n", e.name, e.listener.Addr())
	}
	select {
	case <-ctx.Done():
		log.Info("stopping")
		return nil
	case err := <-in.listeners.failed:
		return err
	case <-in.restart():
		return errRestart
	}
}

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

// sameLimits refuses a limit that was set to another value than that in the journal's genesis
// record. The engine would not keep it, and the operator must not think that it does.
func sameLimits(c *settings.Config, g *matcher.Genesis) error {
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

func logRecovery(log *slog.Logger, k *engine.Engine) {
	r := k.Recovered
	for _, note := range r.Notes {
		log.Warn("snapshot passed over", "reason", note)
	}
	if r.Room != nil {
		log.Warn("memory is not made resident ahead of the orders", "error", r.Room)
	}
	log.Info("recovered", "sequence", r.Sequence, "trades", r.TradeSeq, "snapshot", r.Snapshot,
		"replayed", r.Replayed, "took", r.Took.Round(time.Millisecond), "durability",
		k.Options.Durability)
}

// writePorts writes the addresses of all listeners to a file for other programs. The file appears
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
