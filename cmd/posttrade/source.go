package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"text/tabwriter"
	"time"

	"posttrade/app/installation"
	"posttrade/app/settings"
	"posttrade/journal"
	"posttrade/sidecars/broker"
	"posttrade/sidecars/control"
	"posttrade/sidecars/store"
)

// sourceUsage is the forms of the command, for the help and for a wrong command line
const sourceUsage = "source status | source bump-epoch account|security [--reason=TEXT]"

// runSource is `posttrade source`.
//
// status asks the running server; bump-epoch works on the database and the stream itself.
func runSource(args []string, stdout, stderr io.Writer) int {
	f := newFlags(sourceUsage+" [flags]",
		"The two control sources, the account-service and the reference-data service.\n"+
			"  status      where each stands in the replica of the server that runs on data.dir\n"+
			"  bump-epoch  begin a new epoch of a source, after its database was restored from a backup: "+
			"every replica\n"+
			"              then takes a new snapshot. With the embedded broker the server must be stopped")
	reason := f.String("reason", "", "with bump-epoch: why, for the record (`text`)")
	c, err := f.read(args, 2, stdout)
	if err != nil {
		return settings.Exit(stderr, err)
	}
	switch {
	case len(f.rest) == 1 && f.rest[0] == "status" && *reason == "":
		return settings.Exit(stderr, sourceStatus(c, stdout))
	case len(f.rest) == 2 && f.rest[0] == "bump-epoch":
		s := control.Source(f.rest[1])
		if !s.Valid() {
			return settings.Exit(stderr, settings.Usagef("unknown source %s; there are account and security",
				settings.Printable(f.rest[1])))
		}
		return settings.Exit(stderr, bumpEpoch(c, s, *reason, stdout))
	}
	return settings.Exit(stderr, settings.Usagef("usage: posttrade %s", sourceUsage))
}

// sourceStatus prints a line for each source, as the risk-control endpoint of the server has it:
// its state, its epoch, the last version that the replica has taken in, the highest that it knows
// of, and why it was last quarantined.
func sourceStatus(c *settings.Config, w io.Writer) error {
	server, err := localClient(c, "order-matcher", time.Now())
	if err != nil {
		return err
	}
	defer server.Close()
	controls, err := server.RiskControls(context.Background())
	if err != nil {
		return err
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "source\tstate\tepoch\twatermark\thighest seen\tlast quarantine")
	for _, s := range controls.Sources {
		reason := s.LastReason
		if reason == "" {
			reason = "none"
		}
		fmt.Fprintf(t, "%s\t%s\t%d\t%d\t%d\t%s\n", s.Source, s.State, s.Epoch, s.Watermark,
			s.HighWatermark, reason)
	}
	return t.Flush()
}

// bumpTimeout is how long an unreachable database or broker may hold the command up: a person
// waits.
const bumpTimeout = 30 * time.Second

// bumpEpoch begins a new epoch. It reads the last message of the stream, so that versions continue
// above everything that a replica has ever seen. The act waits in the database: the next server
// that runs on it puts it on record in its journal.
//
// Errors: a usage error when a reason is required and missing; no server has run on data.dir; a
// server that has the embedded broker open; those of database and broker.
func bumpEpoch(c *settings.Config, s control.Source, reason string, w io.Writer) (err error) {
	by, err := installation.ByHand(c, reason)
	if err != nil {
		return err
	}
	// opening would make a new one
	if path := c.InDataDir("posttrade.db"); c.String("database.url") == "" {
		if _, err := os.Stat(path); err != nil {
			return fmt.Errorf("no server has run here: read %s: %w", path, settings.Cause(err))
		}
	}
	if err := stopped(c); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), bumpTimeout)
	defer cancel()
	db, err := store.Open(store.Options{URL: c.String("database.url"), Dir: c.String("data.dir")})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	b, err := broker.Open(broker.Options{URL: c.String("nats.url"), Dir: c.InDataDir("broker"),
		Name: "posttrade"})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.Close()) }()
	sources := installation.NewControlSources(db, b, time.Second, nil, slog.New(slog.DiscardHandler))
	epoch, err := sources.Bump(ctx, s, by)
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "source %s: epoch %d\n", s, epoch)
	return nil
}

// stopped makes sure that no server has the embedded broker open: only one process may. Such a
// server holds the lock of its journal, so that lock is tried.
func stopped(c *settings.Config) error {
	if c.String("nats.url") != "" {
		// the stream is on a NATS server: the command does no harm while this installation runs
		return nil
	}
	j, err := journal.OpenExisting(c.InDataDir("journal"),
		journal.Options{ArchiveDir: c.String("journal.archive-dir")})
	switch {
	case errors.Is(err, journal.ErrLocked):
		return errors.New("source bump-epoch: stop the server first: it has the embedded broker open")
	case errors.Is(err, journal.ErrNoGenesis):
		return nil // no server has run here yet
	case err != nil:
		return err
	}
	return j.Close()
}
